"""Clients' sequences as index arithmetic: the rows of the arrays that each element consists of.

Clients of a batch may hold different numbers of elements, but XLA compiles for fixed shapes.  So
the elements of a sequence are divided into runs of equal size: any number of whole batches, and the
smaller batch at the end.  Clients whose runs have the same sizes share compiled code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tffc.runtime.lowering.tracer import Tensor, Tracer
from tffc.runtime.reductions.slices import Arrangement, arranged

Run: TypeAlias = tuple[int, int]
"""A number of consecutive elements, and the rows of each; 0 rows for a row without a batch axis."""

MOST_RUNS = 8
"""The most runs of a sequence; each is compiled separately."""


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """The way in which elements are made from a sequence of rows.

    Rows are arranged, then divided into batches of `size` rows (unless it is 0), and the batches
    are arranged again.  `number` is the index of the sequence among those of the client's data.
    With `whole`, a smaller batch at the end is dropped.
    """

    number: int
    rows: tuple[Arrangement, ...] = ()
    size: int = 0
    whole: bool = False
    batches: tuple[Arrangement, ...] = ()

    def arranged(self, operation: str, number: int) -> Order:
        """Return this order with one more arrangement: repeat, skip or take."""
        if self.size:
            return dataclasses.replace(self, batches=(*self.batches, (operation, number)))
        return dataclasses.replace(self, rows=(*self.rows, (operation, number)))

    def runs(self, length: int) -> tuple[Run, ...] | None:
        """Return the runs of a sequence of `length` rows, or None if there are too many.

        If batches are not rearranged, the first run is the whole batches, even if there are none.
        """
        total = lengths(length, self.rows)[-1]
        if not self.size:
            return ((total, 0),)
        whole, rest = divmod(total, self.size)
        last = int(rest > 0 and not self.whole)
        if not self.batches:
            return (whole, self.size), *([(1, rest)] if last else [])
        order = arranged(np.arange(whole + last), self.batches, np.tile)
        sizes = np.where(order == whole, rest, self.size)
        starts = np.flatnonzero(np.diff(sizes, prepend=-1))
        if len(starts) > MOST_RUNS:
            return None
        counts = np.diff(starts, append=len(sizes))
        return tuple(zip(counts.tolist(), sizes[starts].tolist(), strict=True))

    def counts(self, length: int) -> list[int]:
        """Return the number of elements in each run; empty if there are too many runs."""
        return [count for count, _ in self.runs(length) or ()]

    def rests(self, most: int) -> tuple[int, ...]:
        """Return the sizes that the last, smaller batch may have for up to `most` rows, ascending;
        none if there is no such batch, or batches are rearranged."""
        return tuple(sorted({self.rest(length) for length in range(most + 1)} - {0}))

    def rest(self, length: int) -> int:
        """Return the size of the last, smaller batch of so many rows; 0 if there is none, or
        batches are rearranged."""
        if not self.size or self.whole or self.batches:
            return 0
        return lengths(length, self.rows)[-1] % self.size

    def begin(self, tracer: Tracer, index: Tensor, length: Tensor) -> Tensor:
        """Return where the element at an index begins among the arranged rows."""
        if not self.size:
            return index
        total = lengths(length, self.rows, tracer)[-1]
        whole = total // self.size
        count = whole if self.whole else whole + _least(total - whole * self.size, 1, tracer)
        return places(index, self.batches, count, tracer) * self.size

    @property
    def is_cyclic(self) -> bool:
        """Whether neighbouring arranged rows are neighbouring rows, if the first row is taken to
        follow the last."""
        operations = [operation for operation, _ in self.rows]
        return "RepeatDataset" not in operations[1:]


def lengths(
    length: Tensor, arrangements: Sequence[Arrangement], tracer: Tracer | None = None
) -> list[Tensor]:
    """Return the number of items before the first arrangement and after each; a tracer is needed
    for a length that is not known."""
    counts = [length]
    for operation, number in arrangements:
        if operation == "RepeatDataset":
            length = length * number
        else:
            taken = _least(length, number, tracer)
            length = length - taken if operation == "SkipDataset" else taken
        counts.append(length)
    return counts


def places(
    place: Tensor, arrangements: Sequence[Arrangement], length: Tensor, tracer: Tracer
) -> Tensor:
    """Return the index, among `length` items, of the one at `place` after the arrangements."""
    before = lengths(length, arrangements, tracer)
    for (operation, number), count in reversed(list(zip(arrangements, before, strict=False))):
        if operation == "RepeatDataset":
            # Without items there is no valid place; only a division by zero has to be avoided.
            place = place % (_least(count, 1, tracer) * (count - 1) + 1)
        elif operation == "SkipDataset":
            place = place + number
    return place


def _least(first: Tensor, second: int, tracer: Tracer | None) -> Tensor:
    if isinstance(first, int):
        return min(first, second)
    assert tracer is not None
    return tracer.least(first, second)


class Rests(NamedTuple):
    """The last, smaller batch of a sequence: its size, and the sizes that clients have, ascending
    and from 1 on.  Size 0 is no such batch."""

    size: Tensor
    sizes: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    """A client's sequence: its arrays, in the order of a dataset's components.

    The arrays have `most` rows, of which the first `length` are the sequence.  `counts` returns the
    number of elements in each run of an order.  `length` and the counts may be tensors.  `like` is
    the length of a sequence with the same sizes of runs.  If clients differ in the size of the
    last batch of an order, `rests` returns what is known of it, and the only run is that of the
    whole batches.
    """

    number: int
    columns: tuple[Tensor, ...]
    length: Tensor
    most: int
    like: int
    counts: Callable[[Order], Sequence[Tensor]]
    rests: Callable[[Order], Rests | None] = lambda order: None


class RowElements:
    """The elements of a dataset, by index; each has at most `most` rows.

    With `filled`, more rows may be taken than an element has: others of the sequence follow.
    """

    def __init__(
        self, tracer: Tracer, rows: Rows, order: Order, most: int, *, filled: bool = False
    ) -> None:
        self._tracer = tracer
        self._rows = rows
        self._order = order
        self._is_fixed = isinstance(rows.length, int)
        self._columns = rows.columns
        # Also if the arrays are shorter than a batch, so that a batch can be sliced out of them.
        if most and order.is_cyclic and (filled or order.rows or most > rows.most):
            self._columns = self._cycle(most)

    def _cycle(self, most: int) -> tuple[Tensor, ...]:
        """Return the columns with the sequence's first rows repeated after its last, so that
        consecutive rows can be sliced out."""
        tracer, rows = self._tracer, self._rows
        length = tracer.most(tracer.long(rows.length), 1)
        at = tracer.numbers(rows.most + most - 1) % length
        return tuple(tracer.rows(column, at) for column in rows.columns)

    def take(self, index: Tensor, size: int) -> tuple[Tensor, ...]:
        """Return the components of an element of `size` rows; with 0, of a row without a batch
        axis."""
        tracer, order, length = self._tracer, self._order, self._rows.length
        begin = order.begin(tracer, index, length)
        if isinstance(begin, int) and self._is_fixed:
            at = [places(begin + i, order.rows, length, tracer) for i in range(size)]
            return self._take_fixed(at)
        if size and order.is_cyclic:
            at = places(begin, order.rows, length, tracer)
            return tuple(
                tracer.slice(column, at, size, in_step=self._is_fixed) for column in self._columns
            )
        at = tracer.long(begin)
        at = at + tracer.numbers(size) if size else at
        at = places(at, order.rows, tracer.long(length), tracer)
        return tuple(tracer.rows(column, at) for column in self._rows.columns)

    def _take_fixed(self, place: list[int]) -> tuple[Tensor, ...]:
        columns, first = self._rows.columns, place[0]
        if place == list(range(first, first + len(place))):
            whole = len(place) == self._rows.most
            return columns if whole else tuple(c[first : first + len(place)] for c in columns)
        return tuple(self._tracer.rows(column, place) for column in columns)
