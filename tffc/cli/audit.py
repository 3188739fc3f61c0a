"""The work of `tffc audit`."""

from __future__ import annotations

import datetime
import os
import pathlib

import click

from tffc.audit import documents
from tffc.audit.audit import Audit, audit
from tffc.audit.policy import Violation, read_policy, violations
from tffc.audit.text import audit_text, violation_text
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.output import say, write_output
from tffc.cli.progress import step
from tffc.cli.sources import read_round
from tffc.ir.nodes import Node


def audit_program(
    source: str,
    form: str | None,
    policy: pathlib.Path | None,
    format: str,
    out: str | None,
    as_of: datetime.datetime | None,
) -> None:
    """Write the audit of a round; fail if it violates the policy."""
    if as_of is not None and policy is None:
        raise click.UsageError("'--as-of' has no effect: add --policy")
    if format == "sarif" and policy is None:
        raise click.UsageError("'--format sarif' has nothing to show: add --policy")
    known = None if policy is None else read_policy(policy)
    today = datetime.date.today() if as_of is None else as_of.date()
    done = _audit(source, form)
    found = [] if known is None else violations(done, known, today)
    _write(_document(done, found, format, source), out)
    _tell(found)


def _audit(source: str, form: str | None) -> Audit:
    program, name = _program(source, form)
    step(f"auditing {source}")
    return audit(program, name)


def _program(source: str, form: str | None) -> tuple[Node, str]:
    """Return the round of a bundle or a program, and its form."""
    if os.path.isdir(source):
        if form is not None:
            raise click.UsageError(
                f"{source} is a folder, and a bundle has its own form: omit --form"
            )
        bundle = read_bundle(pathlib.Path(source))
        return bundle.computation, bundle.form
    program = read_round(source, form)
    return program.computation, form or form_for(program.computation)


def _document(done: Audit, found: list[Violation], format: str, source: str) -> str:
    match format:
        case "json":
            return documents.audit_json(done, found)
        case "sarif":
            return documents.audit_sarif(found, pathlib.Path(source.partition(":")[0]))
        case "html":
            return documents.audit_html(done, found, source)
        case _:
            return audit_text(done)


def _write(document: str, out: str | None) -> None:
    if out is None or out == "-":
        click.echo(document, nl=False)
        return
    write_output(pathlib.Path(out), document.encode())
    say(f"wrote {out}")


def _tell(found: list[Violation]) -> None:
    """Report violations of the policy; exit with 1 unless all are excepted."""
    for each in found:
        say(f"{'note' if each.excepted is not None else 'error'}: {violation_text(each)}")
    if any(each.excepted is None for each in found):
        raise click.exceptions.Exit(1)
