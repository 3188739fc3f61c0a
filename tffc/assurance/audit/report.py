"""The report of an audit: what was read, which policy was applied, and the verdict.

`document` is the report as plain data, from which JSON, HTML and text are written.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tffc.assurance.audit.audit import Audit, Depends
from tffc.assurance.audit.cell import audit_cell
from tffc.assurance.audit.page import audit_page
from tffc.assurance.audit.places import report_path, report_place
from tffc.assurance.audit.policy import (
    DESCRIPTIONS,
    Policy,
    Violation,
    Waiver,
    requirements,
    violations,
)
from tffc.assurance.audit.text import report_text, violation_text
from tffc.assurance.audit.tool import tool_digest
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.language.nodes import Node
from tffc.support.errors import Span
from tffc.support.guards import is_dict, is_tuple
from tffc.support.version import VERSION

if TYPE_CHECKING:
    from tffc.assurance.privacy.answer import Privacy

Plain = dict[str, Any]
"""Data that JSON can hold."""


COMPONENTS = "components/"
"""The beginning of the paths of components in a bundle."""


class Verdict(enum.Enum):
    """The verdict of a policy on a round."""

    PASSES = "passes"
    VIOLATES = "violates"
    NO_POLICY = "no policy"


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Report:
    """An audit with all that a reader needs to judge it.

    `source` is the argument of the command, and `digests` are those of the programs in it.
    `is_read_from_components` says that the audit is of a bundle's components and not of its
    program, and `proof` what the prover answered: `answer`, `prover` and `reason`; None if the
    source is not a bundle.  `clients_part` is the SHA-256 that approvals of a bundle are about.
    `as_of` is the day of the verdict, if one was asked for, and so is the answer about `privacy`.
    """

    source: str
    audit: Audit
    digests: Mapping[str, str]
    is_read_from_components: bool = False
    proof: Mapping[str, Any] | None = None
    policy: Policy | None = None
    violations: Sequence[Violation] = ()
    as_of: datetime.date | None = None
    clients_part: str | None = None
    privacy: Privacy | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict, in which excepted violations do not count."""
        if self.policy is None:
            return Verdict.NO_POLICY
        broken = any(violation.excepted is None for violation in self.violations)
        return Verdict.VIOLATES if broken else Verdict.PASSES

    @property
    def until(self) -> datetime.date | None:
        """The last day on which all exceptions that the verdict needs hold."""
        uses = (violation.waiver for violation in self.violations if violation.excepted is not None)
        days = [waiver.expires for waiver in uses if waiver is not None]
        return min(days, default=None) if self.verdict is Verdict.PASSES else None

    @property
    def digest(self) -> str | None:
        """The SHA-256 of what was read: the program, or the list of all components; None for a
        program that cannot be stored."""
        if not self.is_read_from_components:
            return self.digests.get("computation")
        parts = sorted(self.digests.items())
        listed = (f"{digest}  {name}\n" for name, digest in parts if name.startswith(COMPONENTS))
        return hashlib.sha256("".join(listed).encode()).hexdigest()

    def sentence(self) -> str:
        """Return the verdict as a sentence."""
        broken = sum(violation.excepted is None for violation in self.violations)
        excepted = len(self.violations) - broken
        with_exceptions = f", with {_counted(excepted, 'exception')}" if excepted else ""
        match self.verdict:
            case Verdict.NO_POLICY:
                return "no policy was applied"
            case Verdict.VIOLATES:
                return f"violates the policy: {_counted(broken, 'violation')}{with_exceptions}"
            case Verdict.PASSES:
                until = f" until {self.until}" if self.until is not None else ""
                return f"passes the policy{with_exceptions}{until}"

    def page(self) -> str:
        """Return the report as one self-contained HTML page without scripts."""
        spans = [violation.span for violation in self.violations]
        lines = ["" if span is None else span.source_line() for span in spans]
        return audit_page(document(self), lines)

    def __repr__(self) -> str:
        return f"<audit of {source_name(self.source)}: {self.sentence()}>"

    def __str__(self) -> str:
        lines = () if self.privacy is None else self.privacy.lines()
        return report_text(document(self), self.audit, report_place, lines)

    def _repr_html_(self) -> str:
        return audit_cell(document(self), self.page())

    def what_was_read(self) -> str:
        """Return a sentence about what the audit was made from."""
        if self.proof is None:
            return "the program"
        if self.is_read_from_components:
            return f"the components of the bundle; {self.proof['reason']}"
        return "the program of the bundle; its components are proved to compute it"


def with_privacy(
    report: Report, program: Node, initialize: Node | None, question: PrivacyQuestion | None
) -> Report:
    """Return a report with the answer to a question about privacy, if there is one.

    Raises:
      MissingExtraError: `dp-accounting` is not installed.
      TffcError: as `privacy_of_program` does.
    """
    if question is None:
        return report
    # Imported late, as elsewhere: it imports NumPy, which only this question needs.
    from tffc.assurance.privacy.answer import privacy_of_program

    audited = report.audit
    answer = privacy_of_program(program, audited.form, audited, initialize, question)
    return dataclasses.replace(report, privacy=answer)


def judged(report: Report, policy: Policy, as_of: datetime.date | None) -> Report:
    """Return a report with the violations of a policy, as of a day or else of today.

    Raises:
      PolicyError: the policy names something that the round does not have.
    """
    broken = violations(report.audit, policy, as_of or datetime.date.today(), report.privacy)
    return dataclasses.replace(report, policy=policy, violations=broken, as_of=as_of)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def source_name(source: str) -> str:
    """Return the argument of a command as reports have it."""
    path, colon, name = source.partition(":")
    return f"{report_path(path)}{colon}{name}"


def document(report: Report) -> Plain:
    """Return a report as plain data."""
    return {
        "format": 1,
        "tool": {"name": "tffc", "version": VERSION, "digest": tool_digest()},
        "source": source_name(report.source),
        "as_of": plain(report.as_of),
        "verdict": {
            "word": report.verdict.value,
            "text": report.sentence(),
            "violations": sum(violation.excepted is None for violation in report.violations),
            "excepted": sum(violation.excepted is not None for violation in report.violations),
            "until": plain(report.until),
        },
        "read": {
            "what": "components" if report.is_read_from_components else "program",
            "text": report.what_was_read(),
            "proof": None if report.proof is None else dict(report.proof),
        },
        "program": {
            "digest": report.digest,
            "digests": dict(report.digests),
            "clients_part": report.clients_part,
            "form": report.audit.form,
            "type": report.audit.type,
        },
        "policy": None if report.policy is None else _policy(report, report.policy),
        "audit": _audit(report.audit),
        "privacy": None if report.privacy is None else report.privacy.document(),
        "violations": [_violation(violation) for violation in report.violations],
    }


def _audit(audit: Audit) -> Plain:
    content = plain(audit)
    for channel, described in zip(audit.channels, content["channels"], strict=True):
        described["shown_protection"] = channel.shown_protection
    content["in_no_channel"] = audit.in_no_channel
    content["in_errors"] = audit.in_texts_of_errors
    content["only_in_effects"] = audit.only_in_effects
    content["seen_by_aggregator"] = audit.seen_by_aggregator
    if audit.in_groups is not None:
        content["in_groups"] = audit.in_groups
    if audit.buffered is not None:
        content["buffered"] = audit.buffered
    if audit.resources:
        content["resources"] = plain(audit.resources)
    return content


def _violation(violation: Violation) -> Plain:
    return {**plain(violation), "text": violation_text(violation, report_place)}


def _policy(report: Report, policy: Policy) -> Plain:
    return {
        "path": report_path(policy.path) if policy.path else None,
        "digest": policy.digest or None,
        "rules": [_rule(report, rule, text) for rule, text in requirements(policy).items()],
        "exceptions": [_exception(report, waiver) for waiver in policy.exceptions],
    }


def _rule(report: Report, rule: str, text: str) -> Plain:
    broken = [violation for violation in report.violations if violation.rule == rule]
    count = sum(violation.excepted is None for violation in broken)
    verdict = "violated" if count else "excepted" if broken else "holds"
    return {
        "rule": rule,
        "requires": text,
        "means": DESCRIPTIONS[rule],
        "verdict": "checked when rounds run" if rule == "least-clients" else verdict,
        "violations": count,
        "excepted": len(broken) - count,
    }


def _exception(report: Report, waiver: Waiver) -> Plain:
    uses = [violation for violation in report.violations if violation.waiver == waiver]
    ended = any(use.expired is not None for use in uses)
    state = "ended" if ended else "in use" if uses else "not needed"
    return {**plain(waiver), "state": state}


def plain(value: object) -> Any:
    """Convert a value to JSON: a dataclass to its fields, an enumeration member to its name, a span
    to file and line."""
    if isinstance(value, Span):
        return {"file": report_path(value.file), "line": value.line}
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field for field in dataclasses.fields(value) if field.repr)
        content = {field.name: plain(getattr(value, field.name)) for field in fields}
        return (
            {**content, "listed": plain(value.listed())} if isinstance(value, Depends) else content
        )
    if is_dict(value):
        return {key: plain(member) for key, member in value.items()}
    if is_tuple(value):
        return [plain(member) for member in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)
