"""What is remembered of a run of a graph while it is evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from tffc.proof.graph import Library
from tffc.proof.sequences import Place


class Run:
    """A run of a graph with these functions: the state that it created, and what initialization did
    to that state.

    `function` is the function whose body it is, and `outer` the run that applies that function to
    the elements of a sequence.  `mask` has a bit for each state that leads into the current step.
    """

    def __init__(
        self, place: Place, library: Library, *, function: str = "", outer: Run | None = None
    ) -> None:
        self.place = place
        self.library = library
        self.function = function
        self.outer = outer
        self.states: dict[tuple[Hashable, ...], tuple[int, Hashable, tuple[int, ...]]] = {}
        self.touched: dict[int, list[int]] = {}
        self.named: list[tuple[Hashable, Hashable]] = []
        self.earlier: dict[str, int] = {}
        self.is_first = False
        self.mask = 0
        self.bits: dict[int, int] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Owed:
    """What the initialization of a section does besides making state, whether or not a result needs
    it; it is done if any of the `results` is needed."""

    results: tuple[int, ...]
    terms: tuple[int, ...]
