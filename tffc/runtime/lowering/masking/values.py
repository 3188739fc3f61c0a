"""The values of a batch of which only the first rows count."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.operations.definition import Array, is_known, jnp, lax, scalar
from tffc.runtime.lowering.tracer import Tensor, Tracer


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """A tensor of which only the first entries along one axis are real.

    In a batch of `size` rows of which `count` are real, the axis has `unit * size` entries, the
    first `unit * count` of them real.  The others are arbitrary, even NaN.
    """

    array: Array
    axis: int
    unit: int = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A tensor that the number of real rows decides: the first axis of `table` is that number, from
    1 on."""

    table: np.ndarray


class Layout(NamedTuple):
    """The shape of a tensor: its sizes where all rows are real, the axis whose real size depends on
    the number of rows, and the factor of that number.  An axis below 0 is none."""

    sizes: tuple[int, ...]
    axis: int
    unit: int


Outcome: TypeAlias = tuple[Sequence[Any], Tensor]
"""The outputs of an operation, and its check as `Tracer.apply` returns it."""


def refused(node: NodeView, reason: str) -> NotLoweredError:
    """Return the refusal of an operation on a padded batch."""
    return NotLoweredError(f"{node.op} of a padded batch {reason}")


def known_numbers(node: NodeView, value: Any) -> tuple[int, ...]:
    """Return integers that do not depend on the number of rows."""
    if isinstance(value, (Padded, Sizes)) or not is_known(value):
        raise refused(node, "with numbers that are not known")
    return tuple(int(item) for item in np.asarray(value).reshape(-1))


class Masks:
    """The masks of a batch of `size` rows of which the first `count` are real, at least one.

    `tracer` computes with arrays.
    """

    def __init__(self, tracer: Tracer, size: int, count: Tensor) -> None:
        self.tracer = tracer
        self.size = size
        self._count = jnp.asarray(count).astype(np.int32)

    def compute(self, node: NodeView, inputs: Sequence[Tensor]) -> Outcome:
        """Return what an operation makes of arrays."""
        return self.tracer.apply(node, inputs)

    def amount(self, unit: int, dtype: Any) -> Array:
        """Return `unit` times the number of real rows."""
        # The product is a whole number of the wide type, also where the narrow one would round.
        return (self._count.astype(np.int64) * np.int64(unit)).astype(dtype)

    def real(self, value: Padded) -> Array:
        """Return which entries are real, in a shape that fits those of a padded tensor."""
        shape = [1] * value.array.ndim
        shape[value.axis] = -1
        places = np.arange(value.unit * self.size, dtype=np.int32)
        return (jnp.asarray(places) < self.amount(value.unit, np.int32)).reshape(shape)

    def filled(self, value: Padded, neutral: Any) -> Array:
        """Return a padded tensor with a number in place of all that is not real."""
        return jnp.where(self.real(value), value.array, scalar(neutral, value.array))

    def number(self, value: Any) -> Any:
        """Return sizes as a tensor that is known when the program runs; anything else as it is."""
        if not isinstance(value, Sizes):
            return value
        table = value.table
        counts = np.arange(1, self.size + 1)
        if table.ndim == 1 and table.dtype.kind in "iu" and np.all(table == table[0] * counts):
            return self.amount(int(table[0]), table.dtype)
        place = self._count - np.int32(1)
        return lax.dynamic_index_in_dim(jnp.asarray(table), place, keepdims=False)

    def sizes_of(self, value: Any, dtype: Any) -> Any:
        """Return the shape of a tensor, as sizes if it is padded."""
        shape = np.shape(value.array if isinstance(value, Padded) else value)
        if not isinstance(value, Padded):
            return np.array(shape, dtype)
        table = np.tile(np.array(shape, dtype), (self.size, 1))
        table[:, value.axis] = value.unit * np.arange(1, self.size + 1)
        return Sizes(table)

    def layout(self, node: NodeView, shape: Any) -> Layout:
        """Return the layout that the value of a shape, a vector, describes.

        Raises:
          NotLoweredError: it is not known, or not of one axis that grows with the number of rows.
        """
        if not isinstance(shape, Sizes):
            return Layout(known_numbers(node, shape), -1, 0)
        table = shape.table.reshape(self.size, -1).astype(np.int64)
        growing = [axis for axis in range(table.shape[1]) if np.ptp(table[:, axis])]
        if len(growing) != 1:
            raise refused(node, "with a shape of more than one size that is not known")
        (axis,) = growing
        unit = int(table[0, axis])
        if unit < 1 or np.any(table[:, axis] != unit * np.arange(1, self.size + 1)):
            raise refused(node, "with a size that is no multiple of the number of rows")
        return Layout(tuple(map(int, table[-1])), axis, unit)

    def full(self, value: Any) -> Any:
        """Return sizes as they are where all rows are real; anything else as it is."""
        return value.table[-1] if isinstance(value, Sizes) else value


def one_axis(node: NodeView, inputs: Sequence[Any]) -> tuple[int, int]:
    """Return the axis and the unit of padded operands that are broadcast against each other and
    against plain ones; the axis is counted from the end, below 0.

    Raises:
      NotLoweredError: operands are padded in different ways, or a plain one has many entries there.
    """
    padded = [value for value in inputs if isinstance(value, Padded)]
    ways = {(value.axis - value.array.ndim, value.unit) for value in padded}
    if len(ways) != 1:
        raise refused(node, "with operands that are padded in different ways")
    ((axis, unit),) = ways
    for value in inputs:
        if isinstance(value, Padded):
            continue
        shape = np.shape(value)
        if len(shape) >= -axis and shape[axis] != 1:
            raise refused(node, "with an operand that has a fixed number of rows")
    return axis, unit


def same_way(node: NodeView, *values: Any) -> tuple[int, int]:
    """Return the axis, from the start, and the unit in which all values are padded.

    Raises:
      NotLoweredError: they are not padded, or in different ways.
    """
    ways = {(value.axis, value.unit) for value in values if isinstance(value, Padded)}
    if len(ways) != 1 or not all(isinstance(value, Padded) for value in values):
        raise refused(node, "with operands that are padded in different ways")
    return ways.pop()


def arrays(values: Sequence[Any]) -> list[Any]:
    """Return the arrays of padded values, and all others as they are."""
    return [value.array if isinstance(value, Padded) else value for value in values]
