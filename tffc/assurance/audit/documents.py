"""The report of an audit as text, JSON, SARIF and HTML."""

from __future__ import annotations

import pathlib

from tffc.assurance.audit.policy import RULES
from tffc.assurance.audit.report import Report, document, source_name
from tffc.assurance.audit.sarif import CONFIGURING, Finding, Input, Run, analyzed, sarif
from tffc.support.printable import json_text


def audit_text(report: Report) -> str:
    """Return a report as lines for people."""
    return str(report)


def audit_json(report: Report) -> str:
    """Return a report as JSON."""
    return json_text(document(report), indent=2) + "\n"


def audit_html(report: Report) -> str:
    """Return a report as one self-contained page without scripts."""
    return report.page()


def audit_sarif(report: Report) -> str:
    """Return the violations of a report's policy as SARIF; one without a line is reported at the
    first line of the source."""
    findings = (
        Finding(
            violation.rule,
            "error",
            f"{violation.subject}: {violation.message}",
            violation.span,
            violation.excepted,
        )
        for violation in report.violations
    )
    content, policy = document(report), report.policy
    configuring = () if policy is None else (Input(policy.path, policy.digest, CONFIGURING),)
    run = Run(
        tool="tffc audit",
        category=f"{source_name(report.source)}/{report.audit.form}",
        source=pathlib.Path(report.source.partition(":")[0]),
        rules=RULES,
        help="audit",
        inputs=(*analyzed(report.source), *configuring),
        properties={
            key: content[key] for key in ("tool", "source", "as_of", "verdict", "read", "program")
        },
    )
    return sarif(run, findings)
