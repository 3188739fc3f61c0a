"""`tffc explore`: write an HTML page about a round."""

from __future__ import annotations

import os
import pathlib

import click

from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.options import form_option, show_repeatedly, size_option, watch_option
from tffc.cli.output import say, write_text
from tffc.cli.progress import step
from tffc.cli.proving import round_of_bundle
from tffc.cli.sources import read_parts, read_round, refuse_form_of_bundle
from tffc.errors import TffcError
from tffc.explorer.description import Description, describe, refusal
from tffc.explorer.page import page
from tffc.ir.nodes import Node


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
def explore_command(
    source: str, form: str | None, out: str, since: str | None, is_opened: bool, watch: bool
) -> None:
    """Write an HTML page about a round: its stages, your source, passes, graphs and audit.

    The page is a single file that needs no network. It shows every call of the round as a box and
    every value between two calls as an edge, with its type, bytes and protection; the source line
    of each call, and what each line compiled to; the changes of every pass; the graph of every
    component; the audit; and the text of the program. The round is not run.

    A bundle whose components are not proved to compute its program is shown from its components.

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
    for option, is_given in (("--open", is_opened), ("--watch", watch)):
        if is_given and out == "-":
            raise click.UsageError(f"'{option}' needs a file: give --out a name")
    left = [pathlib.Path(out)] if is_opened else []

    def explore() -> None:
        description = _describe(source, form, since)
        write_text(page(description.plain), out)
        if left:
            _open(left.pop())
        if description.error is not None:
            raise description.error

    refuse_form_of_bundle(source, form)
    show_repeatedly(source, watch, explore)


def _describe(source: str, form: str | None, since: str | None) -> Description:
    older = None if since is None else _round_of(since)
    if os.path.isdir(source):
        bundle = read_bundle(pathlib.Path(source))
        round, form, compiled = round_of_bundle(source, bundle), bundle.form, bundle.read_form()
        first = bundle.initialize
    else:
        try:
            program = read_round(source, form)
        except TffcError as error:
            if error.span is None:
                raise
            return refusal(error, source)
        round, compiled = program.computation, None
        form = form or form_for(round)
        first = None if program.initialize is None else compile_initialize(program.initialize)
    step(f"exploring {source}")
    return describe(round, form, source, compiled=compiled, initialize=first, older=older)


def _round_of(source: str) -> Node:
    """Return the round of a program or a bundle."""
    if os.path.isdir(source):
        return round_of_bundle(source, read_bundle(pathlib.Path(source)))
    parts = read_parts(source)
    return parts.get("next") or parts["computation"]


def _open(path: pathlib.Path) -> None:
    # Imported late, because it takes long to load.
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser was found: open {path} in one")
