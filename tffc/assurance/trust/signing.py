"""Signing bundles, verifying that, and approving their clients' part, in folders."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

from tffc.assurance.audit.bundles import refuse_forged
from tffc.assurance.audit.policy_reading import PolicySource, policy_of
from tffc.assurance.trust.admission import trusted_signers
from tffc.assurance.trust.approvals import (
    MAX_BYTES,
    approval_of,
    approval_path,
    revocation_of,
)
from tffc.assurance.trust.claims import Findings, statement_of
from tffc.assurance.trust.envelopes import sign as signed
from tffc.assurance.trust.keyless import KEYLESS, sign_keyless
from tffc.assurance.trust.keys import (
    TOKEN,
    open_signer,
    password_from_environment,
    read_trusted,
)
from tffc.assurance.trust.statements import DIGEST
from tffc.assurance.trust.subjects import clients_part, subjects_of
from tffc.backends.bundle.bundle import Bundle, file_digests, read_bundle, text
from tffc.backends.bundle.signatures import PATH, signature_path
from tffc.support.errors import BundleError, TrustError
from tffc.support.files import atomic

Path = str | os.PathLike[str]

AskPassword = Callable[[str], str | None]
"""A function that returns a password, given what it is for."""

UNFIT = re.compile("[^A-Za-z0-9_.-]+")
"""Matches what the name of a file in a bundle does not have."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signers:
    """Who has signed a bundle: the names of trusted keys whose signatures hold, and why others do
    not."""

    names: Sequence[str]
    refusals: Sequence[str]

    def check(self, least: int = 1) -> None:
        """Check that so many trusted keys have signed.

        Raises:
          TrustError: they have not.
        """
        if len(self.names) < least:
            raise TrustError(
                "E888",
                f"the bundle has {len(self.names)} trusted signatures, and {least} are demanded",
                notes=tuple(self.refusals),
                help="ask whoever sent it for a signature by a key that you trust",
            )


def sign(
    bundle: Path,
    key: str,
    *,
    name: str | None = None,
    policy: PolicySource | None = None,
    password: AskPassword = password_from_environment,
) -> pathlib.Path:
    """Sign the bundle in a folder, and return the path of the signature, which is in that folder.

    The bundle is proved and audited first, and what came out is signed with the digests of all its
    files.  `key` is the file of a private key, `hsm:ID` for one in a token, or `sigstore` to sign
    without one; `name` is that of the signature, by default of the key.  With a `policy`, the
    signature says that the bundle passes it.

    Raises:
      TrustError: there is no such key, or the name cannot be used.
      PolicyError: the bundle does not pass the policy.
      ValidationError: its components compute something else than its program.
      TffcError: there is no bundle, it cannot be audited, or a text is not that of its program.
    """
    folder = pathlib.Path(bundle)
    signer = None if key == KEYLESS else open_signer(key, password)
    name = name or name_of_key(key)
    path = signature_path(name)
    if not PATH.fullmatch(path):
        raise TrustError(
            "E884",
            f"{name!r} cannot name a signature",
            help="use letters, digits and - _ . in the name",
        )
    opened, files = read_bundle(folder), file_digests(folder)
    findings = Findings.of(opened)
    findings.reading.check_not_forged()
    _check_texts(opened, files)
    rules = None if policy is None else policy_of(policy)
    # What was proved and audited is signed, whatever has happened in the folder since.
    statement = statement_of(findings, subjects_of(opened, files), rules)
    content = sign_keyless(statement) if signer is None else signed(statement, signer)
    _write(folder / path, content)
    return folder / path


def _check_texts(bundle: Bundle, files: Mapping[str, str]) -> None:
    """Check that the texts of a bundle, which nothing reads but people do, are those of its
    programs; `files` are the SHA-256 of its files.

    Raises:
      BundleError: one is not.
    """
    texts = {f"{stem}.sexpr": text(program) for stem, program in bundle.programs().items()}
    for path, own in texts.items():
        if files.get(path) != hashlib.sha256(own.encode()).hexdigest():
            raise BundleError(
                "E606",
                f"{path} of the bundle is not the text of its program",
                notes=("whoever reads it would not see what runs",),
                help="compile the program again with this version of tffc, and sign that",
            )


def name_of_key(key: str) -> str:
    """Return the name of what a key signs: that of its file, or of the key in its token."""
    return UNFIT.sub("-", key) if key.startswith(TOKEN) else pathlib.Path(key).stem


def verify_signature(bundle: Path, keys: Path | Sequence[Path]) -> Signers:
    """Return who has signed the bundle in a folder.

    `keys` are files of public keys, or folders of them.  A signature holds if a trusted key made
    it, every file is the one that was signed, and what it claims of proof and audit comes out here
    too.

    Raises:
      TrustError: a key cannot be used.
      TffcError: there is no bundle, or it is damaged.
    """
    folder = pathlib.Path(bundle)
    paths = [keys] if isinstance(keys, str | os.PathLike) else list(keys)
    trusted = read_trusted([pathlib.Path(each) for each in paths])
    opened = read_bundle(folder)
    subjects = subjects_of(opened, file_digests(folder))
    return Signers(*trusted_signers(Findings.of(opened), subjects, trusted))


def approve(
    bundle: Path | str,
    key: str,
    store: Path,
    *,
    reason: str = "",
    expires: datetime.date | None = None,
    revoke: bool = False,
    name: str | None = None,
    password: AskPassword = password_from_environment,
) -> pathlib.Path:
    """Approve the clients' part of a bundle, or revoke its approvals, and return the file with it.

    `bundle` is the folder of a bundle, or the digest of a clients' part.  `store` is the folder of
    approvals, and `key` as for `sign`.

    Raises:
      TrustError: there is no such key, or the name cannot be used.
      ValidationError: its components compute something else than its program.
      TffcError: there is no bundle.
    """
    digest = os.fspath(bundle)
    if not DIGEST.fullmatch(digest):
        opened = read_bundle(pathlib.Path(bundle))
        if not revoke:
            refuse_forged(opened)
        digest = clients_part(opened).digest
    signer = None if key == KEYLESS else open_signer(key, password)
    statement = revocation_of(digest, reason) if revoke else approval_of(digest, reason, expires)
    path = approval_path(pathlib.Path(store), digest, name or name_of_key(key), revokes=revoke)
    content = sign_keyless(statement) if signer is None else signed(statement, signer)
    if len(content) > MAX_BYTES:
        raise TrustError("E884", "the reason is too long", help="give a shorter one")
    _write(path, content)
    return path


def _write(path: pathlib.Path, content: bytes) -> None:
    folders = [each for each in path.parents if not each.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A signature or an approval that is there already is replaced, also if it was read.
        atomic.replace_file(path, content, is_shared=True)
    except OSError as error:
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise TrustError(
            "E887",
            f"cannot write {path}: {error.strerror}",
            help="name a folder that can be written",
        ) from None
