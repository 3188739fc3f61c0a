"""What signatures and approvals are about: the files of a bundle, and its clients' part.

The clients' part of a bundle is everything that does not run at the server alone: what each client
computes, and how that is added up.  A node can hold nobody to the rest, because a server may send
and keep what it likes.  So an approval of the clients' part stays valid when only the server's part
changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.form import Side
from tffc.language import wire
from tffc.language.nodes import Node
from tffc.support.files.strict_json import encode_json

PART = "urn:tffc:clients-part:1"
"""What the digest of a clients' part is computed over, with its version."""


class ClientsPart(NamedTuple):
    """The components of a form that do not run at the server alone, by name, and their digest."""

    components: Mapping[str, Node]
    digest: str


def clients_part(bundle: Bundle) -> ClientsPart:
    """Return the clients' part of a bundle, to which its discount belongs.

    Its digest is the SHA-256 of JSON that has the form and the SHA-256 of each component.

    Raises:
      FormError: the components are not those of the form.
    """
    form = bundle.read_form()
    parts = {name: part for name, side, part in form.parts_by_side() if side is not Side.SERVER}
    if bundle.discount is not None:
        # With it rounds may be buffered, and whoever merges sees each contribution alone.
        parts["discount"] = bundle.discount
    digests = {name: _digest(wire.to_bytes(part, leaves=False)) for name, part in parts.items()}
    content = {"kind": PART, "form": bundle.form, "components": dict(sorted(digests.items()))}
    return ClientsPart(parts, _digest(encode_json(content)))


def subjects_of(bundle: Bundle, files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of the files of a bundle by path, which a signature must be about.

    `files` are those of its folder.  Programs are digested as they are in memory, because those
    run, whatever has happened in the folder since they were read.
    """
    programs = {f"{stem}.pb": digest for stem, digest in bundle.digests().items()}
    return {**(files or {}), **programs}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
