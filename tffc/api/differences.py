"""Comparing two programs or bundles."""

from __future__ import annotations

from tffc.api.boundary import public
from tffc.api.opened_bundles import is_bundle_source, opened, parts_of
from tffc.api.programs import Source, program_of
from tffc.assurance.audit.bundles import read_for_audit
from tffc.assurance.diff.programs import ProgramDifference, differences
from tffc.backends.bundle.bundle import Bundle
from tffc.language.nodes import Node


@public
def diff(first: Source | Bundle, second: Source | Bundle) -> list[ProgramDifference]:
    """Return the differences of two programs or two bundles, part by part; none if they are
    the same.

    Parts are matched by name, and their bindings by value.  For a bundle and a program, the rounds
    are compared; the round of a bundle is its program only if its components are proved to compute
    it, and otherwise what they compute.

    Raises:
      TffcError: one of them cannot be read.
    """
    if is_bundle_source(first) == is_bundle_source(second):
        return list(differences(parts_of(first), parts_of(second)))
    return list(differences(_round_part(first), _round_part(second)))


def _round_part(source: Source | Bundle) -> dict[str, Node]:
    source = opened(source)
    if isinstance(source, Bundle):
        return {"computation": read_for_audit(source).program}
    return {"computation": program_of(source).as_round(None).computation}
