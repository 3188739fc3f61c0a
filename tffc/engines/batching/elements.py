"""The elements of a client's sequence, taken from its arrays inside a graph."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from tffc.engines.batching.sequences import Order, places
from tffc.frameworks.tensorflow.load import load_tensorflow


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    """A sequence of a client as it is given: its arrays, in the order of a dataset's components.

    `length` is how many rows count, and `most` how many the arrays have.  `counts` has, for an
    order of the rows, how many elements are in each of its runs.  Each of them may be a tensor.
    """

    number: int
    columns: tuple[Any, ...]
    length: Any
    most: int
    like: int
    counts: Callable[[Order], Sequence[Any]]


class RowElements:
    """The elements of a dataset, by their index; they are of at most so many rows."""

    def __init__(self, rows: Rows, order: Order, most: int) -> None:
        self._tf = load_tensorflow()
        self._rows = rows
        self._order = order
        self._is_fixed = isinstance(rows.length, int)
        self._columns = rows.columns
        # Also where all sequences are shorter than a batch, so that one can be cut out of them.
        if most and order.is_cyclic and (order.rows or most > rows.most):
            self._columns = self._cycle(most)

    def _cycle(self, most: int) -> tuple[Any, ...]:
        """Return the columns with the first rows again behind the last that counts, so that rows
        which follow one another can be cut out."""
        tf, rows = self._tf, self._rows
        length = tf.maximum(tf.cast(rows.length, tf.int64), 1)
        at = tf.range(rows.most + most - 1, dtype=tf.int64) % length
        return tuple(tf.gather(column, at) for column in rows.columns)

    def take(self, index: Any, size: int) -> tuple[Any, ...]:
        """Return the components of an element of so many rows; of one row by itself if it is 0."""
        tf, order, length = self._tf, self._order, self._rows.length
        begin = order.begin(index, length)
        if isinstance(begin, int) and self._is_fixed:
            return self._take_fixed([places(begin + i, order.rows, length) for i in range(size)])
        if size and order.is_cyclic:
            at = tf.cast(places(begin, order.rows, length), tf.int32)
            return tuple(self._slice(column, at, size) for column in self._columns)
        at = tf.cast(begin, tf.int64)
        at = at + tf.range(size, dtype=tf.int64) if size else at
        at = places(at, order.rows, tf.cast(length, tf.int64))
        return tuple(tf.gather(column, at) for column in self._rows.columns)

    def _take_fixed(self, place: list[int]) -> tuple[Any, ...]:
        columns, first = self._rows.columns, place[0]
        if place == list(range(first, first + len(place))):
            whole = len(place) == self._rows.most
            return columns if whole else tuple(c[first : first + len(place)] for c in columns)
        return tuple(self._tf.gather(column, place) for column in columns)

    def _slice(self, column: Any, at: Any, size: int) -> Any:
        begin = self._tf.stack([at, *[0] * (column.shape.rank - 1)])
        shape = [size, *column.shape[1:]]
        if self._is_fixed:
            return self._tf.slice(column, begin, shape)
        # XLA compiles a Slice anew for each place that an argument tells.
        operations = importlib.import_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops")
        return operations.xla_dynamic_slice(column, begin, self._tf.constant(shape))
