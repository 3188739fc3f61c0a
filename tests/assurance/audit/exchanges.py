"""Clients' data in which one part is exchanged, and what of it an audit has to name then."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tffc.assurance.audit.audit import Depends
from tffc.assurance.audit.programs import leaf_paths
from tffc.language import SequenceType, Type
from tffc.language.type_parts import leaves
from tffc.language.values.concrete import flatten, unflatten


class Exchange(NamedTuple):
    """Data in which the part at a path is another.  `fields` are those of `Depends` one of which
    names the path if something differs."""

    path: str
    fields: tuple[str, ...]
    data: Any

    def is_named(self, depends: Depends) -> bool:
        return any(self.path in getattr(depends, field) for field in self.fields)


ELEMENTS, COUNT, SHAPE = ("elements",), ("counts",), ("elements", "shapes")


def exchanges(type: Type, held: Any, other: Any, label: str = "d") -> Iterator[Exchange]:
    """Yield data with one leaf replaced: its elements, its shape, or the number of elements."""
    mine, others = flatten(held, type), flatten(other, type)
    for at, (leaf, path) in enumerate(zip(leaves(type), leaf_paths(type, label), strict=True)):
        if isinstance(leaf, SequenceType):
            changes = in_sequence(leaf.element, path, mine[at], others[at])
        else:
            changes = in_tensor(path, mine[at], others[at])
        for place, fields, changed in changes:
            whole = [*mine[:at], changed, *mine[at + 1 :]]
            yield Exchange(place, fields, unflatten(iter(whole), type))


Change = tuple[str, tuple[str, ...], Any]


def in_tensor(path: str, mine: Any, other: Any) -> Iterator[Change]:
    """Yield the other tensor and, if it has another shape, its elements in the shape of this."""
    if np.shape(mine) == np.shape(other):
        yield path, ELEMENTS, other
        return
    yield path, SHAPE, other
    yield path, ELEMENTS, resized(other, np.asarray(mine))
    yield path, SHAPE, resized(mine, np.asarray(other))


def resized(value: Any, like: Any) -> Any:
    """Return elements, as often as needed, in the shape of another array."""
    elements = np.asarray(value)
    return np.resize(elements, like.shape) if elements.size else like


def in_sequence(element: Type, path: str, mine: list[Any], others: list[Any]) -> Iterator[Change]:
    """Yield a longer sequence, and sequences in which one leaf of every element is taken from
    another sequence."""
    yield path, COUNT, [*mine, *others]
    for at, place in enumerate(leaf_paths(element, path)):
        changed: list[Any] = []
        fields = ELEMENTS
        for one, another in zip(mine, itertools.cycle(others or mine), strict=False):
            parts, taken = flatten(one, element), flatten(another, element)
            if np.shape(parts[at]) != np.shape(taken[at]):
                fields = SHAPE
            parts[at] = taken[at]
            changed.append(unflatten(iter(parts), element))
        yield place, fields, changed
