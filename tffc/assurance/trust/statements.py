"""Statements: digests of files, and what somebody says of them, as in-toto writes it.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md has the format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tffc.support.errors import TrustError, reader
from tffc.support.files.strict_json import NotJsonError, encode_json, is_object, is_text, read_json
from tffc.support.guards import is_dict, is_list

TYPE = "https://in-toto.io/Statement/v1"

PAYLOAD = "application/vnd.in-toto+json"
"""The media type of a statement in an envelope."""

DIGEST = re.compile("[0-9a-f]{64}")

MAX_SUBJECTS = 100_000
"""The most files that a statement is about."""


class Statement(NamedTuple):
    """What is said of files: `subjects` are their SHA-256 by name, `kind` says what the claims in
    `predicate` are."""

    subjects: Mapping[str, str]
    kind: str
    predicate: Mapping[str, Any]

    def encode(self) -> bytes:
        """Return the statement as JSON: the same statement gives the same bytes."""
        subjects = sorted(self.subjects.items())
        return encode_json(
            {
                "_type": TYPE,
                "subject": [{"name": name, "digest": {"sha256": sha}} for name, sha in subjects],
                "predicateType": self.kind,
                "predicate": dict(self.predicate),
            }
        )


@reader("a statement", TrustError)
def decode_statement(payload: bytes, source: str) -> Statement:
    """Return the statement in the payload of an envelope; `source` names it in messages.

    Raises:
      TrustError: it is not a statement of in-toto, or has a name twice.
    """
    try:
        content = read_json(payload)
    except NotJsonError as error:
        raise malformed(source, str(error)) from None
    if not is_object(content) or content.get("_type") != TYPE:
        raise malformed(source, f"its type is not {TYPE}")
    kind, predicate = content.get("predicateType"), content.get("predicate")
    if not is_text(kind) or not is_object(predicate):
        raise malformed(source, "its predicate is not right")
    return Statement(_subjects(content.get("subject"), source), kind, predicate)


def _subjects(listed: object, source: str) -> dict[str, str]:
    if not is_list(listed) or not 0 < len(listed) <= MAX_SUBJECTS:
        raise malformed(source, "it has no list of subjects")
    subjects: dict[str, str] = {}
    for subject in listed:
        digest = subject.get("digest") if is_dict(subject) else None
        sha = digest.get("sha256") if is_dict(digest) else None
        name = subject.get("name") if is_dict(subject) else None
        if not is_text(name) or not is_text(sha) or not DIGEST.fullmatch(sha):
            raise malformed(source, "a subject has no name or no SHA-256")
        if name in subjects:
            raise malformed(source, f"the subject {name!r} occurs twice")
        subjects[name] = sha
    return subjects


def malformed(source: str, reason: str) -> TrustError:
    """Return the refusal of a file that should hold a signed statement."""
    return TrustError(
        "E881", f"{source} is not a signed statement: {reason}", help="sign the bundle again"
    )
