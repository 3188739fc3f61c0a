"""Signatures without keys: sigstore certifies for minutes who signs, and logs that publicly.

Signing needs the network and an identity: that of a job in CI, or the one in a token.  Verifying
needs neither: the roots come with the package sigstore, and what it has loaded since.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
from typing import Any, NamedTuple

from tffc.assurance.trust.statements import Statement
from tffc.support.errors import MissingExtraError, TrustError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, is_object, is_text, read_json

KEYLESS = "sigstore"
"""What stands in place of a key to sign without one."""

TOKEN_VARIABLE = "SIGSTORE_ID_TOKEN"
"""The environment variable with an OpenID Connect token that says who signs."""

SUFFIX = ".identity"
"""The suffix of files, among public keys, that name somebody who signs without a key."""

MAX_IDENTITY = 2**12


class TrustedIdentity(NamedTuple):
    """Somebody whose identity an issuer vouches for, such as a workflow in a repository."""

    name: str
    identity: str
    issuer: str

    def has_signed(self, content: bytes, payload: bytes) -> bool:
        """Return whether this identity made the signature in a file, over this payload.

        Raises:
          MissingExtraError: sigstore is not installed.
        """
        models, verify = _module("models"), _module("verify")
        policy = _module("verify.policy").Identity(identity=self.identity, issuer=self.issuer)
        try:
            bundle = models.Bundle.from_json(content)
            _, signed = verify.Verifier.production(offline=True).verify_dsse(bundle, policy)
        except Exception:  # noqa: BLE001 - whatever is wrong, it does not verify
            return False
        return signed == payload


@reader("an identity that signs", TrustError)
def read_identity(path: pathlib.Path) -> TrustedIdentity:
    """Return the identity in a file of JSON with the texts `identity` and `issuer`.

    Raises:
      TrustError: it has others, or is not JSON.
    """
    try:
        content = read_json(read_regular(path, MAX_IDENTITY))
    except (NotJsonError, OSError) as error:
        raise _unfit(path, str(error)) from None
    if not is_object(content) or set(content) != {"identity", "issuer"}:
        raise _unfit(path, "it does not have exactly identity and issuer")
    if not all(map(is_text, content.values())) or not all(content.values()):
        raise _unfit(path, "identity and issuer must be texts")
    return TrustedIdentity(path.stem, **content)


def sign_keyless(statement: Statement) -> bytes:
    """Return the file of a signature by the identity of this job, or that of the token in
    `SIGSTORE_ID_TOKEN`.

    Raises:
      TrustError: there is no identity here, or sigstore does not answer.
      MissingExtraError: sigstore is not installed.
    """
    oidc, dsse = _module("oidc"), _module("dsse")
    models, signing = _module("models"), _module("sign")
    try:
        token = os.environ.get(TOKEN_VARIABLE) or oidc.detect_credential()
    except Exception as error:  # noqa: BLE001 - as many as there are kinds of CI
        raise _unsigned(error) from None
    if not token:
        raise TrustError(
            "E882",
            "nobody here says who signs without a key",
            help=f"sign in a job of CI that may write id-tokens, or set {TOKEN_VARIABLE}",
        )
    try:
        context = signing.SigningContext.from_trust_config(models.ClientTrustConfig.production())
        with context.signer(oidc.IdentityToken(token)) as signer:
            return signer.sign_dsse(dsse.Statement(statement.encode())).to_json().encode()
    except Exception as error:  # noqa: BLE001 - the network, the token, or one of three services
        raise _unsigned(error) from None


def _unsigned(error: Exception) -> TrustError:
    return TrustError(
        "E882",
        f"sigstore does not sign: {type(error).__name__}: {error}",
        help="it needs the network; sign with a key in a file where there is none",
    )


def _unfit(path: pathlib.Path, reason: str) -> TrustError:
    return TrustError(
        "E882",
        f"{path} does not name who signs: {reason}",
        help='write {"identity": "...", "issuer": "https://..."}',
    )


def _module(name: str) -> Any:
    if importlib.util.find_spec("sigstore") is None:
        raise MissingExtraError(
            "E701",
            "sigstore is not installed, and signatures without keys need it",
            help="pip install sigstore",
        )
    return importlib.import_module(f"sigstore.{name}")
