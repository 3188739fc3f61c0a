"""Shrinking: finding a small argument that still shows a difference.

Greedy, as property-based testing tools do it: try simpler variants in order, from the most drastic,
continue from the first that still fails, and stop when none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tffc.ir.type_parts import leaves
from tffc.ir.types import FederatedType, SequenceType, TensorType, Type
from tffc.values.concrete import Federated, flatten, to_python, to_value, unflatten

MAX_TRIES = 200
MAX_ELEMENTS = 16
"""Tensors with more elements are only simplified as a whole, since each try is a run of the
program."""


def shrink(argument: Any, type: Type, fails: Callable[[Any], bool]) -> Any:
    """Return an argument that also `fails`, and of which no part can be dropped or simplified.

    After `MAX_TRIES` calls of `fails` it is the simplest one found by then.
    """
    value, tries = to_value(argument, type), 0
    while True:
        for smaller in _smaller_argument(value, type):
            tries += 1
            if tries > MAX_TRIES:
                return to_python(value, type, _clients(value, type))
            # After a success the variants are made anew: they may fail for the new value.
            if fails(to_python(smaller, type, _clients(smaller, type))):
                value = smaller
                break
        else:
            return to_python(value, type, _clients(value, type))


def _clients(value: Any, type: Type) -> int:
    counts = (len(part.members) for part in _at_clients(flatten(value, type)))
    return next(counts, 0)


def _at_clients(parts: list[Any]) -> Iterator[Federated]:
    return (part for part in parts if isinstance(part, Federated) and not part.all_equal)


def _smaller_argument(value: Any, type: Type) -> Iterator[Any]:
    """Yield arguments with one client fewer, then with one simpler part."""
    parts = flatten(value, type)
    for index in range(_clients(value, type)):
        yield unflatten((_without(part, index) for part in parts), type)
    yield from _smaller(value, type)


def _without(part: Any, client: int) -> Any:
    if isinstance(part, Federated) and not part.all_equal:
        return Federated(part.members[:client] + part.members[client + 1 :], all_equal=False)
    return part


def _smaller(value: Any, type: Type) -> Iterator[Any]:
    """Yield slightly simpler values of a type: each changes one part, the simplest change first."""
    parts, kinds = flatten(value, type), leaves(type)
    for index, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        for other in _smaller_part(part, kind):
            yield unflatten(iter((*parts[:index], other, *parts[index + 1 :])), type)


def _smaller_part(part: Any, type: Type) -> Iterator[Any]:
    match type:
        case TensorType():
            yield from _smaller_tensor(part)
        case SequenceType():
            # Empty, half as long, one shorter; duplicates are dropped for short sequences.
            for size in dict.fromkeys((0, len(part) // 2, len(part) - 1)):
                if 0 <= size < len(part):
                    yield part[:size]
            yield from _smaller_members(list(part), type.element)
        case FederatedType():
            for members in _smaller_members(list(part.members), type.member):
                yield Federated(tuple(members), part.all_equal)
        case _:
            pass


def _smaller_members(members: list[Any], type: Type) -> Iterator[list[Any]]:
    for index, member in enumerate(members):
        for other in _smaller(member, type):
            yield [*members[:index], other, *members[index + 1 :]]


def _smaller_tensor(value: Any) -> Iterator[Any]:
    array = np.asarray(value)
    if array.dtype == object:
        if any(array.flat):
            yield np.full(array.shape, b"", object)[()]
        return
    zero, one = np.zeros_like(array), np.ones_like(array)
    is_zero = array == zero
    if is_zero.all():
        return
    yield zero[()]
    if not (array == one).all():
        yield one[()]
    if 1 < array.size <= MAX_ELEMENTS:
        for index in np.flatnonzero(~is_zero.reshape(-1)):
            other = array.copy()
            other.reshape(-1)[index] = 0
            yield other
