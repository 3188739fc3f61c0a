"""The work of `tffc audit`."""

from __future__ import annotations

import datetime
import pathlib

import click

from tffc.audit import documents
from tffc.audit.audit import Audit, audit
from tffc.audit.policy import Violation, read_policy, violations
from tffc.audit.text import audit_text, violation_text
from tffc.cli.output import say, write_text
from tffc.cli.progress import step
from tffc.cli.sources import read_round_or_bundle, refuse_form_of_bundle


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
    refuse_form_of_bundle(source, form)
    today = datetime.date.today() if as_of is None else as_of.date()
    round, kind = read_round_or_bundle(source, form)
    step(f"auditing {source}")
    done = audit(round, kind)
    found = [] if known is None else violations(done, known, today)
    write_text(_document(done, found, format, source), out)
    _tell(found)


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


def _tell(found: list[Violation]) -> None:
    """Report violations of the policy; exit with 1 unless all are excepted."""
    for each in found:
        say(f"{'note' if each.excepted is not None else 'error'}: {violation_text(each)}")
    if any(each.excepted is None for each in found):
        raise click.exceptions.Exit(1)
