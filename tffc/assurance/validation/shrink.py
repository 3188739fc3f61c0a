"""Shrinking an argument that shows a difference to a small one that still does.

As in tools for property-based testing, this is greedy: it tries simpler variants, the most drastic
first, continues from the first that still fails, and stops when none of them fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tffc.language.type_parts import leaves
from tffc.language.types import FederatedType, SequenceType, TensorType, Type
from tffc.language.values.concrete import Federated, flatten, to_python, to_value, unflatten
from tffc.runtime.interpreter.interpreter import count_clients

MAX_TRIES = 200
MAX_ELEMENTS = 16
"""The most elements of a tensor that are simplified one by one; each try runs the program."""


def shrink(argument: Any, type: Type, fails: Callable[[Any], bool]) -> Any:
    """Return an argument that also `fails`, but passes if any part is dropped or simplified.

    After `MAX_TRIES` calls of `fails`, it is the simplest failing one so far.
    """

    def python(value: Any) -> Any:
        return to_python(value, type, count_clients(value, type))

    value, tries = to_value(argument, type), 0
    while True:
        for smaller in _smaller_argument(value, type):
            tries += 1
            if tries > MAX_TRIES:
                return python(value)
            # After a success, all variants of the new value are tried.
            if fails(python(smaller)):
                value = smaller
                break
        else:
            return python(value)


def _smaller_argument(value: Any, type: Type) -> Iterator[Any]:
    """Yield arguments with one client fewer, then with one simpler part."""
    parts = flatten(value, type)
    for index in range(count_clients(value, type)):
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
            # For short sequences, some of these lengths are equal.
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
