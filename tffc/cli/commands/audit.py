"""`tffc audit`: show what leaves the clients of a round, and check it against a policy."""

from __future__ import annotations

import datetime
import pathlib
from hashlib import sha256

import click

from tffc.audit import documents
from tffc.audit.audit import Audit, audit
from tffc.audit.page import AppliedPolicy, Audited, audit_html
from tffc.audit.policy import Violation, read_policy, violations
from tffc.audit.text import audit_text, violation_text
from tffc.cli.options import form_option, path_option, refuse_without_effect, size_option
from tffc.cli.output import say, write_text
from tffc.cli.progress import step
from tffc.cli.sources import read_round_or_bundle, refuse_form_of_bundle
from tffc.files.reading import read_named
from tffc.files.yaml_file import MAX_BYTES
from tffc.ir import wire
from tffc.version import VERSION


@click.command("audit")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE")
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
@size_option
def audit_command(
    source: str,
    form: str | None,
    policy: pathlib.Path | None,
    format: str,
    out: str | None,
    as_of: datetime.datetime | None,
) -> None:
    """Show what leaves the clients of a round, how it is protected, and where it goes.

    Every aggregation is a channel. For each, shows its name and line in your program, its bytes,
    the elements of a client's data that it may depend on, and the state and output that it reaches.
    The audit holds for every argument: it may list more than a value depends on, never less. Draws
    of random numbers are not a claim of differential privacy.

    A policy is a YAML file:

    \b
      operators: [federated_secure_sum, federated_mean]
      never-leave: ['data.user.*']
      largest-bytes: 4000000
      protection: system          # secure, system, program or none
      noise: true
      effects: {clients: [], server: [files]}
      exceptions:
        - channel: loss
          rule: protection
          reason: reviewed, a mean over a thousand clients
          expires: 2030-01-31

    Exits with 1 if the round violates the policy.

    \b
    Examples:
      tffc audit examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc audit build/training --format html -o audit.html
    """
    if policy is None:
        refuse_without_effect("add --policy", "as_of")
        if format == "sarif":
            raise click.UsageError("'--format sarif' has nothing to show: add --policy")
    known = None if policy is None else read_policy(policy)
    refuse_form_of_bundle(source, form)
    today = datetime.date.today() if as_of is None else as_of.date()
    round, kind = read_round_or_bundle(source, form)
    step(f"auditing {source}")
    done = audit(round, kind)
    found = [] if known is None else violations(done, known, today)
    if format == "html":
        applied = None
        if policy is not None and known is not None:
            file = read_named(policy, MAX_BYTES)
            applied = AppliedPolicy(policy.name, sha256(file).hexdigest(), known, today)
        digest = sha256(wire.to_bytes(round)).hexdigest()
        tool = f"tffc {VERSION}"
        page = Audited(done, source, digest, tool, "", "the program", False, applied, tuple(found))
        write_text(audit_html(page), out)
    else:
        write_text(_document(done, found, format, source), out)
    _tell(found)


def _document(done: Audit, found: list[Violation], format: str, source: str) -> str:
    match format:
        case "json":
            return documents.audit_json(done, found)
        case "sarif":
            return documents.audit_sarif(found, pathlib.Path(source.partition(":")[0]))
        case _:
            return audit_text(done)


def _tell(found: list[Violation]) -> None:
    """Report violations of the policy; exit with 1 unless all are excepted."""
    for each in found:
        say(f"{'note' if each.excepted is not None else 'error'}: {violation_text(each)}")
    if any(each.excepted is None for each in found):
        raise click.exceptions.Exit(1)
