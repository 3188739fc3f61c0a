"""Comparison of the terms of the program with those of the form.

`Terms` gives equal pure operations the same number.  Only terms that depend on runs (draws,
effects, state) remain to be compared: each side has its own runs, and the comparison finds a
consistent correspondence between them.
"""

from __future__ import annotations

import dataclasses

from tffc.assurance.proof.iterations import DIFFERS, Iterations
from tffc.assurance.proof.terms import ELEMENTS, Terms
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import Value, elements_of, term_of


@dataclasses.dataclass(frozen=True, slots=True)
class Mismatch(Exception):
    """The first difference of two values: the leaf of the result, the terms of both sides, and the
    reason."""

    leaf: tuple[int, ...]
    program: Value
    form: Value
    reason: str


class Comparison:
    """A comparison of pairs of values that records which runs of both sides correspond.

    A draw or effect of the program corresponds to exactly one of the form.  State that is new in
    each run may be copied into several components, because all copies evolve in the same way.  But
    one state in the form must be one state in the program, and each component may contain an update
    of it only once.
    """

    def __init__(self, terms: Terms, iterations: Iterations) -> None:
        self._terms = terms
        self._iterations = iterations
        self._same: set[tuple[int, int]] = set()
        self.of_form: dict[int, int] = {}
        self.of_program: dict[int, int] = {}
        self._copies: dict[tuple[int, int], int] = {}

    def check(self, program: Value, form: Value) -> None:
        """Check that two values are the same.

        Raises:
          Mismatch: they are not.
          Undecided: they may or may not be.
        """
        stack: list[tuple[Value, Value, tuple[int, ...]]] = [(program, form, ())]
        seen: set[tuple[int, int]] = set()
        while stack:
            one, other, leaf = stack.pop()
            if _length(one) != _length(other):
                raise Mismatch(leaf, one, other, "the structs have other sizes")
            if isinstance(one, int):
                self._check_terms(one, term_of(other), leaf)
            # Structs are shared between places, so a pair of them is compared once.
            elif (id(one), id(other)) not in seen:
                seen.add((id(one), id(other)))
                pairs = list(enumerate(zip(elements_of(one), elements_of(other), strict=True)))
                stack.extend((a, b, (*leaf, index)) for index, (a, b) in reversed(pairs))

    def _check_terms(self, program: int, form: int, leaf: tuple[int, ...]) -> None:
        terms = self._terms
        stack = [(program, form)]
        while stack:
            one, other = stack.pop()
            if one == other or (one, other) in self._same:
                continue
            # They count as equal before their inputs are compared, because any later difference
            # ends the whole comparison.
            self._same.add((one, other))
            labels = terms.labels[one], terms.labels[other]
            if labels[0] == ELEMENTS != labels[1]:
                if not self._iterations.may_stand_for(other, one):
                    raise Undecided(DIFFERS)
                stack.append((terms.children[one][0], other))
                continue
            if labels[0] == ELEMENTS and not self._iterations.at_one_depth(one, other):
                raise Undecided(DIFFERS)
            if labels[0] != labels[1]:
                raise Mismatch(leaf, one, other, "other operations")
            if len(terms.children[one]) != len(terms.children[other]):
                raise Mismatch(leaf, one, other, "other numbers of inputs")
            self._check_run(one, other, leaf)
            pairs = zip(terms.children[one], terms.children[other], strict=True)
            stack.extend(reversed(list(pairs)))

    def correspond(self, program: int, form: int) -> bool:
        """Tell whether two terms are the same by the runs that are known to correspond."""
        terms, seen = self._terms, set[tuple[int, int]]()
        stack = [(program, form)]
        while stack:
            pair = one, other = stack.pop()
            if one == other or pair in seen or pair in self._same:
                continue
            seen.add(pair)
            if terms.labels[one] == ELEMENTS != terms.labels[other]:
                if not self._iterations.may_stand_for(other, one):
                    return False
                stack.append((terms.children[one][0], other))
                continue
            run, copy = terms.origins.get(one), terms.origins.get(other)
            if terms.labels[one] == ELEMENTS and not self._iterations.at_one_depth(one, other):
                return False
            if (
                terms.labels[one] != terms.labels[other]
                or len(terms.children[one]) != len(terms.children[other])
                or (copy is None and run is not None)
                or (copy is not None and self.of_form.get(copy) != run)
            ):
                return False
            stack.extend(zip(terms.children[one], terms.children[other], strict=True))
        self._same |= seen
        return True

    def _check_run(self, one: int, other: int, leaf: tuple[int, ...]) -> None:
        """Check that two terms, if they are runs, correspond."""
        terms = self._terms
        run, copy = terms.origins.get(one), terms.origins.get(other)
        if run is None or copy is None:
            if run is not copy:
                raise Mismatch(leaf, one, other, "only one of them is a run")
            return
        known = self.of_form.setdefault(copy, run)
        if copy not in terms.strict:
            if known != run:
                raise Undecided("state of several calls in one")
            # One copy in each component is fine; a second one in the same component would be a
            # second update.
            if self._copies.setdefault((run, terms.runs[copy]), copy) != copy:
                raise Undecided("what is done to state, done twice in one component")
            return
        if known != run:
            raise Mismatch(leaf, one, other, "what the program does twice, the form does once")
        if self.of_program.setdefault(run, copy) != copy:
            raise Mismatch(leaf, one, other, "what the program does once, the form does twice")


def _length(value: Value) -> int | None:
    """Return how many elements a struct has, None for a term."""
    if isinstance(value, int):
        return None
    if isinstance(value, tuple):
        return len(value)
    raise Undecided("a function as a result")
