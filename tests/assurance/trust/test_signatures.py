"""Signatures in sigstore's format, by keys of several kinds."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import tffc as tff
from tests.assurance.trust.conftest import Site, replaced, totals
from tffc.assurance.trust import signing
from tffc.assurance.trust.admission import check_claims
from tffc.assurance.trust.claims import Findings
from tffc.assurance.trust.envelopes import decode_signature, verified
from tffc.assurance.trust.keys import open_signer, read_trusted
from tffc.assurance.trust.statements import Statement, decode_statement
from tffc.backends.bundle import signatures
from tffc.backends.bundle.bundle import file_digests, read_bundle
from tffc.support.errors import BundleError, TrustError

KEYS = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ecdsa-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
}

FORMATS = {
    "pem": (PrivateFormat.PKCS8, Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    "openssh": (PrivateFormat.OpenSSH, Encoding.OpenSSH, PublicFormat.OpenSSH),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("format", FORMATS)
def test_keys(site: Site, kind: str, format: str) -> None:
    private_format, encoding, public_format = FORMATS[format]
    key = KEYS[kind]()
    private = site.folder / "key"
    private.write_bytes(key.private_bytes(Encoding.PEM, private_format, NoEncryption()))
    public = site.folder / "key.pub"
    public.write_bytes(key.public_key().public_bytes(encoding, public_format))
    tff.trust.sign(site.bundle, str(private), name=kind)
    assert list(tff.trust.verify_signature(site.bundle, public).names) == ["key"]


def test_others_can_verify_it(site: Site) -> None:
    """The signature is over DSSE's encoding of an in-toto statement, whoever checks it."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (site.folder / "ec").write_bytes(pem)
    path = tff.trust.sign(site.bundle, site.key("ec"))
    envelope = json.loads(path.read_text())["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    (signature,) = envelope["signatures"]
    key.public_key().verify(base64.b64decode(signature["sig"]), signed, ec.ECDSA(SHA256()))
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    names = {subject["name"] for subject in statement["subject"]}
    assert {"computation.pb", "components/work.pb", "manifest.json"} <= names
    assert statement["predicate"]["proof"] == {"answer": "proved", "prover": 6}


def test_a_short_key(site: Site) -> None:
    """A key that somebody else may find can neither sign nor be trusted."""
    key = rsa.generate_private_key(65537, 1024)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (site.folder / "short").write_bytes(pem)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (site.folder / "trusted" / "short.pub").write_bytes(public)
    reason = "RSA keys of less than 2048 bits are too short"
    with pytest.raises(TrustError) as caught:
        tff.trust.sign(site.bundle, site.key("short"))
    assert caught.value.code == "E882"
    assert caught.value.message.endswith(f"short holds no private key that signs: {reason}")
    with pytest.raises(TrustError) as caught:
        tff.trust.admit(site.bundle, site.demands)
    assert caught.value.message.endswith(f"short.pub holds no public key that signs: {reason}")


ENCODINGS = [
    (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo, "pem"),
    (Encoding.PEM, PublicFormat.PKCS1, "pem"),
    (Encoding.OpenSSH, PublicFormat.OpenSSH, "pub"),
]


def test_a_key_in_several_files_counts_once(site: Site) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (site.folder / "one").write_bytes(pem)
    (site.folder / "keys").mkdir()
    for number, (encoding, format, suffix) in enumerate(ENCODINGS):
        content = key.public_key().public_bytes(encoding, format)
        (site.folder / "keys" / f"{number}.{suffix}").write_bytes(content)
    for name in ("one", "two", "three"):
        tff.trust.sign(site.bundle, site.key("one"), name=name)
    assert list(tff.trust.verify_signature(site.bundle, site.folder / "keys").names) == ["0"]


def test_what_is_signed_is_what_was_proved(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another bundle in the place of the one that was read is not signed by that."""
    site.signature.unlink()

    def exchange(folder: pathlib.Path) -> dict[str, str]:
        totals(replaced).save(folder, replace=True)
        return file_digests(folder)

    monkeypatch.setattr(signing, "file_digests", exchange)
    monkeypatch.setattr(signing, "_check_texts", lambda bundle, files: None)
    tff.trust.sign(site.bundle, site.key("alice"))
    monkeypatch.undo()
    signers = tff.trust.verify_signature(site.bundle, site.folder / "trusted")
    assert list(signers.names) == []
    assert "components/update.pb is not the file that was signed" in signers.refusals[0]


def test_the_bytes_of_all_signatures_are_limited(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "MAX_BYTES", site.signature.stat().st_size + 10)
    assert read_bundle(site.bundle).signatures
    (site.signature.parent / "more.sigstore.json").write_bytes(bytes(11))
    with pytest.raises(BundleError) as caught:
        read_bundle(site.bundle)
    assert caught.value.message.endswith("it has more than 10 bytes")


@pytest.mark.parametrize("content", ["", "alice.sigstore.json"])
def test_signatures_in_a_folder_elsewhere(site: Site, content: str) -> None:
    """Whoever signs a stranger's bundle would write where the stranger says."""
    site.signature.unlink()
    site.signature.parent.rmdir()
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    if content:
        (elsewhere / content).write_text("mine")
    site.signature.parent.symlink_to(elsewhere)
    for act in (
        lambda: tff.trust.sign(site.bundle, site.key("alice"), name="new"),
        lambda: tff.trust.admit(site.bundle, site.demands),
    ):
        with pytest.raises(BundleError) as caught:
            act()
        assert caught.value.code == "E606"
        assert caught.value.message.endswith(f"it is a link to {elsewhere}, outside of its folder")
    assert [path.read_text() for path in elsewhere.iterdir()] == ["mine"] * bool(content)


def test_a_key_of_no_kind_that_signs(site: Site) -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = X25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (site.folder / "exchange").write_bytes(pem)
    with pytest.raises(TrustError) as caught:
        tff.trust.sign(site.bundle, site.key("exchange"))
    assert caught.value.code == "E882"


def test_a_folder_without_keys(site: Site) -> None:
    with pytest.raises(TrustError) as caught:
        tff.trust.verify_signature(site.bundle, site.bundle)
    assert caught.value.message.endswith("holds no public keys")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"[]", "its type is not https://in-toto.io/Statement/v1"),
        (b"{", "it is not JSON"),
        (b'{"_type": "https://in-toto.io/Statement/v1"}', "its predicate is not right"),
        (
            b'{"_type": "https://in-toto.io/Statement/v1", "predicateType": "a", "predicate": {}}',
            "it has no list of subjects",
        ),
        (
            b'{"_type": "https://in-toto.io/Statement/v1", "predicateType": "a", "predicate": {},'
            b' "subject": [{"name": "a", "digest": {"sha256": "b"}}]}',
            "a subject has no name or no SHA-256",
        ),
    ],
)
def test_statements_that_are_none(payload: bytes, reason: str) -> None:
    with pytest.raises(TrustError) as caught:
        decode_statement(payload, "x")
    assert caught.value.code == "E881"
    assert caught.value.message == f"x is not a signed statement: {reason}"


def test_a_statement_survives_its_encoding() -> None:
    statement = Statement({"b": "0" * 64, "a": "1" * 64}, "urn:x", {"claim": [1, "ä"]})
    assert decode_statement(statement.encode(), "x") == statement


def test_codes_of_signatures_that_do_not_count(site: Site) -> None:
    content = decode_signature(site.signature.read_bytes(), "x")
    keys = read_trusted([site.folder / "bob.pub"])
    with pytest.raises(TrustError) as caught:
        verified(content, keys)
    assert caught.value.code == "E883"


def test_claims_that_are_not_true(site: Site) -> None:
    manifest = site.bundle / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"tensorflow": "2', b'"tensorflow": "1'))
    signers = tff.trust.verify_signature(site.bundle, site.folder / "alice.pub")
    assert signers.refusals == [
        "what the signature signatures/alice.sigstore.json says is not true of the bundle; "
        "manifest.json is not the file that was signed"
    ]
    with pytest.raises(TrustError) as caught:
        signers.check()
    assert caught.value.code == "E888"
    keys = read_trusted([site.folder / "alice.pub"])
    _, statement = verified(decode_signature(site.signature.read_bytes(), "x"), keys)
    findings = Findings.of(read_bundle(site.bundle))
    with pytest.raises(TrustError) as caught:
        check_claims("x", statement, file_digests(site.bundle), findings)
    assert caught.value.code == "E886"


def test_passwords_are_asked_for_once(tmp_path: pathlib.Path) -> None:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

    key = ed25519.Ed25519PrivateKey.generate()
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))
    (tmp_path / "key").write_bytes(locked)
    asked: list[str] = []

    def ask(what: str) -> str:
        asked.append(what)
        return "pw"

    signer = open_signer(str(tmp_path / "key"), ask)
    assert asked == [f"the password of {tmp_path / 'key'}"]
    assert signer.public_key.keytype == "ed25519"
