"""`tffc explore`: a round, and what is made of it, as a page for a browser."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import form_option, size_option, watch_option


@click.command("explore")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE")
@form_option("The form to compile the program to; a bundle has its own form.")
@click.option(
    "-o",
    "--out",
    metavar="FILE.html",
    default="explore.html",
    show_default=True,
    help="Write the page to this file; `-` is stdout.",
)
@click.option(
    "--since", metavar="OLDER", help="Show what has changed since this older program or bundle."
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@watch_option
@size_option
def explore_command(**options: Any) -> None:
    """Write an HTML page about a round: its stages, your source, passes, graphs and audit.

    The page is a single file that needs no network. It shows every call of the round as a box and
    every value between two calls as an edge, with its type, bytes and protection; the source line
    of each call, and what each line compiled to; the changes of every pass; the graph of every
    component; the audit; and the text of the program. The round is not run.

    For a program that cannot be traced or compiled, the page shows the error at its line, and the
    command exits with 1.

    \b
    Examples:
      tffc explore examples/temperature/temperature.py:mean_temperature \\
          -o build/mean.html
      # Show what has changed since a bundle was compiled.
      tffc explore examples/digits/federated_averaging.py:training \\
          --since build/training -o build/training.html
    """
    from tffc.cli import explore

    explore.explore_program(**options)
