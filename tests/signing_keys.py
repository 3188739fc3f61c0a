"""Pairs of keys for tests of signatures."""

from __future__ import annotations

import pathlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def write_keys(folder: pathlib.Path, name: str) -> None:
    """Write a pair of keys, `NAME` and `NAME.pub`."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (folder / name).write_bytes(private)
    (folder / f"{name}.pub").write_bytes(public)
