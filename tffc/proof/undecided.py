"""The exception for what the prover cannot decide."""

from __future__ import annotations


class Undecided(Exception):
    """A construct that no rule covers: `construct` names it, `detail` says what was met."""

    def __init__(self, construct: str, detail: str = "") -> None:
        super().__init__(construct, detail)
        self.construct = construct
        self.detail = detail
