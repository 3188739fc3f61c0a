"""The exception for programs that the prover cannot decide."""

from __future__ import annotations


class Undecided(Exception):
    """A `construct` that no rule covers; `detail` describes the instance that was found."""

    def __init__(self, construct: str, detail: str = "") -> None:
        super().__init__(construct, detail)
        self.construct = construct
        self.detail = detail
