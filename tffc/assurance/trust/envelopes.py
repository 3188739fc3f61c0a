"""Signatures: statements in DSSE envelopes, in the files that sigstore calls bundles.

    {
      "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
      "verificationMaterial": {"publicKey": {"hint": "<id of the key>"}, "tlogEntries": []},
      "dsseEnvelope": {"payload": "...", "payloadType": "...", "signatures": [{"sig": "..."}]}
    }

Here such a file is called a signature.  The hint only says which key to try; who signed is what a
trusted key verifies.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tffc.assurance.trust.keys import PASSWORD, TrustedKey
from tffc.assurance.trust.statements import PAYLOAD, Statement, decode_statement, malformed
from tffc.support.errors import TrustError, reader
from tffc.support.files.strict_json import (
    NotJsonError,
    encode_json,
    is_object,
    is_text,
    read_json,
)
from tffc.support.guards import is_list

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

MEDIA = "application/vnd.dev.sigstore.bundle.v0.3+json"


class Signature(NamedTuple):
    """The content of a signature's file, not yet verified: `keyid` is only a hint."""

    payload: bytes
    signature: bytes
    keyid: str
    source: str


def sign(statement: Statement, signer: Signer) -> bytes:
    """Return a signature's file.

    Raises:
      TrustError: the key does not sign, such as one in a token with another PIN.
    """
    from securesystemslib.dsse import Envelope

    envelope = Envelope(statement.encode(), PAYLOAD, {})
    try:
        signature = envelope.sign(signer)
    except Exception as error:  # noqa: BLE001 - whatever the library of a token raises
        raise TrustError(
            "E882",
            f"the key does not sign: {type(error).__name__}: {error}",
            help=f"check the token, and the PIN in {PASSWORD}",
        ) from None
    return encode_json(
        {
            "mediaType": MEDIA,
            "verificationMaterial": {
                "publicKey": {"hint": signature.keyid},
                "tlogEntries": list[object](),
            },
            "dsseEnvelope": {
                "payload": _text(envelope.payload),
                "payloadType": envelope.payload_type,
                "signatures": [{"sig": _text(bytes.fromhex(signature.signature)), "keyid": ""}],
            },
        }
    )


@reader("a signature", TrustError)
def decode_signature(content: bytes, source: str) -> Signature:
    """Return the content of a signature's file; `source` names it in messages.

    Raises:
      TrustError: it holds no DSSE envelope with one signature over a statement of in-toto.
    """
    try:
        whole = read_json(content)
    except NotJsonError as error:
        raise malformed(source, str(error)) from None
    if not is_object(whole) or whole.get("mediaType") != MEDIA:
        raise malformed(source, f"it is not of the type {MEDIA}")
    envelope, material = whole.get("dsseEnvelope"), whole.get("verificationMaterial")
    if not is_object(envelope) or not is_object(material):
        raise malformed(source, "it has no envelope")
    if envelope.get("payloadType") != PAYLOAD:
        raise malformed(source, f"its payload is not {PAYLOAD}")
    signatures = envelope.get("signatures")
    if not is_list(signatures) or len(signatures) != 1 or not is_object(signatures[0]):
        raise malformed(source, "it does not have one signature")
    key = material.get("publicKey")
    hint = key.get("hint") if is_object(key) else None
    return Signature(
        _bytes(envelope.get("payload"), source),
        _bytes(signatures[0].get("sig"), source),
        hint if is_text(hint) else "",
        source,
    )


def verified(signature: Signature, keys: Sequence[TrustedKey]) -> tuple[TrustedKey, Statement]:
    """Return the trusted key that made a signature, and what it signed.

    Raises:
      TrustError: no trusted key made it, or what it signed is not a statement.
    """
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import Signature as KeySignature

    for trusted in keys:
        keyid = trusted.key.keyid
        own = KeySignature(keyid, signature.signature.hex())
        try:
            Envelope(signature.payload, PAYLOAD, {keyid: own}).verify([trusted.key], 1)
        except VerificationError:
            continue
        return trusted, decode_statement(signature.payload, signature.source)
    if any(signature.keyid == trusted.key.keyid for trusted in keys):
        reason = "its content was changed, or its signature"
    else:
        reason = "no trusted key made it"
    raise TrustError(
        "E883",
        f"the signature {signature.source} is not valid: {reason}",
        notes=(f"it names the key {signature.keyid[:64]!r}",) if signature.keyid else (),
        help="trust the key of whoever signed, if you know whose it is, or ask for a new signature",
    )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: object, source: str) -> bytes:
    try:
        return base64.b64decode(text if is_text(text) else "?", validate=True)
    except binascii.Error:
        raise malformed(source, "it has no payload or signature in base64") from None
