"""Whoever changes a bundle, a signature, a key or an approval is refused, with the reason."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.trust.conftest import Site, added, replaced, totals
from tests.signing_keys import write_keys
from tffc.assurance.trust.approvals import approval_of
from tffc.assurance.trust.claims import Findings, statement_of
from tffc.assurance.trust.envelopes import sign as signed
from tffc.assurance.trust.keys import open_signer
from tffc.assurance.trust.statements import Statement
from tffc.assurance.trust.subjects import clients_part
from tffc.backends.bundle.bundle import file_digests, read_bundle
from tffc.support.errors import TffcError


def edited(path: pathlib.Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a file of JSON."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def edited_file(site: Site, name: str, edit: Callable[[bytes], bytes]) -> None:
    """Change a file of the bundle, and its hash in the manifest."""
    file = site.bundle / name
    content = edit(file.read_bytes())
    file.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edited(site.bundle / "manifest.json", lambda m: m["files"].update({name: digest}))


def edited_payload(site: Site, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change what was signed, and keep the signature."""

    def change(content: dict[str, Any]) -> None:
        envelope = content["dsseEnvelope"]
        payload = json.loads(base64.b64decode(envelope["payload"]))
        edit(payload)
        envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()

    edited(site.signature, change)


def edit_manifest(site: Site, edit: Callable[[dict[str, Any]], object]) -> None:
    edited(site.bundle / "manifest.json", edit)


def envelope_of(site: Site, edit: Callable[[dict[str, Any]], object]) -> None:
    edited(site.signature, lambda content: edit(content["dsseEnvelope"]))


def statement(site: Site) -> Statement:
    """What a signature of the bundle says."""
    return statement_of(Findings.of(read_bundle(site.bundle)), file_digests(site.bundle), None)


def claiming(site: Site, **claims: object) -> None:
    """Let a trusted key sign other claims."""
    true = statement(site)
    false = true._replace(predicate={**true.predicate, **claims})
    site.signature.write_bytes(signed(false, open_signer(site.key("alice"), lambda _: None)))


def about(site: Site, **subjects: str | None) -> None:
    """Let a trusted key sign other subjects; None removes one."""
    true = statement(site)
    names = {"work": "components/work.pb", "round": "computation.pb", "manifest": "manifest.json"}
    changed = {**true.subjects, **{names[key]: value for key, value in subjects.items()}}
    rest = {name: digest for name, digest in changed.items() if digest is not None}
    false = true._replace(subjects=rest)
    site.signature.write_bytes(signed(false, open_signer(site.key("alice"), lambda _: None)))


def signed_by(site: Site, name: str) -> None:
    site.signature.write_bytes(signed(statement(site), open_signer(site.key(name), lambda _: None)))


def swapped(site: Site) -> None:
    """Exchange two components, with hashes that agree."""
    one, other = site.bundle / "components/zero.pb", site.bundle / "components/work.pb"
    first, second = one.read_bytes(), other.read_bytes()
    edited_file(site, "components/zero.pb", lambda _: second)
    edited_file(site, "components/work.pb", lambda _: first)

    def swap_types(manifest: dict[str, Any]) -> None:
        types = manifest["components"]
        types["zero"], types["work"] = types["work"], types["zero"]

    edit_manifest(site, swap_types)


def other_component(site: Site) -> None:
    """Put a component of another program in place of one, with its hash."""
    name = "components/update.pb"
    edited_file(site, name, lambda _: totals(replaced).encode()[name])


def claimed_proof(site: Site) -> None:
    edit_manifest(site, lambda m: m.update(proof={"prover": 6, "files": m["files"]}))


def added_file(site: Site) -> None:
    (site.bundle / "more.txt").write_text("x")
    digest = hashlib.sha256(b"x").hexdigest()
    edit_manifest(site, lambda m: m["files"].update({"more.txt": digest}))


def bare_signature(site: Site) -> None:
    edited(site.signature, lambda content: content.pop("dsseEnvelope"))


def replaced_signature(site: Site) -> None:
    other = base64.b64encode(b"x" * 64).decode()
    envelope_of(site, lambda envelope: envelope["signatures"][0].update(sig=other))


def borrowed_hint(site: Site) -> None:
    """Sign with another key, under the hint of a trusted one."""
    hint = json.loads(site.signature.read_text())["verificationMaterial"]
    signed_by(site, "mallory")
    edited(site.signature, lambda content: content.update(verificationMaterial=hint))


def other_bundle(site: Site) -> None:
    """Put another bundle under the signature."""
    content = site.signature.read_bytes()
    totals(replaced).save(site.bundle, replace=True)
    site.signature.parent.mkdir()
    site.signature.write_bytes(content)


def forged(site: Site) -> None:
    """Put components of another program beside the program, with hashes that agree, and let a
    trusted key sign them: only the proof tells."""
    true, other = totals(added), totals(replaced)
    dataclasses.replace(true, components=other.components).save(site.bundle, replace=True)
    site.signature.parent.mkdir()
    signed_by(site, "alice")


def approval(site: Site) -> pathlib.Path:
    (file,) = site.approvals.glob("*/*")
    return file


def moved_approval(site: Site) -> None:
    """Replay the approval of one clients' part for another."""

    @tff.tf_computation(np.int32)
    def shifted(reading: Any) -> Any:
        return reading + 1

    old = approval(site)
    content = old.read_bytes()
    totals(added, shifted).save(site.bundle, replace=True)
    tff.trust.sign(site.bundle, site.key("alice"))
    folder = site.approvals / clients_part(read_bundle(site.bundle)).digest
    folder.mkdir()
    (folder / "bob.sigstore.json").write_bytes(content)


def approved_by(site: Site, name: str) -> None:
    digest = clients_part(read_bundle(site.bundle)).digest
    content = signed(approval_of(digest, "", None), open_signer(site.key(name), lambda _: None))
    approval(site).write_bytes(content)


def signature_as_approval(site: Site) -> None:
    signed_by(site, "bob")
    approval(site).write_bytes(site.signature.read_bytes())
    tff.trust.sign(site.bundle, site.key("alice"))


def approval_as_signature(site: Site) -> None:
    digest = clients_part(read_bundle(site.bundle)).digest
    approving = approval_of(digest, "", None)
    site.signature.write_bytes(signed(approving, open_signer(site.key("alice"), lambda _: None)))


def other_key(site: Site) -> None:
    """Give the key of somebody else the name of a trusted one."""
    write_keys(site.folder, "stranger")
    (site.folder / "stranger").rename(site.folder / "alice")
    tff.trust.sign(site.bundle, site.key("alice"))


def damaged_revocation(site: Site) -> None:
    tff.trust.approve(site.bundle, site.key("bob"), site.approvals, revoke=True)
    (revocation,) = site.approvals.glob("*/*.revoked.*")
    revocation.write_text("{}")


CHANGED = "its content was changed, or its signature"
"""The reason of a signature that its key did not make."""

WAYS: dict[str, tuple[Callable[[Site], object], str]] = {
    # Files.
    "a byte of a component": (
        lambda s: (s.bundle / "components/work.pb").write_bytes(b"\x00"),
        "is damaged",
    ),
    "a text, with its hash": (
        lambda s: edited_file(s, "components/work.sexpr", lambda text: text + b"\n"),
        "components/work.sexpr is not the file that was signed",
    ),
    "a component, with its hash": (
        other_component,
        "components/update.pb is not the file that was signed",
    ),
    "a file that is gone": (lambda s: (s.bundle / "computation.pb").unlink(), "cannot read"),
    "swapped components": (swapped, ""),
    "another bundle": (other_bundle, "computation.pb is not the file that was signed"),
    "a forged bundle, signed": (forged, "proof: "),
    # The manifest.
    "another version": (
        lambda s: edit_manifest(s, lambda m: m["versions"].update(tffc="9")),
        "manifest.json is not the file that was signed",
    ),
    "a proof that nobody made": (claimed_proof, "manifest.json is not the file that was signed"),
    "another form": (
        lambda s: edit_manifest(s, lambda m: m.update(form="broadcast")),
        "",
    ),
    "a file more": (added_file, "more.txt is not among the signed files"),
    # The signature.
    "no signature": (lambda s: s.signature.unlink(), "nobody has signed it"),
    "an empty signature": (lambda s: s.signature.write_bytes(b""), "is not a signed statement"),
    "no envelope": (bare_signature, "it has no envelope"),
    "another media type": (
        lambda s: edited(s.signature, lambda c: c.update(mediaType="text/plain")),
        "it is not of the type",
    ),
    "another payload type": (
        lambda s: envelope_of(s, lambda e: e.update(payloadType="text/plain")),
        "its payload is not",
    ),
    "two signatures in one": (
        lambda s: envelope_of(s, lambda e: e["signatures"].append(e["signatures"][0])),
        "it does not have one signature",
    ),
    "a changed signature": (replaced_signature, CHANGED),
    "a short signature": (
        lambda s: envelope_of(s, lambda e: e["signatures"][0].update(sig="")),
        CHANGED,
    ),
    "no base64": (
        lambda s: envelope_of(s, lambda e: e.update(payload="*")),
        "it has no payload or signature in base64",
    ),
    "a changed policy claim": (
        lambda s: edited_payload(s, lambda p: p["predicate"].update(policy={"digest": "0"})),
        CHANGED,
    ),
    "a changed subject": (
        lambda s: edited_payload(s, lambda p: p["subject"][0]["digest"].update(sha256="0" * 64)),
        CHANGED,
    ),
    "a key twice in its JSON": (
        lambda s: s.signature.write_text('{"mediaType": 1, "mediaType": 2}'),
        "occurs twice in an object",
    ),
    # Keys.
    "a key that nobody trusts": (lambda s: signed_by(s, "mallory"), "no trusted key made it"),
    "a key under the name of another": (other_key, "no trusted key made it"),
    "a reviewer's key": (lambda s: signed_by(s, "bob"), "no trusted key made it"),
    "the hint of a trusted key": (borrowed_hint, CHANGED),
    # Statements that a trusted key has signed, and that are not true.
    "another audit": (lambda s: claiming(s, audit="0" * 64), "it claims another audit"),
    "another clients' part": (
        lambda s: claiming(s, clientsPart="0" * 64),
        "it claims another clients' part",
    ),
    "another form claimed": (lambda s: claiming(s, form="broadcast"), "it claims another form"),
    "another type claimed": (lambda s: claiming(s, type="int32"), "it claims another type"),
    "an older prover": (
        lambda s: claiming(s, proof={"answer": "proved", "prover": 1}),
        "it was made with prover 1, older than this one",
    ),
    "another answer of the prover": (
        lambda s: claiming(s, proof={"answer": "different", "prover": 6}),
        "it claims the proof 'different', and here it is 'proved'",
    ),
    "no proof claimed": (lambda s: claiming(s, proof=None), "it was made with prover None"),
    "a program that is not signed": (
        lambda s: about(s, round=None),
        "computation.pb is not among the signed files",
    ),
    "another component signed": (
        lambda s: about(s, work="0" * 64),
        "components/work.pb is not the file that was signed",
    ),
    "a manifest that is not signed": (
        lambda s: about(s, manifest=None),
        "manifest.json is not among the signed files",
    ),
    "an approval in place of a signature": (approval_as_signature, "and not about a bundle"),
    # Approvals.
    "no approval": (lambda s: approval(s).unlink(), "nobody has approved it"),
    "an approval by a stranger": (lambda s: approved_by(s, "mallory"), "no trusted key made it"),
    "an approval by who signs": (lambda s: approved_by(s, "alice"), "no trusted key made it"),
    "a replayed approval": (moved_approval, "it is about another clients' part"),
    "a signature in place of an approval": (
        signature_as_approval,
        "it is a statement of the kind",
    ),
    "a damaged approval": (lambda s: approval(s).write_text("{"), "is not a signed statement"),
    "a damaged revocation": (damaged_revocation, "a revocation cannot be read"),
}
"""What somebody does, and a part of the reason with which a node then refuses the bundle."""


def reasons(site: Site) -> str:
    """Why a node refuses the bundle; empty if it admits it."""
    try:
        tff.trust.admit(site.bundle, site.demands).check()
    except TffcError as error:
        return "\n".join([error.message, *error.notes])
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_tampering_is_refused_with_its_reason(site: Site, way: str) -> None:
    assert reasons(site) == ""
    change, reason = WAYS[way]
    change(site)
    refused = reasons(site)
    assert refused
    assert reason in refused
