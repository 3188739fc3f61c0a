"""The values of many clients at once, stacked into arrays whose first axis is the clients.

Clients whose arrays have equal shapes form one group.  Reading a group costs no Python work for
each client where the source keeps values by shape, as values in memory and packed folders do; any
other source is read client by client.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout, stackable_layout
from tffc.runtime.data.source import ClientSource, Origin
from tffc.support.errors import DataError
from tffc.support.guards import Array


@dataclasses.dataclass(frozen=True, slots=True)
class ClientGroup:
    """Clients whose values have arrays of the same shapes.

    `positions` are the clients' indices in the requested list, ascending.  `columns` has one array
    for each tensor of the type, in its order: of shape (clients, ...), or (clients, elements, ...)
    for a tensor in a sequence.  The arrays may be views of the source's own, so they must not be
    written to.
    """

    positions: Array
    columns: tuple[Array, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Grouped:
    """The values of some clients, in groups.

    `others` are the positions of clients to be read one by one, because their values cannot be
    stacked or cannot be read.
    """

    groups: tuple[ClientGroup, ...]
    others: tuple[int, ...] = ()


@runtime_checkable
class GroupedSource(ClientSource, Protocol):
    """A source that keeps values of equal shapes together."""

    def read_groups(self, clients: Sequence[str]) -> Grouped:
        """Return the values of clients in groups.  Called from several threads at once."""
        ...


def read_groups(source: ClientSource, type: Type, clients: Sequence[str]) -> Grouped:
    """Return the values of clients, all of this type, in groups.

    Groups are ordered by the position of their first client.
    """
    if isinstance(source, GroupedSource):
        return source.read_groups(clients)
    stacks = Stacks(type, ((client, _value(source, client)) for client in clients))
    return stacks.take(clients)


NO_VALUE = object()
"""A placeholder for a value that cannot be read; a second reading raises the error in the right
place."""


def _value(source: ClientSource, client: str) -> Any:
    try:
        return source.read(client)
    except DataError:
        return NO_VALUE


class Stacks:
    """The values of clients of one type, stacked by the shapes of their arrays.

    For each client it knows the number of its stack and its row there, so taking any selection of
    clients is one indexing operation for each stack and array.
    """

    def __init__(self, type: Type, values: Iterable[tuple[str, Any]]) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        groups: dict[tuple[tuple[int, ...], ...], tuple[int, list[Sequence[Array]]]] = {}
        layout = stackable_layout(type)
        for client, value in values:
            columns = None if layout is None else _columns(layout, value)
            if columns is None:
                continue
            shapes = tuple(column.shape for column in columns)
            number, members = groups.setdefault(shapes, (len(groups), []))
            self._places[client] = number, len(members)
            members.append(columns)
        self._stacks = [
            tuple(map(np.stack, zip(*members, strict=True))) for _, members in groups.values()
        ]

    def take(self, clients: Sequence[str]) -> Grouped:
        """Return the values of some of the clients; those not kept here are in `others`."""
        missing = (-1, -1)
        places = np.array(
            [self._places.get(client, missing) for client in clients], np.intp
        ).reshape(len(clients), 2)
        groups: list[ClientGroup] = []
        for number, positions in by_number(places[:, 0]):
            if number >= 0:
                taken = [take_rows(column, places[positions, 1]) for column in self._stacks[number]]
                groups.append(ClientGroup(positions, tuple(taken)))
        return Grouped(tuple(groups), tuple(np.flatnonzero(places[:, 0] < 0).tolist()))


def by_number(numbers: Array) -> Iterator[tuple[int, Array]]:
    """Yield each distinct number with all indices where it occurs, ordered by first occurrence."""
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    # A stable sort by number puts the indices of one number next to each other, still ascending, so
    # they can be cut apart at the cumulative counts.
    places = np.argsort(inverse, kind="stable")
    parts = np.split(places, np.cumsum(np.bincount(inverse, minlength=len(distinct)))[:-1])
    for index in np.argsort(first):
        yield int(distinct[index]), parts[index]


def take_rows(array: Array, rows: Array) -> Array:
    """Return rows of an array; a view where they are consecutive, which saves the copy."""
    start = int(rows[0])
    if (np.diff(rows) == 1).all():
        return array[start : start + len(rows)]
    return array[rows]


def _columns(layout: ArrayLayout, value: Any) -> Sequence[Array] | None:
    """Return a value as arrays; None if elements of a sequence differ in shape."""
    if value is NO_VALUE:
        return None
    try:
        return layout.columns(value, "")
    except DataError:
        return None


class ValuesInMemory:
    """A list of values of one type as clients, which are named by their positions."""

    def __init__(self, type: Type, values: Sequence[Any]) -> None:
        width = len(str(len(values)))
        self.clients = tuple(str(number).zfill(width) for number in range(len(values)))
        self._type = type
        self._values = values

    def __reduce__(self) -> Any:
        return ValuesInMemory, (self._type, self._values)

    @functools.cached_property
    def _stacks(self) -> Stacks:
        return Stacks(self._type, zip(self.clients, self._values, strict=True))

    def origin(self) -> Origin:
        """See `CheckedSource`; they are in no file."""
        return Origin("python", {}, [])

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        return self._values[int(client)]

    def read_groups(self, clients: Sequence[str]) -> Grouped:
        """See `GroupedSource`."""
        return self._stacks.take(clients)
