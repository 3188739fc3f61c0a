"""The work of `tffc explore`."""

from __future__ import annotations

import os
import pathlib

import click

from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.options import show_repeatedly
from tffc.cli.output import say, write_text
from tffc.cli.progress import step
from tffc.cli.sources import read_parts, read_round, refuse_form_of_bundle
from tffc.errors import TffcError
from tffc.explorer.description import Description, describe, refusal
from tffc.explorer.page import page
from tffc.ir.nodes import Node


def explore_program(
    source: str, form: str | None, out: str, since: str | None, is_opened: bool, watch: bool
) -> None:
    """Write the page of a round, once or whenever it changes."""
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


def _open(path: pathlib.Path) -> None:
    # Imported late: loading it takes long.
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser was found: open {path} in one")
