"""`tffc explore`: a round, and what is made of it, as a page for a browser."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import form_option, size_option, watch_option


@click.command("explore")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE")
@form_option("The form that the program is compiled to; a bundle has its own.")
@click.option(
    "-o",
    "--out",
    metavar="FILE.html",
    default="explore.html",
    show_default=True,
    help="Write the page here; `-` is stdout.",
)
@click.option(
    "--since",
    metavar="OLDER",
    help="An older version, a program or a bundle: show what has changed since.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@watch_option
@size_option
def explore_command(**options: Any) -> None:
    """Write a page that shows a round: its stages, your source, passes, graphs and audit.

    The page is one file that needs no network. It has every call of the round as a box, and every
    value between two as an edge, with its type and bytes and how it is protected; the line of
    your source that each call comes from, and what each line became; what every pass changed; the
    graph of every component; the audit; and the text of the program. Nothing is run.

    A program that cannot be traced or compiled has a page as well, with the error at its line; the
    exit code is 1 then.

    \b
    Examples:
      tffc explore examples/temperature/temperature.py:mean_temperature \\
          -o build/mean.html
      # What has changed since a bundle was compiled.
      tffc explore examples/digits/federated_averaging.py:training \\
          --since build/training -o build/training.html
    """
    from tffc.cli import explore

    explore.explore_program(**options)
