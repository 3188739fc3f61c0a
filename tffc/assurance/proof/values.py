"""The machine's values, and their conversion to and from their leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from tffc.assurance.proof.undecided import Undecided
from tffc.language.environment import Environment
from tffc.language.nodes import Compiled, Intrinsic, Lambda
from tffc.language.size import max_size
from tffc.language.types import FederatedType, StructType, Type

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function of the program, with the scope in which it was created."""

    function: Lambda
    scope: Scope


Function: TypeAlias = Closure | Compiled | Intrinsic

Value: TypeAlias = "int | tuple[Value, ...] | Function"
"""A term, a tuple of values for a struct, or a function."""

Scope: TypeAlias = "Environment[Value | None]"
"""What names mean; the parameter of a function that is called without an argument is None."""


def elements_of(value: Value) -> tuple[Value, ...]:
    """Return the elements of a struct."""
    assert isinstance(value, tuple)
    return value


def term_of(value: Value) -> int:
    """Return the term that a value is."""
    assert isinstance(value, int)
    return value


def function_of(value: Value) -> Function:
    """Return the function that a value is."""
    assert isinstance(value, (Closure, Compiled, Intrinsic))
    return value


def leaf_terms(value: Value) -> list[int]:
    """Return the terms in a value, in order."""
    terms: list[int] = []
    stack, most = [value], max_size()
    while stack:
        part = stack.pop()
        if isinstance(part, int):
            terms.append(part)
        elif isinstance(part, tuple):
            stack.extend(reversed(part))
            most -= len(part)
        else:
            raise Undecided("a function as a value of TensorFlow")
        if most < 0:
            raise Undecided("size", "a value has too many parts")
    return terms


def from_leaves(root: Type, terms: Iterable[int]) -> Value:
    """Return the value of a type with these leaves; placed values are represented by their
    members."""
    remaining = iter(terms)
    structs: list[list[Value]] = [[]]
    stack: list[Iterator[Type]] = [iter((root,))]
    while stack:
        for kind in stack[-1]:
            while isinstance(kind, FederatedType):
                kind = kind.member
            if isinstance(kind, StructType):
                stack.append(iter(kind.types))
                structs.append([])
                break
            structs[-1].append(next(remaining))
        else:
            stack.pop()
            if stack:
                whole = tuple(structs.pop())
                structs[-1].append(whole)
    return structs[0][0]


def leaves_of(root: Type) -> list[Type]:
    """Return the types of a value's leaves, in order; placed values are represented by their
    members."""
    kinds: list[Type] = []
    stack, most = [root], max_size()
    while stack:
        kind = stack.pop()
        if isinstance(kind, FederatedType):
            stack.append(kind.member)
        elif isinstance(kind, StructType):
            stack.extend(reversed(kind.types))
            most -= len(kind)
        else:
            kinds.append(kind)
        if most < 0:
            raise Undecided("size", "a type has too many parts")
    return kinds


def in_dataset_order(element: Type, values: list[T], *, back: bool = False) -> list[T]:
    """Reorder the leaves of a sequence's element from the order of the type to that of a dataset.

    In a dataset, structs with names are sorted by name.  With `back`, reorder the other way.
    """
    order: list[int] = []
    positions = from_leaves(element, range(len(values)))
    stack: list[tuple[Type, Value]] = [(element, positions)]
    while stack:
        kind, position = stack.pop()
        if not isinstance(kind, StructType):
            order.append(term_of(position))
            continue
        named = [name for name in kind.names if name is not None]
        if named and len(named) < len(kind):
            raise Undecided("a sequence of structs of which some parts have names")
        places = sorted(range(len(kind)), key=named.__getitem__) if named else range(len(kind))
        positions = elements_of(position)
        stack.extend((kind.types[place], positions[place]) for place in reversed(list(places)))
    if not back:
        return [values[index] for index in order]
    ordered = list(values)
    for place, index in enumerate(order):
        ordered[index] = values[place]
    return ordered
