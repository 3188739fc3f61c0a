"""The keys of a masked sum: X25519 agreement (RFC 7748), HKDF (RFC 5869), sealing, and signatures.

Every derived key is bound to its purpose, so that keys of different sums, purposes or directions
are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from tffc.runtime.masking.history import History
from tffc.support.errors import ExecutionError

BYTES = 32
"""The size in bytes of secret keys, public keys and seeds."""


class PrivateKey:
    """A signing key: Ed25519, or an elliptic curve such as the P-384 of Flower's nodes.

    Its `history` has the sums of participants that sign with it and have no other history.
    """

    def __init__(self, key: Ed25519PrivateKey | EllipticCurvePrivateKey) -> None:
        self._key = key
        self.history = History()

    def sign(self, said: bytes) -> bytes:
        """Return the signature of a message."""
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(said)
        return self._key.sign(said, ECDSA(SHA256()))

    def public(self) -> PublicKey:
        """Return the public key, which verifies the signatures."""
        return PublicKey(self._key.public_key())


class PublicKey:
    """Verifies signatures made by a `PrivateKey`."""

    def __init__(self, key: Ed25519PublicKey | EllipticCurvePublicKey) -> None:
        self._key = key

    def verify(self, signature: bytes, said: bytes) -> bool:
        """Return whether a signature is that of a message."""
        try:
            if isinstance(self._key, Ed25519PublicKey):
                self._key.verify(signature, said)
            else:
                self._key.verify(signature, said, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    def to_bytes(self) -> bytes:
        """Return the key's one encoding, the same for equal keys."""
        return self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def read_private_key(content: bytes) -> PrivateKey:
    """Return the key in an OpenSSH private key file without passphrase.

    Raises:
      ExecutionError: the file holds no key of a supported kind.
    """
    try:
        key = load_ssh_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _not_a_key(str(error)) from None
    if not isinstance(key, (Ed25519PrivateKey, EllipticCurvePrivateKey)):
        raise _not_a_key(f"it is a {type(key).__name__}")
    return PrivateKey(key)


def read_public_key(content: bytes) -> PublicKey:
    """Return the key in an OpenSSH public key file; raises as `read_private_key` does."""
    try:
        key = load_ssh_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _not_a_key(str(error)) from None
    if not isinstance(key, (Ed25519PublicKey, EllipticCurvePublicKey)):
        raise _not_a_key(f"it is a {type(key).__name__}")
    return PublicKey(key)


def _not_a_key(reason: str) -> ExecutionError:
    return ExecutionError(
        "E787",
        f"a file does not hold a key that participants of masked sums sign with: {reason}",
        help="make one without a passphrase: ssh-keygen -t ecdsa -b 384 -N ''",
    )


class Agreement:
    """An X25519 key pair, newly generated or restored from its secret key, to agree on keys with
    others."""

    def __init__(self, secret: bytes | None = None) -> None:
        generate = X25519PrivateKey.generate
        self._key = generate() if secret is None else X25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    @property
    def secret(self) -> bytes:
        """The secret key."""
        return self._key.private_bytes_raw()

    def agree(self, public: bytes, purpose: bytes) -> bytes:
        """Return a key for this purpose that only the owners of the two key pairs can compute.

        Raises:
          ExecutionError: the other's public key is invalid.
        """
        try:
            shared = self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise _no_public_key(str(error)) from None
        return derived(shared, purpose)


def derived(secret: bytes, purpose: bytes) -> bytes:
    """Return a key for this purpose, derived from a secret of high entropy."""
    return HKDF(SHA256(), BYTES, salt=None, info=purpose).derive(secret)


def distinct_points(publics: Sequence[bytes]) -> list[int]:
    """Return a number for each X25519 public key, equal for keys that agree on the same secrets.

    Different bytes can be one key: X25519 ignores the highest bit, reduces the number modulo the
    prime of the curve, and adding a point of low order changes no secret, since every secret key is
    a multiple of eight.  So this is the coordinate of eight times the point, by doubling three
    times (RFC 7748, section 5).

    Raises:
      ExecutionError: a key is not the shortest form of its number, or is of low order.
    """
    points = [_times_eight(_coordinate(public)) for public in publics]
    # All quotients x / z with one inversion: of the product of all z (Montgomery's trick).
    products = [1]
    for _, z in points:
        products.append(products[-1] * z % FIELD)
    inverse = pow(products[-1], -1, FIELD)
    numbers: list[int] = []
    for (x, z), before in zip(reversed(points), reversed(products[:-1]), strict=True):
        numbers.append(x * before * inverse % FIELD)
        inverse = inverse * z % FIELD
    return numbers[::-1]


def _coordinate(public: bytes) -> int:
    number = int.from_bytes(public, "little")
    if len(public) != BYTES or number >= FIELD:
        raise _no_public_key("it is not in the shortest form")
    return number


def _times_eight(coordinate: int) -> tuple[int, int]:
    x, z = coordinate, 1
    for _ in range(3):
        square, other = (x + z) * (x + z) % FIELD, (x - z) * (x - z) % FIELD
        difference = square - other
        x, z = square * other % FIELD, difference * (square + 121665 * difference) % FIELD
    if z == 0:
        raise _no_public_key("its order is low")
    return x, z


FIELD = 2**255 - 19
"""The prime of Curve25519."""


def _no_public_key(reason: str) -> ExecutionError:
    return ExecutionError(
        "E860",
        f"a participant's public key cannot be one: {reason}",
        help="leave the participant out and repeat the round",
    )


def seal(key: bytes, message: bytes) -> bytes:
    """Encrypt a message so that only owners of the key can read or change it.

    A key must seal one message only, because the nonce is constant.
    """
    return ChaCha20Poly1305(key).encrypt(_NONCE, message, None)


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """Decrypt a sealed message; return None if it was not sealed with this key, or is damaged."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, None)
    except InvalidTag:
        return None


_NONCE = bytes(12)

TAG = 16
"""The bytes that sealing adds to a message."""


def joined(*parts: bytes | str) -> bytes:
    """Encode parts so that different sequences of parts never have the same encoding."""
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(len(part).to_bytes(8, "little") + part for part in encoded)


def joined_names(names: Iterable[str]) -> bytes:
    """Encode a set of names, independently of their order."""
    return joined(*sorted(names))
