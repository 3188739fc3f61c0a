"""Sequences that may differ when they are iterated over again.

A sequence that one section hands to another is a list of elements in the program.  In the graph of
a form it is a dataset, which computes them anew in each iteration: a shuffle may give another
order, a draw other numbers, a counter the next ones.  So such a sequence may be iterated over once.
"""

from __future__ import annotations

from collections.abc import Callable

from tffc.ir.types import SequenceType, Type
from tffc.proof.graph import Plan
from tffc.proof.sequences import operation_of
from tffc.proof.terms import PURE, Terms
from tffc.proof.undecided import Undecided

STEADY = frozenset(
    {
        *("MapDataset", "PartitionedCall", "RangeDataset", "ReduceDataset", "TensorDataset"),
        *("TensorSliceDataset",),
    }
)
"""Operations that count as keeping state of their own, and give the same each time."""

ONE_BY_ONE = frozenset(
    {
        *("BatchDataset", "BatchDatasetV2", "FilterDataset", "FlatMapDataset", "Identity"),
        *("MapDataset", "OptionsDataset", "PaddedBatchDatasetV2", "ParallelMapDatasetV2"),
        *("PrefetchDataset", "ShuffleDataset", "ShuffleDatasetV3", "SkipDataset", "TakeDataset"),
    }
)
"""Operations whose first input is iterated over once when their output is."""


RESULT = -1
"""The place of the result among the users of a value; steps have theirs in the plan."""


class Iterations:
    """The sequences over which a program has iterated, by their terms."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._iterated: set[int] = set()
        self._steady: set[int] = set()

    def note(self, kind: Type, term: int, is_once: Callable[[], bool] = lambda: True) -> None:
        """Note an iteration over a value, if it is a sequence; `is_once` tells if it is only one.

        Raises:
          Undecided: it may have other elements than in an iteration before.
        """
        if not isinstance(kind, SequenceType) or self._is_steady(term):
            return
        if term in self._iterated or not is_once():
            raise Undecided("a sequence that may differ when it is iterated over again")
        self._iterated.add(term)

    def _is_steady(self, root: int) -> bool:
        """Tell whether nothing that a term is made of draws, keeps state or has effects."""
        terms, stack, walked = self._terms, [root], set[int]()
        while stack:
            term = stack.pop()
            if terms.taints[term] == PURE or term in self._steady or term in walked:
                continue
            walked.add(term)
            match terms.labels[term]:
                case (label, "run", int()):  # in a function
                    is_run = True
                case label:
                    is_run = term in terms.origins
            if is_run and operation_of(label) not in STEADY:
                return False
            stack.extend(terms.children[term])
        self._steady |= walked
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
