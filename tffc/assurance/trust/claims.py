"""What a signature claims of a bundle, and whether it is true of the bundle at hand."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.bundles import Reading, audit_bundle, read_for_audit
from tffc.assurance.audit.policy import Policy, broken_rules, refused_by_policy
from tffc.assurance.audit.report import Report, Verdict, document, judged
from tffc.assurance.audit.tool import tool_digest
from tffc.assurance.privacy.answer import Privacy, privacy_of_program
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.assurance.proof.prove import VERSION as PROVER
from tffc.assurance.trust.statements import Statement
from tffc.assurance.trust.subjects import ClientsPart, clients_part
from tffc.backends.bundle.bundle import Bundle
from tffc.support.files.strict_json import encode_json
from tffc.support.version import VERSION

KIND = "urn:tffc:bundle:1"
"""The kind of statements about bundles, with its version."""


@dataclasses.dataclass(frozen=True, slots=True)
class Findings:
    """What is derived from a bundle itself: its proof, its audit and its clients' part."""

    bundle: Bundle
    reading: Reading
    audit: Audit
    part: ClientsPart

    @classmethod
    def of(cls, bundle: Bundle) -> Findings:
        """Prove and audit a bundle.

        Raises:
          TffcError: its components do not fit each other, or cannot be audited.
        """
        reading = read_for_audit(bundle)
        return cls(bundle, reading, audit_bundle(bundle, reading), clients_part(bundle))

    def report(self, name: str) -> Report:
        """Return the audit as a report, without a policy."""
        return Report(
            name,
            self.audit,
            self.bundle.digests(),
            is_read_from_components=not self.reading.is_proved,
            proof=self.reading.answer(),
        )

    def privacy_in(self, audit: Audit, question: PrivacyQuestion | None) -> Privacy | None:
        """Return the answer to a question about privacy, if there is one, for an audit of the
        bundle.

        Raises:
          MissingExtraError: `dp-accounting` is not installed.
          TffcError: as `privacy_of_program` does.
        """
        if question is None:
            return None
        program, first = self.reading.program, self.bundle.initialize
        return privacy_of_program(program, audit.form, audit, first, question)

    def audit_digest(self) -> str:
        """Return the SHA-256 of the audit as JSON, which names no file and no day."""
        return hashlib.sha256(encode_json(document(self.report("bundle"))["audit"])).hexdigest()


def statement_of(findings: Findings, files: Mapping[str, str], policy: Policy | None) -> Statement:
    """Return the statement about a bundle with these files; a `policy` is one that it passes.

    The same bundle, policy and version of tffc give the same statement on every day.

    Raises:
      PolicyError: the bundle does not pass the policy.
    """
    bundle, answer = findings.bundle, findings.reading.answer()
    claims = {
        "tffc": VERSION,
        "tool": tool_digest(),
        "form": bundle.form,
        "type": str(bundle.computation.type),
        "versions": dict(bundle.versions),
        "clientsPart": findings.part.digest,
        "proof": {"answer": answer["answer"], "prover": answer["prover"]},
        "audit": findings.audit_digest(),
        "policy": None if policy is None else _policy_claim(findings, policy),
    }
    return Statement(files, KIND, claims)


def _policy_claim(findings: Findings, policy: Policy) -> dict[str, Any]:
    answer = findings.privacy_in(findings.audit, policy.epsilon)
    report = dataclasses.replace(findings.report("bundle"), privacy=answer)
    report = judged(report, policy, None)
    if report.verdict is not Verdict.PASSES:
        raise refused_by_policy(broken_rules(report.violations))
    until = report.until
    return {"digest": policy.digest, "until": None if until is None else until.isoformat()}


def differences(
    statement: Statement, files: Mapping[str, str], findings: Findings
) -> Iterator[str]:
    """Yield in what the subjects and claims of a statement differ from a bundle.

    `files` are the files at hand with their SHA-256: all of a folder's, or what runs.
    """
    if statement.kind != KIND:
        yield f"it is a statement of the kind {statement.kind!r}, and not about a bundle"
        return
    for path, digest in files.items():
        signed = statement.subjects.get(path)
        if signed is None:
            yield f"{path} is not among the signed files"
        elif signed != digest:
            yield f"{path} is not the file that was signed"
    claims = statement.predicate
    answer = findings.reading.answer()
    proof = claims.get("proof")
    claimed = proof if isinstance(proof, dict) else {}
    prover = claimed.get("prover")
    own = {
        "form": findings.bundle.form,
        "type": str(findings.bundle.computation.type),
        "clientsPart": findings.part.digest,
    }
    # Another version of tffc may word an audit otherwise; its own claim is then not compared.
    if claims.get("tool") == tool_digest():
        own["audit"] = findings.audit_digest()
    for name, value in own.items():
        if claims.get(name) != value:
            yield f"it claims another {WORDS[name]} than the bundle has"
    if not isinstance(prover, int) or prover < PROVER:
        yield f"it was made with prover {prover!r}, older than this one, {PROVER}"
    elif claimed.get("answer") != answer["answer"]:
        yield f"it claims the proof {claimed.get('answer')!r}, and here it is {answer['answer']!r}"
    elif findings.reading.is_forged:
        yield "it is about components that compute something else than the program"


WORDS = {
    "form": "form",
    "type": "type",
    "clientsPart": "clients' part",
    "audit": "audit",
}
"""Claims as messages call them."""
