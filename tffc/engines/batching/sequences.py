"""Sequences of clients as index arithmetic: which rows of their arrays each element has.

Clients of a batch may hold different numbers of elements, but what XLA compiles has one shape.  So
the elements of a sequence are divided into runs of one size: the whole batches, of which a client
has as many as it has, and the smaller one at the end.  Clients with the same sizes of runs share
what is compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.engines.reductions.slices import Arrangement

Run: TypeAlias = tuple[int, int]
"""How many elements of how many rows each follow one another; 0 rows is a row by itself."""

MOST_RUNS = 8
"""Each run is compiled by itself, so that there may not be many."""


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """The elements of a sequence of rows: rows are arranged, divided into batches of `size` rows if
    it is not 0, and the batches arranged again.

    `number` says which sequence of the client's data has the rows.  With `whole`, a smaller batch
    at the end is left out.
    """

    number: int
    rows: tuple[Arrangement, ...] = ()
    size: int = 0
    whole: bool = False
    batches: tuple[Arrangement, ...] = ()

    def arranged(self, operation: str, number: int) -> Order:
        """Return the elements of this order repeated, or some of them."""
        if self.size:
            return dataclasses.replace(self, batches=(*self.batches, (operation, number)))
        return dataclasses.replace(self, rows=(*self.rows, (operation, number)))

    def runs(self, length: int) -> tuple[Run, ...] | None:
        """Return the runs of a sequence of so many rows; None if they are too many.

        Where whole batches can come first there is a run of them, if only of none.
        """
        total = lengths(length, self.rows)[-1]
        if not self.size:
            return ((total, 0),)
        whole, rest = divmod(total, self.size)
        last = int(rest > 0 and not self.whole)
        if not self.batches:
            return (whole, self.size), *([(1, rest)] if last else [])
        order = _arranged(np.arange(whole + last), self.batches)
        sizes = np.where(order == whole, rest, self.size)
        starts = np.flatnonzero(np.diff(sizes, prepend=-1))
        if len(starts) > MOST_RUNS:
            return None
        counts = np.diff(starts, append=len(sizes))
        return tuple(zip(counts.tolist(), sizes[starts].tolist(), strict=True))

    def begin(self, index: Any, length: Any) -> Any:
        """Return where the element at an index begins, among the rows as they are arranged."""
        if not self.size:
            return index
        total = lengths(length, self.rows)[-1]
        whole = total // self.size
        count = whole if self.whole else whole + _minimum(total - whole * self.size, 1)
        return places(index, self.batches, count) * self.size

    @property
    def is_cyclic(self) -> bool:
        """Whether arranged rows that follow one another are rows that do, the first row after the
        last."""
        operations = [operation for operation, _ in self.rows]
        return "RepeatDataset" not in operations[1:]


def lengths(length: Any, arrangements: Sequence[Arrangement]) -> list[Any]:
    """Return how many things there are before the first arrangement and after each."""
    found = [length]
    for operation, number in arrangements:
        if operation == "RepeatDataset":
            length = length * number
        else:
            taken = _minimum(length, number)
            length = length - taken if operation == "SkipDataset" else taken
        found.append(length)
    return found


def places(place: Any, arrangements: Sequence[Arrangement], length: Any) -> Any:
    """Return which of so many things comes at a place of their arrangement."""
    before = lengths(length, arrangements)
    for (operation, number), count in reversed(list(zip(arrangements, before, strict=False))):
        if operation == "RepeatDataset":
            # There is no place among no things, which need not be looked for.
            place = place % (_minimum(count, 1) * (count - 1) + 1)
        elif operation == "SkipDataset":
            place = place + number
    return place


def _minimum(first: Any, second: int) -> Any:
    if isinstance(first, int):
        return min(first, second)
    take: Callable[..., Any] = _tensorflow().minimum
    return take(first, second)


def _tensorflow() -> Any:
    from tffc.frameworks.tensorflow.load import load_tensorflow

    return load_tensorflow()


def _arranged(order: Any, arrangements: Sequence[Arrangement]) -> Any:
    for operation, number in arrangements:
        if operation == "RepeatDataset":
            order = np.tile(order, number)
        else:
            order = order[number:] if operation == "SkipDataset" else order[:number]
    return order
