"""The work of `tffc diff`."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

import click

from tffc.cli.output import show_json, show_line, show_styled
from tffc.cli.screen import GREEN, RED, colors
from tffc.cli.sources import read_parts
from tffc.diff.programs import ProgramDifference, differences
from tffc.ir import Node
from tffc.printable import printable

DIFFERS = 2
COLORS = {"-": RED, "+": GREEN}


def show_difference(
    first: str,
    second: str,
    as_json: bool,
    breaking: bool,
    form: str | None,
    fail_on: str | None,
    format: str | None,
) -> None:
    """Show how two programs or bundles differ; exit with 2 if they do."""
    if breaking:
        from tffc.cli.breaking import show_changes

        if as_json and format not in (None, "json"):
            raise click.UsageError("--json and --format exclude each other")
        show_changes(first, second, form, fail_on, "json" if as_json else format or "text")
        return
    for name, value in (("--form", form), ("--fail-on", fail_on), ("--format", format)):
        if value is not None:
            raise click.UsageError(f"'{name}' has no effect: add --breaking")
    found = list(differences(*_comparable(first, second)))
    if as_json:
        show_json([dataclasses.asdict(each) for each in found])
    else:
        for each in found:
            _show(each)
    if found:
        raise click.exceptions.Exit(DIFFERS)


def _comparable(first: str, second: str) -> Iterator[dict[str, Node]]:
    """Yield the parts of both; if only one is a bundle, the rounds."""
    rounds_only = pathlib.Path(first).is_dir() != pathlib.Path(second).is_dir()
    for source in (first, second):
        parts = read_parts(source)
        if rounds_only:
            parts = {"computation": parts.get("next") or parts["computation"]}
        yield parts


def _show(difference: ProgramDifference) -> None:
    title = printable(f"{difference.component}: {difference.change}")
    click.secho(title, bold=True, color=colors())
    for line in difference.lines:
        show_styled(f"  {line}", fg=COLORS.get(line[0]))
    for line in difference.sections:
        show_line(f"  {line}")
