"""Signatures: statements in DSSE envelopes, in the files that sigstore calls bundles.

    {
      "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
      "verificationMaterial": {"publicKey": {"hint": "<id of the key>"}, "tlogEntries": []},
      "dsseEnvelope": {"payload": "...", "payloadType": "...", "signatures": [{"sig": "..."}]}
    }

Here such a file is called a signature.  The hint only says which key to try; who signed is what a
trusted key verifies.
"""

# securesystemslib documents these names, and does not mark them as exported.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tffc.assurance.trust.keyless import TrustedIdentity
from tffc.assurance.trust.keys import PASSWORD, Trusted, TrustedKey
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


class SignatureFile(NamedTuple):
    """The content of a signature's file, not yet verified: `keyid` is only a hint, and empty if
    somebody signed without a key."""

    payload: bytes
    signature: bytes
    keyid: str
    source: str
    content: bytes

    def is_by(self, trusted: Trusted) -> bool:
        """Return whether somebody whom one trusts made the signature."""
        if isinstance(trusted, TrustedIdentity):
            return not self.keyid and trusted.has_signed(self.content, self.payload)
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import VerificationError
        from securesystemslib.signer import Signature as KeySignature

        keyid = trusted.key.keyid
        own = {keyid: KeySignature(keyid, self.signature.hex())}
        try:
            Envelope(self.payload, PAYLOAD, own).verify([trusted.key], 1)
        except VerificationError:
            return False
        return True


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
def decode_signature(content: bytes, source: str) -> SignatureFile:
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
    return SignatureFile(
        _bytes(envelope.get("payload"), source),
        _bytes(signatures[0].get("sig"), source),
        hint if is_text(hint) else "",
        source,
        content,
    )


def verified(signature: SignatureFile, keys: Sequence[Trusted]) -> tuple[str, Statement]:
    """Return the name of whom one trusts and who made a signature, and what was signed.

    Raises:
      TrustError: nobody whom one trusts made it, or what was signed is not a statement.
    """
    for trusted in keys:
        if signature.is_by(trusted):
            return trusted.name, decode_statement(signature.payload, signature.source)
    hinted = (each.key.keyid for each in keys if isinstance(each, TrustedKey))
    reason = "no trusted key made it"
    if signature.keyid in hinted:
        reason = "its content was changed, or its signature"
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
