"""Readers of what tells whom to trust: signatures, statements, keys, demands."""

from __future__ import annotations

import functools
import pathlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.fuzz.reader import Reader, damage_file, damage_text, folder
from tffc.assurance.trust.envelopes import decode_signature, sign, verified
from tffc.assurance.trust.keys import open_signer, read_trusted
from tffc.assurance.trust.settings import read_settings
from tffc.assurance.trust.statements import Statement, decode_statement

STATEMENT = Statement({"computation.pb": "0" * 64}, "urn:tffc:bundle:1", {"form": "mapreduce"})
DEMANDS = b"keys: keys\nsignatures: 2\nproof: true\nbytes: 10\nlog: log.jsonl\n"


@functools.cache
def _keys() -> pathlib.Path:
    """A folder with a private key `key`, and its public key `key.pub`."""
    path, key = folder("keys"), Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (path / "key").write_bytes(private)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (path / "key.pub").write_bytes(public)
    return path


def read_signature(data: bytes) -> bool:
    """Read a signature, and verify it."""
    verified(decode_signature(data, "x"), read_trusted([_keys() / "key.pub"]))
    return True


def read_statement(data: bytes) -> bool:
    """Read a statement."""
    decode_statement(data, "x").encode()
    return True


def read_key(data: bytes) -> bool:
    """Read a private key after the byte 0, else a public one."""
    file = folder("key") / "key.pub"
    file.write_bytes(data[1:])
    if data[:1] == b"\0":
        open_signer(str(file), lambda _: "password").sign(b"")
    else:
        read_trusted([file])
    return True


def read_demands(data: bytes) -> bool:
    """Read the demands of a node."""
    file = folder("demands") / "node.yaml"
    file.write_bytes(data)
    read_settings(file)
    return True


def read_an_identity(data: bytes) -> bool:
    """Read an identity that signs without a key."""
    file = folder("identity") / "ci.identity"
    file.write_bytes(data)
    read_trusted([file])
    return True


def _seed_signatures() -> list[bytes]:
    return [sign(STATEMENT, open_signer(str(_keys() / "key"), lambda _: None)), b"{}"]


def _seed_keys() -> list[bytes]:
    private, public = ((_keys() / name).read_bytes() for name in ("key", "key.pub"))
    return [b"\0" + private, b"\1" + public, b"\0" + public, b"\1" + private]


READERS = {
    "signature": Reader(read_signature, _seed_signatures, damage_text, ("a signature",)),
    "statement": Reader(
        read_statement, lambda: [STATEMENT.encode(), b"{}"], damage_text, ("a statement",)
    ),
    "key": Reader(read_key, _seed_keys, damage_file(b"\0\1"), ("a private key", "a public key")),
    "identity": Reader(
        read_an_identity,
        lambda: [b'{"identity": "a@b.org", "issuer": "https://b.org"}', b"{}"],
        damage_text,
        ("an identity that signs",),
    ),
    "demands": Reader(
        read_demands, lambda: [DEMANDS, b"[]"], damage_text, ("the demands of a node",)
    ),
}
