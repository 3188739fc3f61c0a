"""Flows: the abstract values of the dependency analysis, which are sets of sources.

A source is a part of a program's argument, or a random draw.  A set of sources is a bit set in an
int.  Elements and shape are tracked separately, because a count of examples depends on their
number, but not on their content.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tffc.support.guards import is_tuple

DEEPEST_DATASET = 8
"""The depth up to which nested datasets are distinguished; deeper ones are one flow."""

ANYTHING = "any state"
"""Among handles it stands for all cells: a name that is computed may lead to any."""

MANY = "more effects than are told apart"
"""Among handles it stands for all effects."""

MOST_HANDLES = 256
"""The handles of one tensor that are told apart; more are handles of any state."""

NO_HANDLES: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Flow:
    """The sources that the elements (`value`) and the shape of a tensor may depend on.

    For a tensor that holds a dataset, `elements` are the flows of its elements' components, if
    known, in TensorFlow's order of components, and `value` holds the sources that determine the
    number and order of the elements.  `handles` names the cells of state that whoever has the
    tensor may read or write: the variable behind a handle, or what the functions of a dataset use
    when somebody iterates over it.  `fails` holds the sources that may decide whether an iteration
    over it fails; only what catches failures needs them.
    """

    value: int = 0
    shape: int = 0
    elements: tuple[Flow, ...] | None = None
    handles: frozenset[str] = NO_HANDLES
    fails: int = 0

    def total(self) -> int:
        """Return all sources of the tensor, without those of the state behind a handle."""
        return self.value | self.shape | total_of(self.elements or ())

    def count(self) -> int:
        """Return the sources that determine which elements a dataset has; all of them if its
        elements are not known."""
        return self.total() if self.elements is None else self.value

    def with_value(self, sources: int) -> Flow:
        """Return the flow of the tensor after a choice that depends on `sources` has selected
        it."""
        if not sources & ~(self.value & self.shape):
            return self
        return dataclasses.replace(self, value=self.value | sources, shape=self.shape | sources)

    def with_failures(self, sources: int) -> Flow:
        """Return the flow of the tensor if `sources` may also decide whether going through it
        fails."""
        return dataclasses.replace(self, fails=self.fails | sources) if sources else self

    def with_handles(self, handles: frozenset[str]) -> Flow:
        """Return the flow of the tensor with more cells behind it."""
        if handles <= self.handles:
            return self
        return dataclasses.replace(self, handles=limited(self.handles | handles))


NOTHING = Flow()
"""The flow of a constant."""


def join(first: Flow, second: Flow) -> Flow:
    """Return the flow of a tensor that may be either of two."""
    if first == second:
        return first
    if NOTHING in (first, second):
        return second if first == NOTHING else first
    value, shape = first.value | second.value, first.shape | second.shape
    handles, fails = limited(first.handles | second.handles), first.fails | second.fails
    if first.elements is None and second.elements is None:
        return Flow(value, shape, None, handles, fails)
    if first.elements is None or second.elements is None or _widths_differ(first, second):
        # Components that cannot be paired are no longer told apart: the sources of all decide the
        # elements, and the cells of all are behind the dataset.
        inner = handles_of((*(first.elements or ()), *(second.elements or ())))
        total, held = value | first.total() | second.total(), limited(handles | inner)
        return Flow(total, shape, None, held, failures_of((first, second)))
    elements = tuple(map(join, first.elements, second.elements))
    return Flow(value, shape, elements, handles, fails)


def _widths_differ(first: Flow, second: Flow) -> bool:
    return len(first.elements or ()) != len(second.elements or ())


def join_all(flows: Iterable[Flow]) -> Flow:
    """Return the flow of a tensor that may be any of several."""
    return functools.reduce(join, flows, NOTHING)


def widened(flows: Sequence[Flow], width: int) -> tuple[Flow, ...]:
    """Return `width` flows; if there are fewer or more, all become their join."""
    if len(flows) == width:
        return tuple(flows)
    return (join_all(flows),) * width


def total_of(flows: Iterable[Flow]) -> int:
    """Return all sources of several tensors."""
    return union(flow.total() for flow in flows)


def handles_of(flows: Iterable[Flow]) -> frozenset[str]:
    """Return all cells behind several tensors, and behind the elements of datasets among them."""
    handles = NO_HANDLES
    stack = list(flows)
    while stack:
        flow = stack.pop()
        stack.extend(flow.elements or ())
        if flow.handles:
            handles |= flow.handles
    return handles


def failures_of(flows: Iterable[Flow]) -> int:
    """Return what may decide whether going through several tensors, or through elements of them,
    fails."""
    fails, stack = 0, list(flows)
    while stack:
        flow = stack.pop()
        stack.extend(flow.elements or ())
        fails |= flow.fails
    return fails


def limited(handles: frozenset[str]) -> frozenset[str]:
    """Return handles, or one of any state if there are too many."""
    return handles if len(handles) <= MOST_HANDLES else frozenset((ANYTHING, MANY))


def union(sets: Iterable[int]) -> int:
    """Return the union of sets of sources."""
    total = 0
    for sources in sets:
        total |= sources
    return total


def dataset(
    count: int, elements: Sequence[Flow], handles: frozenset[str] = NO_HANDLES, fails: int = 0
) -> Flow:
    """Return the flow of a tensor that holds a dataset."""
    return Flow(count, 0, tuple(map(_bounded, elements)), limited(handles), fails)


def _bounded(element: Flow, depth: int = 1) -> Flow:
    if element.elements is None:
        return element
    if depth == DEEPEST_DATASET:
        return Flow(element.total(), 0, None, handles_of((element,)), failures_of((element,)))
    inner = tuple(_bounded(component, depth + 1) for component in element.elements)
    return Flow(element.value, element.shape, inner, element.handles, element.fails)


Flows: TypeAlias = "Flow | tuple[Flows, ...]"
"""The flows of a value of the language: a tuple for a struct."""


def flatten(flows: object) -> list[Flow]:
    """Return the flows of a value's leaves in order, without functions."""
    leaves: list[Flow] = []
    stack = [flows]
    while stack:
        item = stack.pop()
        if isinstance(item, Flow):
            leaves.append(item)
        elif is_tuple(item):
            stack.extend(reversed(item))
    return leaves
