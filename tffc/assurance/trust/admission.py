"""The gate of a node: whether a bundle may run, with the reason of each verdict.

Nothing that a bundle says of itself is believed.  Its files must be what a trusted key has signed,
its proof and its audit are made again here, and the claims of the signature must agree with them.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tffc.assurance.audit.audit import Audit, unmasked
from tffc.assurance.audit.policy import Policy, broken_rules, violations, without_choices
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.proof.prove import VERSION as PROVER
from tffc.assurance.trust.approvals import find_approval
from tffc.assurance.trust.claims import Findings, differences
from tffc.assurance.trust.envelopes import decode_signature, verified
from tffc.assurance.trust.keys import Trusted, read_trusted
from tffc.assurance.trust.settings import AdmissionSettings, SizeLimits
from tffc.assurance.trust.sizes import ProgramSizes
from tffc.assurance.trust.statements import Statement
from tffc.assurance.trust.subjects import subjects_of
from tffc.backends.bundle.bundle import Bundle
from tffc.graphs.node import tokens
from tffc.runtime.operations.counts import count_admission
from tffc.runtime.runs.json_lines import append_line
from tffc.support.errors import LanguageValueError, PolicyError, TffcError, TrustError
from tffc.support.files.reading import read_regular
from tffc.support.printable import printable


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one demand, with its reason."""

    demand: str
    passes: bool
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Admission:
    """The verdicts on a bundle; `program` and `part` are the SHA-256 of its program and its
    clients' part."""

    source: str
    program: str
    part: str
    verdicts: Sequence[Verdict]

    @property
    def is_admitted(self) -> bool:
        """Whether every demand is met."""
        return all(verdict.passes for verdict in self.verdicts)

    def line(self) -> str:
        """Return the admission as one line."""
        word = "admitted" if self.is_admitted else "refused"
        shown = (
            f"{each.demand} {'ok' if each.passes else 'REFUSED'} ({each.reason})"
            for each in self.verdicts
        )
        return printable(
            f"{word} {self.source}, clients' part {self.part[:16]}: {'; '.join(shown)}"
        )

    def data(self) -> dict[str, Any]:
        """Return the admission as data for JSON."""
        return {
            "admitted": self.is_admitted,
            "bundle": self.source,
            "program": self.program,
            "clientsPart": self.part,
            "verdicts": [
                {"demand": each.demand, "passes": each.passes, "reason": each.reason}
                for each in self.verdicts
            ],
        }

    def check(self) -> None:
        """Check that every demand is met.

        Raises:
          TrustError: one is not.
        """
        if not self.is_admitted:
            raise TrustError(
                "E880",
                f"{self.source} is not admitted here",
                notes=tuple(f"{v.demand}: {v.reason}" for v in self.verdicts if not v.passes),
                help="ask whoever sent it, or the operator of this node",
            )


def admission_of(
    bundle: Bundle,
    settings: AdmissionSettings,
    source: str,
    *,
    files: Mapping[str, str] | None = None,
    are_masked: bool = True,
    are_drawn: bool = True,
    today: datetime.date | None = None,
) -> Admission:
    """Return the verdicts of a node on a bundle, and write them to the log of the settings.

    `files` are the SHA-256 of all of its files if it is in a folder; by default, what runs is
    compared.  Unless `are_masked`, secure sums count as aggregated by the system, and unless
    clients `are_drawn` in secret, it does not matter how a policy says that they are chosen.

    Raises:
      TffcError: the settings name keys, a policy or a log that cannot be used.
      FormError: the components are not those of the form.
    """
    findings = Findings.of(bundle)
    files = subjects_of(bundle, files)
    gate = _Gate(findings, files, today or datetime.date.today(), are_drawn=are_drawn)
    audit = findings.audit if are_masked else unmasked(findings.audit)
    program = bundle.digests()["computation"]
    verdicts = list(gate.verdicts(settings, audit))
    admission = Admission(source, program, findings.part.digest, verdicts)
    if settings.log is not None:
        _append(settings.log, admission)
    count_admission(is_admitted=admission.is_admitted)
    return admission


def basis_of(settings: AdmissionSettings, part: str, today: datetime.date) -> str:
    """Return a digest of everything beside the bundle that an admission depends on: the demands,
    the keys, the policy, the approvals of the clients' part, the day.  While it stays the same, an
    admission of the same bundle stays true."""
    content = hashlib.sha256(f"{settings} {today} {part}".encode())
    paths = [settings.keys, settings.policy, settings.approvers]
    store = settings.approvals
    for path in filter(None, [*paths, store and store / part]):
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            # What cannot be read counts too: a revocation in a damaged file is one.
            try:
                read = read_regular(file, MAX_BASIS)
            except OSError as error:
                read = f"{type(error).__name__} {error.errno}".encode()
            content.update(tokens((file.name, read)))
    return content.hexdigest()


MAX_BASIS = 2**20
"""The most bytes of a file that an admission depends on; what is larger is no key, policy or
approval."""


class _Gate:
    def __init__(
        self,
        findings: Findings,
        files: Mapping[str, str],
        today: datetime.date,
        *,
        are_drawn: bool,
    ) -> None:
        self._are_drawn = are_drawn
        self._findings = findings
        self._files = files
        self._today = today

    def verdicts(self, settings: AdmissionSettings, audit: Audit) -> Iterator[Verdict]:
        if settings.keys is not None:
            yield self._signatures(read_trusted([settings.keys]), settings.signatures)
        if settings.proof:
            yield self._proof()
        if settings.policy is not None:
            yield self._policy(read_policy(settings.policy), audit)
        if settings.limits != SizeLimits():
            yield from self._limits(settings.limits)
        if settings.approvals is not None and settings.approvers is not None:
            yield self._approval(settings.approvals, read_trusted([settings.approvers]))

    def _signatures(self, keys: Sequence[Trusted], least: int) -> Verdict:
        signers, reasons = trusted_signers(self._findings, self._files, keys)
        if len(signers) >= least:
            return Verdict("signature", True, f"by {', '.join(signers)}")
        if not self._findings.bundle.signatures:
            reasons = ["nobody has signed it"]
        by = f"by {', '.join(signers)}, and {least} are demanded" if signers else ""
        return Verdict("signature", False, "; ".join(filter(None, [by, *reasons])))

    def _proof(self) -> Verdict:
        reading = self._findings.reading
        if reading.error is None:
            return Verdict("proof", True, f"proved here, by prover {PROVER}")
        return Verdict("proof", False, reading.error.message)

    def _policy(self, policy: Policy, audit: Audit) -> Verdict:
        if not self._are_drawn:
            policy = without_choices(policy)
        try:
            privacy = self._findings.privacy_in(audit, policy.epsilon)
            reasons = broken_rules(violations(audit, policy, self._today, privacy))
            if privacy is not None and not self._are_drawn:
                reasons.extend(privacy.unseen())
        except (PolicyError, LanguageValueError) as error:
            reasons = [error.message]
        if reasons:
            return Verdict("policy", False, "; ".join(reasons))
        return Verdict("policy", True, f"passes {policy.digest[:16]}")

    def _limits(self, limits: SizeLimits) -> Iterator[Verdict]:
        sizes = ProgramSizes.of(self._findings.bundle, self._findings.part)
        for name in ("bytes", "operations", "memory"):
            limit, size = getattr(limits, name), getattr(sizes, name)
            if limit is not None:
                yield Verdict(name, size <= limit, f"{size}, and at most {limit}")

    def _approval(self, store: pathlib.Path, keys: Sequence[Trusted]) -> Verdict:
        try:
            approval = find_approval(store, self._findings.part.digest, keys, self._today)
        except TrustError as error:
            return Verdict("approval", False, "; ".join([error.message, *error.notes]))
        return Verdict("approval", True, str(approval))


def trusted_signers(
    findings: Findings, files: Mapping[str, str], keys: Sequence[Trusted]
) -> tuple[list[str], list[str]]:
    """Return the names of the trusted keys whose signatures are about the bundle and true of it,
    each once, and why other signatures are not."""
    signers: list[str] = []
    reasons: list[str] = []
    for path, content in sorted(findings.bundle.signatures.items()):
        try:
            key, statement = verified(decode_signature(content, path), keys)
            check_claims(path, statement, files, findings)
        except TffcError as error:
            reasons.append("; ".join([error.message, *error.notes]))
            continue
        if key not in signers:
            signers.append(key)
    return signers, reasons


def check_claims(
    path: str, statement: Statement, files: Mapping[str, str], findings: Findings
) -> None:
    """Check that a statement is about these files, and true of the bundle.

    Raises:
      TrustError: it is not; the notes say in what.
    """
    reasons = tuple(differences(statement, files, findings))
    if reasons:
        raise TrustError(
            "E886",
            f"what the signature {path} says is not true of the bundle",
            notes=reasons,
            help="ask for the bundle that was signed, or sign this one",
        )


def _append(log: pathlib.Path, admission: Admission) -> None:
    """Append an admission to a log, as one line of JSON.

    Raises:
      TrustError: the log cannot be written.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        append_line(log, json.dumps({"time": now, **admission.data()}) + "\n")
    except OSError as error:
        raise TrustError(
            "E887",
            f"cannot write the log of admissions {log}: {error.strerror}",
            help="without its log a node admits nothing: make it writable, or name another file",
        ) from None
