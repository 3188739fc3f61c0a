"""Sequences that may differ when they are iterated over again.

A sequence that one computation hands to another is a list of elements in the program.  In the graph
of a form it is a dataset, which computes them anew in each iteration: a shuffle may give another
order, a draw other numbers, a counter the next ones.

So the elements of such a sequence are a term of their own, `ELEMENTS` of the dataset.  In a graph,
they are what is read from a cache that was filled by one pass: see `tffc.assurance.proof.passes`.
The dataset itself counts as the same only where the program iterates over it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tffc.assurance.proof.graph import Plan
from tffc.assurance.proof.sequences import operation_of
from tffc.assurance.proof.terms import ELEMENTS, PURE, Terms, has_parts
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.operations.iterations import ONE_BY_ONE, READERS, STEADY
from tffc.language.types import SequenceType, Type

RESULT = -1
"""The place of the result among the users of a value; steps have theirs in the plan."""

DIFFERS = "a sequence that may differ when it is iterated over again"


class Iterations:
    """The sequences that one computation hands to another, and the program's iterations over
    them."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._depths: dict[int, int] = {}
        self._pass_depths: dict[int, int] = {}
        self._iterated: set[int] = set()
        self._again: set[int] = set()
        self._steady: set[int] = set()
        self._steady_once: set[int] = set()

    def elements(self, dataset: int) -> int:
        """Return the elements of a dataset, computed once; the dataset if they never differ."""
        terms = self._terms
        if terms.labels[dataset] == ELEMENTS or self._is_steady(dataset, self._steady):
            return dataset
        return terms.value(ELEMENTS, (dataset,), fails=False)

    def computed_by_pass(self, dataset: int, depth: int) -> int:
        """Return the elements of a dataset that a pass computes at a place of this depth.

        Raises:
          Undecided: another pass computes them too.
        """
        elements = self.elements(dataset)
        if elements != dataset:
            if elements in self._pass_depths:
                raise Undecided(DIFFERS)
            self._pass_depths[elements] = depth
        return elements

    def at_one_depth(self, one: int, other: int) -> bool:
        """Tell whether elements of the program are computed as often as those that a pass of the
        form computes."""
        return other not in self._pass_depths or self._pass_depths[other] == self._depths.get(one)

    def handed(self, kinds: Sequence[Type], results: Sequence[int], depth: int) -> tuple[int, ...]:
        """Return what a computation hands to others, which runs at a place of this depth: of a
        dataset, the elements."""
        handed = [
            self.elements(term) if isinstance(kind, SequenceType) else term
            for kind, term in zip(kinds, results, strict=True)
        ]
        for elements, result in zip(handed, results, strict=True):
            if elements != result:
                self._depths.setdefault(elements, depth)
        return tuple(handed)

    def note(
        self, kind: Type, term: int, depth: int, is_once: Callable[[], bool] = lambda: True
    ) -> None:
        """Note that the program iterates over a value, if it is a sequence, at a place of this
        depth; `is_once` tells if it does so only once.

        Raises:
          Undecided: it may have other elements than in an iteration before.
        """
        if not isinstance(kind, SequenceType):
            return
        if self._terms.labels[term] != ELEMENTS:
            if not self._is_steady(term, self._steady):
                raise Undecided(DIFFERS)
        elif term in self._iterated or self._depths.get(term) != depth or not is_once():
            self._again.add(term)
        self._iterated.add(term)

    def check_order(
        self, kinds: Sequence[Type], results: Sequence[int], start: int, initialized: int
    ) -> None:
        """Check that it makes no difference when the sequences of a section's result are computed,
        whose run made the terms from `start` on, and the initialization those up to `initialized`.

        Raises:
          Undecided: they use a state that another part of the result uses too.
        """
        terms, steady = self._terms, self._steady
        sequences = {
            place
            for place, (kind, term) in enumerate(zip(kinds, results, strict=True))
            if isinstance(kind, SequenceType) and not self._is_steady(term, steady)
        }
        if not sequences or len(results) == 1:
            return
        acts = set(terms.acts)
        states = {
            term
            for term in range(start, len(terms.labels))
            if term in terms.origins
            and operation_of(terms.labels[term]) not in STEADY
            and (term in acts or term not in terms.strict)
        }
        if all(t < initialized or operation_of(terms.labels[t]) in READERS for t in states):
            return
        for term in range(start, len(terms.labels)):
            if not states.isdisjoint(terms.children[term]):
                states.add(term)
        owners, walked = dict[int, int](), set[int]()
        for place, root in enumerate(results):
            stack = [root]
            while stack:
                term = stack.pop()
                if term not in states:
                    continue
                owner = owners.setdefault(term, place)
                if owner != place and not sequences.isdisjoint((owner, place)):
                    raise Undecided("sequences that share a state, with others or with results")
                if owner == place and term not in walked:
                    walked.add(term)
                    stack.extend(terms.children[term])

    def dataset_of(self, term: int) -> int:
        """Return the dataset whose elements a term is, or the term if it is a dataset."""
        is_elements = self._terms.labels[term] == ELEMENTS
        return self._terms.children[term][0] if is_elements else term

    def may_stand_for(self, dataset: int, elements: int) -> bool:
        """Tell whether a dataset of the form, whose elements are those of the program, gives the
        same in all iterations."""
        is_once = elements in self._depths and elements not in self._again
        return is_once or self._is_steady(dataset, self._steady_once)

    def _is_steady(self, root: int, steady: set[int]) -> bool:
        """Tell whether nothing that a term is made of draws, keeps state or has effects.

        `steady` are the terms that are known to be so; if it is `_steady_once`, elements that are
        computed once are.
        """
        terms, stack, walked = self._terms, [root], set[int]()
        while stack:
            term = stack.pop()
            if terms.taints[term] == PURE or term in steady or term in walked:
                continue
            walked.add(term)
            label, is_run = terms.labels[term], term in terms.origins
            if label == ELEMENTS and steady is self._steady_once:
                continue
            if has_parts(label) and len(label) == 3 and label[1] == "run":  # in a function
                label, is_run = label[0], True
            if is_run and operation_of(label) not in STEADY:
                return False
            stack.extend(terms.children[term])
        steady |= walked
        return True


def iterates_once(plan: Plan, argument: int) -> bool:
    """Tell whether a graph iterates over an argument, a sequence, no more than once.

    What it returns of it counts as another sequence.
    """
    users: dict[int, list[tuple[int, int]]] = {}
    for place, step in enumerate(plan.steps):
        for position, (index, _) in enumerate(step.data):
            users.setdefault(index, []).append((place, position))
    for index, _ in plan.results:
        users.setdefault(index, []).append((RESULT, 0))
    value = argument
    while value in users:
        if len(users[value]) > 1:
            return False
        ((place, position),) = users[value]
        if place == RESULT:
            # Returned as it is, it would be the same term.
            return value != argument
        op = plan.steps[place].facts.op
        if position or op == "ReduceDataset":
            return not position
        if op not in ONE_BY_ONE:
            return False
        value = plan.arguments + place
    return True
