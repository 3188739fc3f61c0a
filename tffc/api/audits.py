"""Auditing what leaves the clients of a round."""

from __future__ import annotations

import datetime
import os
import pathlib

from tffc.api.programs import Source, bundle_of, name_of, round_of
from tffc.assurance.audit.audit import audit as audit_program
from tffc.assurance.audit.bundles import audit_bundle, program_digests, read_for_audit
from tffc.assurance.audit.policy import Policy, read_policy
from tffc.assurance.audit.report import Report as AuditReport
from tffc.assurance.audit.report import judged
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import form_for


def audit(
    source: Source | Bundle,
    form: str | None = None,
    *,
    policy: Policy | str | os.PathLike[str] | None = None,
    as_of: datetime.date | None = None,
) -> AuditReport:
    """Audit what leaves the clients of a round, and judge it by a policy if one is given.

    `source` is a program, or a bundle, which is audited as its program if its components are proved
    to compute it, and otherwise from its components.  `policy` may be the path of its YAML file;
    `as_of` is the day as of which its exceptions hold, by default today.

    Raises:
      TffcError: the program cannot be read or compiled, or the policy is not one.
    """
    known = policy
    if isinstance(known, (str, os.PathLike)):
        known = read_policy(pathlib.Path(known))
    report = _audited(source, form)
    return report if known is None else judged(report, known, as_of)


def _audited(source: Source | Bundle, form: str | None) -> AuditReport:
    bundle = bundle_of(source)
    if bundle is not None:
        reading = read_for_audit(bundle)
        return AuditReport(
            name_of(source),
            audit_bundle(bundle, reading),
            bundle.digests(),
            is_read_from_components=not reading.is_proved,
            proof=reading.answer(),
        )
    assert not isinstance(source, Bundle)
    program = round_of(source, form)
    round_ = program.computation
    audited = audit_program(round_, form or form_for(round_))
    return AuditReport(name_of(source, program), audited, program_digests(round_))
