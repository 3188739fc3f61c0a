"""Auditing what leaves the clients of a round."""

from __future__ import annotations

import datetime

from tffc.api.boundary import public
from tffc.api.opened_bundles import name_of, opened
from tffc.api.programs import Source, round_of
from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.audit import audit as audit_program
from tffc.assurance.audit.bundles import (
    Reading,
    audit_bundle,
    program_digests,
    read_for_audit,
)
from tffc.assurance.audit.policy import Policy
from tffc.assurance.audit.policy_reading import PolicySource, PrivacySource, policy_of, question_of
from tffc.assurance.audit.report import Report, judged, with_privacy
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.assurance.trust.subjects import clients_part
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import form_for
from tffc.language.nodes import Node
from tffc.support.errors import LanguageValueError


@public
def audit(
    source: Source | Bundle,
    form: str | None = None,
    *,
    policy: PolicySource | None = None,
    as_of: datetime.date | None = None,
    privacy: PrivacySource | None = None,
) -> Report:
    """Audit what leaves the clients of a round, and judge it by a policy if one is given.

    `source` is a program, or a bundle, which is audited as its program if its components are proved
    to compute it, and otherwise from its components.  `policy` is the path of a YAML file, or its
    content as a dictionary; `as_of` is the day as of which its exceptions hold, by default today.
    With `privacy`, the report says which differential privacy is shown: a dictionary like that of
    `epsilon` in a policy, which may leave all out, as {"rounds": 100, "sampling-rate": 0.01}.  A
    policy with `epsilon` asks for that itself.

    Raises:
      TffcError: the program cannot be read or compiled, or the policy is not one.
    """
    known = None if policy is None else policy_of(policy)
    report = _audited(source, form, asked_question(known, privacy))
    return report if known is None else judged(report, known, as_of)


def asked_question(policy: Policy | None, privacy: PrivacySource | None) -> PrivacyQuestion | None:
    """Return what a policy or a caller asks about privacy, if one of them does.

    Raises:
      TffcError: they ask differently, or what the caller asks is no question.
    """
    asked = None if policy is None else policy.epsilon
    question = None if privacy is None else question_of(privacy)
    if question is not None and asked not in (None, question):
        raise LanguageValueError(
            "E706",
            "the policy asks for an ε of its own",
            help="leave privacy out, which a policy with epsilon does not need",
        )
    return question or asked


def _audited(source: Source | Bundle, form: str | None, question: PrivacyQuestion | None) -> Report:
    name, source = name_of(source), opened(source, form)
    if isinstance(source, Bundle):
        reading = read_for_audit(source)
        report = report_on_bundle(name, source, reading, audit_bundle(source, reading))
        return with_privacy(report, reading.program, source.initialize, question)
    program = round_of(source, form)
    round_ = program.computation
    audited = audit_program(round_, form or form_for(round_), program.discount)
    report = report_on_program(name_of(source, program), round_, audited)
    return with_privacy(report, round_, program.initialize, question)


def report_on_program(name: str, program: Node, audited: Audit) -> Report:
    """Return the report of the audit of a program, without a policy."""
    return Report(name, audited, program_digests(program))


def report_on_bundle(name: str, bundle: Bundle, reading: Reading, audited: Audit) -> Report:
    """Return the report of the audit of what was read of a bundle, without a policy."""
    return Report(
        name,
        audited,
        bundle.digests(),
        is_read_from_components=not reading.is_proved,
        proof=reading.answer(),
        clients_part=clients_part(bundle).digest,
    )
