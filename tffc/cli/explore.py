"""The work of `tffc explore`."""

from __future__ import annotations

import os
import pathlib

import click

from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.output import say, write_output
from tffc.cli.progress import step
from tffc.cli.sources import read_parts, read_round
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
        _write(page(description.plain), out)
        if left:
            _open(left.pop())
        if description.error is not None:
            raise description.error

    if watch:
        # Imported late: only --watch needs it.
        from tffc.cli.watch import watch as watch_source

        watch_source(source, explore)
    explore()


def _describe(source: str, form: str | None, since: str | None) -> Description:
    older = None if since is None else _round_of(since)
    if os.path.isdir(source):
        if form is not None:
            raise click.UsageError(
                f"{source} is a folder, and a bundle has its own form: omit --form"
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
    # Imported late: loading it takes long.
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser was found: open {path} in one")
