"""Keys that sign statements: private ones from files or a token, and the public ones one trusts."""

# securesystemslib documents these names, and does not mark them as exported.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tffc.assurance.trust.keyless import SUFFIX as IDENTITY
from tffc.assurance.trust.keyless import TrustedIdentity, read_identity
from tffc.support.errors import MissingExtraError, TrustError, reader
from tffc.support.files.reading import read_named, read_regular
from tffc.support.near import near_file

if TYPE_CHECKING:
    from securesystemslib.signer import Key, Signer

MAX_KEY = 2**16
"""The most bytes of a file with a key."""

LEAST_BITS = 2048
"""The least bits of an RSA key."""

TOKEN = "hsm:"
"""The beginning of the name of a key in a PKCS#11 token: `hsm:2?label=TOKEN`, where 2 is the
key's CKA_ID."""

TOKEN_NAME = re.compile(r"hsm:(?P<id>[0-9]{1,9})(\?label=(?P<label>.+))?")

PASSWORD = "TFFC_KEY_PASSWORD"
"""The environment variable with the password of a private key, or the PIN of a token."""

PUBLIC_SUFFIXES = ".pub", ".pem", IDENTITY
"""The suffixes of files in a folder that say whom to trust."""


class TrustedKey(NamedTuple):
    """A public key, under the name of its file."""

    name: str
    key: Key


Trusted: TypeAlias = TrustedKey | TrustedIdentity
"""Whose signatures count."""


def password_from_environment(what: str) -> str | None:
    """Return the password in `TFFC_KEY_PASSWORD`, if there is one."""
    return os.environ.get(PASSWORD)


def open_signer(name: str, ask: Callable[[str], str | None]) -> Signer:
    """Return what signs with a private key: a file in PEM or OpenSSH's format, or `hsm:ID` for a
    key in a token.  `ask` returns the password, given what it is for.

    Raises:
      TrustError: there is no such key, or its password is wrong.
      MissingExtraError: what signs is not installed.
    """
    check_installed()
    return _token_signer(name, ask) if name.startswith(TOKEN) else _file_signer(name, ask)


@reader("a private key", TrustError)
def _file_signer(name: str, ask: Callable[[str], str | None]) -> Signer:
    from securesystemslib.exceptions import UnsupportedAlgorithmError
    from securesystemslib.signer import CryptoSigner, SSlibKey

    path = pathlib.Path(name)
    content = _content(path, "private")
    key = _private_key(path, content, ask)
    try:
        _check_strength(key.public_key())
        # The types that fit are the ones that securesystemslib knows.
        return CryptoSigner(key, SSlibKey.from_crypto(key.public_key()))
    except (ValueError, UnsupportedAlgorithmError) as error:
        raise _unusable(path, "private", str(error)) from None


def _private_key(path: pathlib.Path, content: bytes, ask: Callable[[str], str | None]) -> Any:
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_ssh_private_key,
    )

    load = load_ssh_private_key if b"BEGIN OPENSSH" in content else load_pem_private_key
    try:
        return load(content, None)
    except TypeError:  # which says that the key has a password
        password = ask(f"the password of {path}")
    except Exception as error:  # noqa: BLE001 - whatever a stranger's file makes of it
        raise _unusable(path, "private", str(error)) from None
    if not password:
        raise _unusable(path, "private", f"it has a password, and {PASSWORD} does not say it")
    try:
        return load(content, password.encode())
    except Exception as error:  # noqa: BLE001
        raise _unusable(path, "private", str(error)) from None


def _token_signer(name: str, ask: Callable[[str], str | None]) -> Signer:
    from securesystemslib.exceptions import UnsupportedLibraryError
    from securesystemslib.signer import HSMSigner

    match = TOKEN_NAME.fullmatch(name)
    if match is None:
        raise TrustError(
            "E882", f"{name!r} names no key in a token", help="write hsm:ID or hsm:ID?label=TOKEN"
        )
    pin = ask("the PIN of the token")
    try:
        uri, key = HSMSigner.import_(int(match["id"]), match["label"])
        return HSMSigner.from_priv_key_uri(uri, key, lambda _: pin or "")
    except UnsupportedLibraryError as error:
        raise MissingExtraError(
            "E701",
            f"keys in tokens need a package: {error}",
            help="pip install 'securesystemslib[PKCS11]'",
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever the token's library raises
        raise TrustError(
            "E882",
            f"cannot use the key {name}: {type(error).__name__}: {error}",
            help="PYKCS11LIB names the library of the token; ID is the key's CKA_ID, of a pair on "
            "the curve P-256 or P-384",
        ) from None


def read_trusted(paths: list[pathlib.Path]) -> list[Trusted]:
    """Return the public keys in files, and in the `.pub` and `.pem` files of folders, each once;
    and the identities in `.identity` files.

    Raises:
      TrustError: there is none, or a file holds no public key.
      MissingExtraError: what verifies is not installed.
    """
    check_installed()
    trusted: dict[str, Trusted] = {}
    for file in _files(paths):
        if file.suffix == IDENTITY:
            identity = read_identity(file)
            trusted.setdefault(f"{identity.identity} {identity.issuer}", identity)
        else:
            key = _public_key(file)
            trusted.setdefault(key.keyid, TrustedKey(file.stem, key))
    return list(trusted.values())


def _files(paths: list[pathlib.Path]) -> Iterator[pathlib.Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        files = sorted(file for file in path.iterdir() if file.suffix in PUBLIC_SUFFIXES)
        if not files:
            raise TrustError(
                "E882",
                f"the folder {path} holds no public keys",
                help="put keys there, as NAME.pub or NAME.pem",
            )
        yield from files


@reader("a public key", TrustError)
def _public_key(path: pathlib.Path) -> Key:
    from cryptography.hazmat.primitives.serialization import (
        load_pem_public_key,
        load_ssh_public_key,
    )
    from securesystemslib.signer import SSlibKey

    content = _content(path, "public")
    load = load_pem_public_key if content.lstrip().startswith(b"-----") else load_ssh_public_key
    try:
        key = load(content)
        _check_strength(key)
        return SSlibKey.from_crypto(key)
    except Exception as error:  # noqa: BLE001 - whatever a stranger's file makes of it
        raise _unusable(path, "public", str(error)) from None


def _check_strength(key: object) -> None:
    """Check that a public key is not short; the curves that fit are none of short keys.

    Raises:
      ValueError: it is.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey) and key.key_size < LEAST_BITS:
        raise ValueError(f"RSA keys of less than {LEAST_BITS} bits are too short")


def _content(path: pathlib.Path, side: str) -> bytes:
    read = read_named if side == "private" else read_regular
    try:
        return read(path, MAX_KEY)
    except OSError as error:
        raise TrustError(
            "E882",
            f"cannot read the {side} key {path}: {error.strerror}",
            help=near_file(path, os.path.isfile) or "name the file of a key",
        ) from None


def _unusable(path: pathlib.Path, side: str, reason: str) -> TrustError:
    return TrustError(
        "E882",
        f"{path} holds no {side} key that signs: {reason}",
        help="make one with: ssh-keygen -t ed25519 -f NAME, or openssl genpkey",
    )


def check_installed() -> None:
    """Check that what signs and verifies is installed.

    Raises:
      MissingExtraError: it is not.
    """
    import importlib.util

    if importlib.util.find_spec("securesystemslib") is None:
        raise MissingExtraError(
            "E701",
            "securesystemslib is not installed, and signatures need it",
            help="pip install 'securesystemslib[crypto]'",
        )
