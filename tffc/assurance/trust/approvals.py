"""Approvals: that somebody has reviewed the clients' part of a program, kept in a folder.

    DIGEST/NAME.sigstore.json            an approval, signed by the reviewer of that name
    DIGEST/NAME.revoked.sigstore.json    its end, signed by whoever may approve

DIGEST is that of the clients' part.  The folder can be in a repository of git, whose history then
says who put what there when.  A revocation counts as long as its file is there, whatever approvals
are put back; so whoever can write to the folder can undo it, and nobody else.
"""

from __future__ import annotations

import datetime
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tffc.assurance.trust.envelopes import decode_signature, verified
from tffc.assurance.trust.keys import Trusted
from tffc.assurance.trust.statements import Statement
from tffc.backends.bundle.signatures import SUFFIX
from tffc.support.errors import TffcError, TrustError
from tffc.support.files.reading import read_regular

APPROVAL = "urn:tffc:approval:1"
REVOCATION = "urn:tffc:revocation:1"
"""The kinds of statements about a clients' part."""

SUBJECT = "clients-part"
"""The name of the subject of both."""

REVOKED = f".revoked{SUFFIX}"

MAX_BYTES = 2**16
"""The most bytes of a file in the store."""

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""The names of reviewers in the store."""


class Approval(NamedTuple):
    """An approval that holds: the trusted key that signed it, the reviewer's reason, and the last
    day, if there is one."""

    key: str
    reason: str
    expires: datetime.date | None

    def __str__(self) -> str:
        until = "" if self.expires is None else f" until {self.expires}"
        return f"approved by {self.key}{until}" + (f": {self.reason}" if self.reason else "")


def approval_of(digest: str, reason: str, expires: datetime.date | None) -> Statement:
    """Return the statement that approves a clients' part."""
    until = None if expires is None else expires.isoformat()
    return Statement({SUBJECT: digest}, APPROVAL, {"reason": reason, "expires": until})


def revocation_of(digest: str, reason: str) -> Statement:
    """Return the statement that ends the approvals of a clients' part."""
    return Statement({SUBJECT: digest}, REVOCATION, {"reason": reason})


def approval_path(store: pathlib.Path, digest: str, name: str, *, revokes: bool) -> pathlib.Path:
    """Return the path of an approval or a revocation in a store.

    Raises:
      TrustError: the name is none that a file can have.
    """
    if not NAME.fullmatch(name) or name.endswith(".revoked"):
        raise TrustError(
            "E884",
            f"{name!r} cannot name an approval",
            help="use letters, digits and - _ . in the name",
        )
    return store / digest / f"{name}{REVOKED if revokes else SUFFIX}"


def find_approval(
    store: pathlib.Path, digest: str, keys: Sequence[Trusted], today: datetime.date
) -> Approval:
    """Return an approval of a clients' part that holds today, by one of the trusted keys.

    Raises:
      TrustError: there is none, or it was revoked; the message has the reason.
    """
    reasons: list[str] = []
    approvals: list[Approval] = []
    files = sorted((store / digest).glob(f"*{SUFFIX}"))
    for file in files:
        try:
            kind, approval = _read(file, digest, keys)
        except TffcError as error:
            reasons.append(f"{file.name}: {error.message}")
            # What might be a revocation is one: a damaged file must not bring back what it ended.
            if file.name.endswith(REVOKED):
                raise _missing(digest, "a revocation cannot be read", reasons) from None
            continue
        if kind == REVOCATION:
            raise _missing(digest, f"it was revoked by {approval.key}", [approval.reason])
        if approval.expires is not None and approval.expires < today:
            reasons.append(f"{file.name}: it was valid until {approval.expires}")
            continue
        approvals.append(approval)
    if not approvals:
        why = "no approval of it holds" if files else "nobody has approved it"
        raise _missing(digest, why, reasons)
    return approvals[0]


def _read(file: pathlib.Path, digest: str, keys: Sequence[Trusted]) -> tuple[str, Approval]:
    try:
        content = read_regular(file, MAX_BYTES)
    except OSError as error:
        raise _unfit(f"it cannot be read: {error.strerror}") from None
    key, statement = verified(decode_signature(content, file.name), keys)
    if statement.kind not in (APPROVAL, REVOCATION):
        raise _unfit(f"it is a statement of the kind {statement.kind!r}")
    if dict(statement.subjects) != {SUBJECT: digest}:
        raise _unfit("it is about another clients' part")
    return statement.kind, _approval(key, statement.predicate)


def _approval(key: str, predicate: Any) -> Approval:
    reason, expires = predicate.get("reason"), predicate.get("expires")
    if not isinstance(reason, str) or not isinstance(expires, str | None):
        raise _unfit("its reason or its last day is not right")
    try:
        day = None if expires is None else datetime.date.fromisoformat(expires)
    except ValueError:
        raise _unfit(f"its last day is {expires!r}, which is no date") from None
    return Approval(key, reason, day)


def _unfit(reason: str) -> TrustError:
    return TrustError("E884", reason, help="ask the reviewer for a new approval")


def _missing(digest: str, why: str, reasons: Sequence[str]) -> TrustError:
    return TrustError(
        "E884",
        f"the clients' part {digest[:16]} is not approved: {why}",
        notes=tuple(filter(None, reasons)),
        help="let a reviewer look at it with tffc audit, and approve it with tffc approve",
    )
