"""Signatures by identities, with a sigstore that stands in for the one on the network."""

from __future__ import annotations

import base64
import json
import pathlib
import types
from typing import Any

import pytest

import tffc as tff
from tests.assurance.trust.conftest import Site
from tffc.assurance.trust import keyless
from tffc.support.errors import MissingExtraError, TrustError

CI = {"identity": "https://example.org/release.yml", "issuer": "https://example.org"}


class Stand:
    """What tffc uses of sigstore: a bundle is signed by the identity that its certificate names."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def module(self, name: str) -> Any:
        return types.SimpleNamespace(
            Bundle=types.SimpleNamespace(from_json=json.loads),
            ClientTrustConfig=types.SimpleNamespace(production=lambda: None),
            Identity=lambda identity, issuer: identity,
            IdentityToken=lambda token: token,
            SigningContext=types.SimpleNamespace(from_trust_config=lambda trust: self),
            Statement=lambda content: content,
            Verifier=types.SimpleNamespace(production=lambda offline: self),
            detect_credential=lambda: None,
        )

    def signer(self, token: str) -> Stand:
        return self

    def __enter__(self) -> Stand:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def sign_dsse(self, payload: bytes) -> Any:
        content = {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"certificate": self.identity},
            "dsseEnvelope": {
                "payload": base64.b64encode(payload).decode(),
                "payloadType": "application/vnd.in-toto+json",
                "signatures": [{"sig": "AAAA"}],
            },
        }
        return types.SimpleNamespace(to_json=lambda: json.dumps(content))

    def verify_dsse(self, bundle: dict[str, Any], policy: str) -> tuple[str, bytes]:
        if bundle["verificationMaterial"].get("certificate") != policy:
            raise ValueError("another identity")
        return "", base64.b64decode(bundle["dsseEnvelope"]["payload"])


@pytest.fixture
def stand(site: Site, monkeypatch: pytest.MonkeyPatch) -> Stand:
    stand = Stand(CI["identity"])
    monkeypatch.setattr(keyless, "_module", stand.module)
    monkeypatch.setenv("SIGSTORE_ID_TOKEN", "token")
    site.signature.unlink()
    (site.folder / "trusted" / "ci.identity").write_text(json.dumps(CI))
    return stand


def test_an_identity_that_is_trusted(site: Site, stand: Stand) -> None:
    path = tff.trust.sign(site.bundle, "sigstore")
    assert path.name == "sigstore.sigstore.json"
    assert "signature ok (by ci)" in tff.trust.admit(site.bundle, site.demands).line()


def test_an_identity_that_is_not(site: Site, stand: Stand) -> None:
    stand.identity = "https://example.org/other.yml"
    tff.trust.sign(site.bundle, "sigstore")
    assert "no trusted key made it" in tff.trust.admit(site.bundle, site.demands).line()


def test_a_key_cannot_pass_for_an_identity(site: Site, stand: Stand) -> None:
    """A file that names a key is verified by keys alone."""
    path = tff.trust.sign(site.bundle, "sigstore")
    content = json.loads(path.read_text())
    content["verificationMaterial"]["publicKey"] = {"hint": "0" * 64}
    path.write_text(json.dumps(content))
    assert not tff.trust.admit(site.bundle, site.demands).is_admitted


def test_nobody_says_who_signs(site: Site, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGSTORE_ID_TOKEN")
    with pytest.raises(TrustError) as caught:
        tff.trust.sign(site.bundle, "sigstore")
    assert caught.value.message == "nobody here says who signs without a key"


def test_no_network(site: Site, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(payload: bytes) -> Any:
        raise ConnectionError("no route")

    monkeypatch.setattr(stand, "sign_dsse", fails)
    with pytest.raises(TrustError) as caught:
        tff.trust.sign(site.bundle, "sigstore")
    assert caught.value.message == "sigstore does not sign: ConnectionError: no route"


def test_sigstore_is_not_installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError):
        keyless.sign_keyless(None)  # pyright: ignore[reportArgumentType]  # not reached


@pytest.mark.parametrize("text", ["[]", "{}", '{"identity": "a"}', '{"identity": 1, "issuer": 2}'])
def test_identities_that_are_none(tmp_path: pathlib.Path, text: str) -> None:
    file = tmp_path / "ci.identity"
    file.write_text(text)
    with pytest.raises(TrustError) as caught:
        keyless.read_identity(file)
    assert caught.value.code == "E882"
