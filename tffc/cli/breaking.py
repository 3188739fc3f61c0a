"""The work of `tffc diff --breaking`: classifying changes of a round by what they break."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

import click

from tffc.assurance.audit.breaking import Breaks, Change, changes
from tffc.assurance.audit.bundles import read_for_audit
from tffc.assurance.audit.places import place
from tffc.assurance.audit.report import source_name
from tffc.assurance.audit.sarif import Finding, Run, analyzed, sarif
from tffc.assurance.proof.prove import Answer
from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.annotations import annotation
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step
from tffc.cli.sources import read_older, read_round_or_bundle
from tffc.support.errors import shown_path

BROKEN = 2
"""The exit code if a change breaks something in `--fail-on`."""


def show_changes(
    first: str, second: str, form: str | None, fail_on: str | None, format: str
) -> None:
    """Print the changes from one round to another; exit with 2 if one breaks a kind in
    `fail_on`."""
    failing = _kinds(fail_on)
    new, form = read_round_or_bundle(second, form)
    old = read_older(first, second, form)
    step(f"comparing {first} with {second}")
    shown = [*changes(old, new, form), *unproved(second)]
    _show(shown, failing, format, second)
    if any(change.breaks in failing for change in shown):
        raise click.exceptions.Exit(BROKEN)


def unproved(source: str) -> Iterator[Change]:
    """Yield a change if the components of a bundle are not proved to compute its program, because
    then the program may say nothing of what runs."""
    if pathlib.Path(source).is_dir():
        reading = read_for_audit(read_bundle(pathlib.Path(source)))
        if reading.error is not None:
            is_other = reading.proof.answer is Answer.DIFFERENT
            breaks = Breaks.RESULT if is_other else Breaks.INSIDE
            yield Change(breaks, "bundle", f"is read from its components: {reading.error.message}")


def _kinds(given: str | None) -> frozenset[Breaks]:
    if given is None:
        return frozenset(Breaks) - {Breaks.INSIDE}
    names = [name.strip().upper() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in Breaks.__members__:
            known = ", ".join(each.lower() for each in Breaks.__members__)
            raise click.UsageError(f"'--fail-on' takes {known}, not {name.lower()!r}")
    return frozenset(Breaks[name] for name in names)


# Output.


def _show(found: Sequence[Change], failing: frozenset[Breaks], format: str, source: str) -> None:
    match format:
        case "json":
            show_json([_plain(change, failing) for change in found])
        case "sarif":
            click.echo(_sarif(found, failing, source), nl=False)
        case "github":
            for change in found:
                if change.breaks in failing:
                    file, line = _file_and_line(change, source)
                    title = f"tffc diff: {change.breaks.name}"
                    click.echo(annotation(file, line, title, f"{change.subject} {change.message}"))
        case _:
            for change in found:
                at = "" if change.span is None else f"{place(change.span)}: "
                show_line(f"{change.breaks.name}: {at}{change.subject} {change.message}")


def _file_and_line(change: Change, source: str) -> tuple[str, int]:
    if change.span is None:
        return source.partition(":")[0], 1
    return shown_path(change.span.file), change.span.line


def _plain(change: Change, failing: frozenset[Breaks]) -> dict[str, object]:
    file, line = (None, None) if change.span is None else _file_and_line(change, "")
    return {
        "breaks": change.breaks.name,
        "fails": change.breaks in failing,
        "subject": change.subject,
        "message": change.message,
        "file": file,
        "line": line,
    }


def _sarif(found: Sequence[Change], failing: frozenset[Breaks], source: str) -> str:
    findings = (
        Finding(
            change.breaks.name,
            "error" if change.breaks in failing else "note",
            f"{change.subject} {change.message}",
            change.span,
        )
        for change in found
    )
    run = Run(
        tool="tffc diff",
        category=source_name(source),
        source=pathlib.Path(source.partition(":")[0]),
        rules={each.name: each.value for each in Breaks},
        help="changes",
        inputs=analyzed(source),
    )
    return sarif(run, findings)
