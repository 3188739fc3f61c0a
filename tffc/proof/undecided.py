"""What the prover cannot decide, and says so."""

from __future__ import annotations


class Undecided(Exception):
    """A construct that no rule is about: `construct` names it, `detail` says where it was met."""

    def __init__(self, construct: str, detail: str = "") -> None:
        super().__init__(construct, detail)
        self.construct = construct
        self.detail = detail
