"""The work of `tffc data`."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import click

from tffc.cli.diagnostics import show_error
from tffc.cli.flags import facts_of
from tffc.cli.output import say, show_json, show_line
from tffc.cli.progress import index_step, step
from tffc.cli.runnable import data_type
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType
from tffc.runtime.data.description import describe as describe_data
from tffc.runtime.data.location import open_data
from tffc.runtime.data.packing import check_pack_target, write_pack
from tffc.runtime.data.source import DataSet, Fit, fit
from tffc.support.errors import DataError, abridge
from tffc.support.files.inputs import check_no_input
from tffc.support.printable import counted

MOST_ERRORS = 10
"""The most clients whose errors are shown."""


def describe(source: str, program: str | None, as_json: bool) -> None:
    """Show figures of a data source, or with a program, whether its clients' data fits that; exit
    with 1 if it does not."""
    data = open_data(source, index_step(source))
    found = None
    if program is not None:
        found = fit(data, data_type(program), step("checking", "clients"))
    if as_json:
        show_json(_finding(source, data, found))
    elif found is None:
        for line in describe_data(data).lines(source):
            show_line(line)
    else:
        for line in _lines(source, data, found):
            show_line(line)
        _show_errors(found)
    if found is not None and not found.is_whole:
        raise click.exceptions.Exit(DataError.exit_code)


def pack(source: str, out: pathlib.Path, program: str | None, force: bool) -> None:
    """Write the data of all clients into one file."""
    check_pack_target(out, replace=force)
    data = open_data(source, index_step(source))
    type = None if program is None else data_type(program)
    check_no_input(out)
    write_pack(data, type, out, progress=step("packing", "clients"))
    say(f"packed {counted(len(data.clients), 'client')} into {out}")


def _lines(source: str, data: DataSet, fit: Fit) -> Iterator[str]:
    yield f"{source}: {counted(len(data.clients), 'client')}"
    kinds = _kinds(data, fit)
    width = max(map(len, kinds), default=0)
    for name, kind in kinds.items():
        yield f"  {name.ljust(width)}  {kind}"
    yield from _sizes(fit)
    clients, bad = len(data.clients), len(fit.errors)
    expected = abridge(f"`{fit.type}`")
    if fit.error is not None:
        yield f"no client fits {expected}"
    elif bad:
        do = "does" if bad == 1 else "do"
        yield f"{bad} of {counted(clients, 'client')} {do} not fit {expected}"
    else:
        yield f"{counted(clients, 'client')} {'fit' if clients > 1 else 'fits'} {expected}"


def _kinds(data: DataSet, fit: Fit | None) -> dict[str, str]:
    """Return a description of each part of the clients' data; none if `fit` already reports why the
    data cannot be read."""
    try:
        return dict(data.kinds())
    except DataError:
        if fit is None:
            raise
        return {}


def _sizes(fit: Fit) -> Iterator[str]:
    """Yield the range of each sequence's lengths at the clients."""
    if not fit.lengths:
        return
    sequences = [leaf for leaf in leaves(fit.type) if isinstance(leaf, SequenceType)]
    for sequence, lengths in zip(sequences, zip(*fit.lengths.values(), strict=True), strict=True):
        least, most, total = min(lengths), max(lengths), sum(lengths)
        span = str(least) if least == most else f"{least} to {most}"
        yield f"  {abridge(f'`{sequence}`')}: {span} elements a client, {total} in all"


def _show_errors(fit: Fit) -> None:
    errors = [*fit.errors.values()] if fit.error is None else [fit.error]
    explained: set[str] = set()
    helped: set[str | None] = set()
    for error in errors[:MOST_ERRORS]:
        help = error.help
        error.help = None if help in helped else help
        show_error(error, explain=error.code not in explained)
        error.help = help
        explained.add(error.code)
        helped.add(help)
    if len(errors) > MOST_ERRORS:
        click.echo(f"... and {len(errors) - MOST_ERRORS} more; --json shows all", err=True)


def _finding(source: str, data: DataSet, fit: Fit | None) -> dict[str, Any]:
    finding: dict[str, Any] = {
        "source": source,
        "clients": list(data.clients),
        "found": _kinds(data, fit),
    }
    if fit is None:
        figures = dataclasses.asdict(describe_data(data))
        finding |= {name: figures[name] for name in ("rows", "bytes", "columns", "sizes")}
    else:
        finding["type"] = str(fit.type)
        finding["fits"] = fit.is_whole
        finding["lengths"] = {client: list(each) for client, each in fit.lengths.items()}
        finding["errors"] = {client: facts_of(error) for client, error in fit.errors.items()}
        finding["error"] = None if fit.error is None else facts_of(fit.error)
    return finding
