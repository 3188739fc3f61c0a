"""What is remembered of a run of a graph while it is evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from tffc.assurance.proof.graph import Library
from tffc.assurance.proof.sequences import Place, operation_of
from tffc.assurance.proof.terms import DRAWN, GROUP, OWN, Terms


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
        self.states: dict[Hashable, tuple[int, Hashable, tuple[int, ...]]] = {}
        self.touched: dict[int, list[int]] = {}
        self.named: list[tuple[Hashable, Hashable]] = []
        self.earlier: dict[str, int] = {}
        self.is_first = False
        self.mask = 0
        self.bits: dict[int, int] = {}


def effects_besides_state(terms: Terms, done: int, run: Run) -> list[int]:
    """Return the terms of an initialization, by its last one, that do more than make state."""
    touched = {term for acted in run.touched.values() for term in acted}
    effects: dict[int, None] = {}
    stack = [done]
    while stack:
        term = stack.pop()
        if operation_of(terms.labels[term]) in (GROUP, "NoOp"):
            stack.extend(reversed(terms.children[term]))
        elif (
            terms.fails[term]
            or terms.taints[term] >= DRAWN
            or (terms.taints[term] == OWN and term not in touched and term not in run.touched)
        ):
            effects[term] = None
    return list(effects)


@dataclasses.dataclass(frozen=True, slots=True)
class Owed:
    """What the initialization of a section does besides making state, whether or not a result needs
    it; it is done if any of the `results` is needed."""

    results: tuple[int, ...]
    terms: tuple[int, ...]
