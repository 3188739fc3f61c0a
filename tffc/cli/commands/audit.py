"""`tffc audit`: show what leaves the clients of a round, and check it against a policy."""

from __future__ import annotations

import datetime
import os
import pathlib
from typing import Any

import click

from tffc.api.audits import report_on_bundle, report_on_program
from tffc.assurance.audit import documents
from tffc.assurance.audit.audit import audit
from tffc.assurance.audit.bundles import audit_bundle
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.audit.report import Report, Verdict, judged, with_privacy
from tffc.assurance.audit.text import violation_text
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    form_option,
    path_option,
    refuse_without_effect,
    size_option,
    tff_source_option,
)
from tffc.cli.output import say, write_text
from tffc.cli.privacy import privacy_options, privacy_question, question_of
from tffc.cli.progress import step
from tffc.cli.proving import read_proved
from tffc.cli.sources import read_computation, read_round, refuse_form_of_bundle


@click.command("audit")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE", shell_complete=complete_program
)
@form_option("The form to compile the program to; a bundle has its own form.")
@path_option("--policy", metavar="FILE.yaml", help="Fail if the round violates this policy.")
@click.option(
    "--format",
    "format",
    type=click.Choice(("text", "json", "sarif", "html")),
    default="text",
    show_default=True,
    help="The format of the audit; sarif contains only violations.",
)
@click.option("-o", "--out", metavar="FILE", help="Write the audit to this file.")
@click.option(
    "--as-of",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Evaluate exceptions as of this day.  [default: today]",
)
@privacy_options()
@path_option(
    "--initialize", metavar="FILE.pb", help="With --privacy: the first state of a stored program."
)
@size_option
@tff_source_option
def audit_command(
    source: str,
    form: str | None,
    policy: pathlib.Path | None,
    format: str,
    out: str | None,
    as_of: datetime.datetime | None,
    initialize: pathlib.Path | None,
    **privacy: Any,
) -> None:
    """Show what leaves the clients of a round, how it is protected, and where it goes.

    Every aggregation is a channel. For each, shows its name and line in your program, its bytes,
    the elements of a client's data that it may depend on, and the state and output that it reaches.
    The audit holds for every argument: it may list more than a value depends on, never less. Draws
    of random numbers are not a claim of differential privacy; --privacy shows which of it follows.

    A bundle is audited as its program if its components are proved to compute it, and otherwise
    from its components; the report says which.

    A policy is a YAML file:

    \b
      operators: [federated_secure_sum, federated_mean]
      never-leave: [data.user, how many data]   # paths as in the report
      largest-bytes: 4000000
      single-client: false        # no maximum, own functions, or weights
      least-clients: 3            # held by nodes with this policy
      protection: system          # secure, system, program or none
      effects: {clients: [], server: [files]}
      epsilon: {at-most: 2, delta: 1e-6, rounds: 1500}
      exceptions:
        - channel: loss
          content: 3f8a5b0c3d1e4f7a9b2c6d8e0f1a2b3c   # as in the report
          rule: protection
          reason: reviewed, a mean over a thousand clients
          expires: 2030-01-31

    Exits with 1 if the round violates the policy.

    \b
    Examples:
      tffc audit examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc audit build/training --format html -o audit.html
      tffc audit examples/private_averaging/private_averaging.py:training \\
          --privacy --rounds 30 --sampling-rate 0.05
    """
    if policy is None:
        refuse_without_effect("add --policy", "as_of")
        if format == "sarif":
            raise click.UsageError("'--format sarif' has nothing to show: add --policy")
    known = None if policy is None else read_policy(policy)
    question = question_of(known, privacy_question(**privacy))
    if initialize is not None and question is None:
        raise click.UsageError("'--initialize' has no effect: add --privacy")
    refuse_form_of_bundle(source, form)
    report = _audited(source, form, question, initialize)
    if known is not None:
        report = judged(report, known, None if as_of is None else as_of.date())
    write_text(FORMATS[format](report), out)
    _tell(report)


@collector_paused()
def _audited(
    source: str,
    form: str | None,
    question: PrivacyQuestion | None,
    initialize: pathlib.Path | None,
) -> Report:
    """Return the report of a program, or of a bundle after an attempt to prove it."""
    if not os.path.isdir(source):
        program = read_round(source, form)
        round, kind = program.computation, form or form_for(program.computation)
        first = program.initialize if initialize is None else read_computation(initialize)
        step(f"auditing {source}")
        report = report_on_program(source, round, audit(round, kind, program.discount))
        return with_privacy(report, round, first, question)
    if initialize is not None:
        raise click.UsageError("'--initialize' has no effect: a bundle has its own")
    bundle = read_bundle(pathlib.Path(source))
    reading = read_proved(source, bundle)
    step(f"auditing {source}")
    report = report_on_bundle(source, bundle, reading, audit_bundle(bundle, reading))
    return with_privacy(report, reading.program, bundle.initialize, question)


FORMATS = {
    "text": documents.audit_text,
    "json": documents.audit_json,
    "sarif": documents.audit_sarif,
    "html": documents.audit_html,
}
"""The writers of the formats."""


def _tell(report: Report) -> None:
    """Report violations of the policy; exit with 1 unless all are excepted."""
    for each in report.violations:
        say(f"{'note' if each.excepted is not None else 'error'}: {violation_text(each)}")
    if report.verdict is Verdict.VIOLATES:
        raise click.exceptions.Exit(1)
