"""`tffc explore`: a round, and what is made of it, as a page for a browser."""

from __future__ import annotations

import os
import pathlib

import click

from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.options import form_option, size_option, watch_option
from tffc.cli.output import say, write_output
from tffc.cli.progress import step
from tffc.cli.sources import read_parts, read_round
from tffc.errors import TffcError
from tffc.explorer.description import Description, describe, refusal
from tffc.explorer.page import page
from tffc.ir.nodes import Node


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
def explore_command(
    source: str, form: str | None, out: str, since: str | None, is_opened: bool, watch: bool
) -> None:
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
    for option, is_given in (("--open", is_opened), ("--watch", watch)):
        if is_given and out == "-":
            raise click.UsageError(f"'{option}' needs a file: give --out a name")
    left = [pathlib.Path(out)] if is_opened else []

    def explore() -> None:
        description = _describe(source, form, since)
        _write(page(description.plain), out)
        if left:
            _open(left.pop())
        if description.error is not None:
            raise description.error

    if watch:
        from tffc.cli.watch import watch as watch_source  # which nobody else needs

        watch_source(source, explore)
    explore()


def _describe(source: str, form: str | None, since: str | None) -> Description:
    older = None if since is None else _round_of(since)
    if os.path.isdir(source):
        if form is not None:
            raise click.UsageError(
                f"{source} is a folder, and a bundle has its form: leave --form out"
            )
        bundle = read_bundle(pathlib.Path(source))
        step(f"exploring {source}")
        return describe(
            bundle.computation,
            bundle.form,
            source,
            compiled=bundle.read_form(),
            initialize=bundle.initialize,
            older=older,
        )
    try:
        program = read_round(source, form)
    except TffcError as error:
        if error.span is None:
            raise
        return refusal(error, source)
    step(f"exploring {source}")
    first = None if program.initialize is None else compile_initialize(program.initialize)
    return describe(
        program.computation,
        form or form_for(program.computation),
        source,
        initialize=first,
        older=older,
    )


def _round_of(source: str) -> Node:
    """Return the round of a program or a bundle."""
    parts = read_parts(source)
    return parts.get("next") or parts["computation"]


def _write(content: str, out: str) -> None:
    if out == "-":
        click.echo(content, nl=False)
        return
    write_output(pathlib.Path(out), content.encode())
    say(f"wrote {out}")


def _open(path: pathlib.Path) -> None:
    import webbrowser  # which takes long to load

    if not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser was found: open {path} in one")
