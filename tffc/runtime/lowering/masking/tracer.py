"""Tracing a step of a batch of which only the first rows count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.masking import indices, networks, shapes, sums
from tffc.runtime.lowering.masking.rules import Rule
from tffc.runtime.lowering.masking.values import Masks, Outcome, Padded, Sizes
from tffc.runtime.lowering.tracer import Tensor, Tracer
from tffc.support.guards import Array

RULES: dict[str, Rule] = {**sums.RULES, **networks.RULES, **shapes.RULES, **indices.RULES}
"""The rules of all operations that are computed on padded batches."""

SHAPED = shapes.SHAPED | indices.SHAPED | {name for name in networks.RULES if "Stateless" in name}
SHAPED |= {"Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "AvgPoolGrad"}
"""Operations whose rules take sizes as they are; others take numbers instead."""

MOST_ROWS = 1024
"""The most rows of a batch that is masked: what their number decides is computed for each."""

MOST_IN_TABLE = 1 << 16
"""The most numbers of a value that is computed for each number of rows before anything runs."""


class MaskedTracer:
    """See `Tracer`: its tensors are also padded ones and sizes.

    It computes with another tracer.  `count` is the number of real rows, from 1 to `size`.

    Raises:
      NotLoweredError: there are more than `MOST_ROWS`, or only one.
    """

    def __init__(self, tracer: Tracer, size: int, count: Tensor) -> None:
        if not 1 < size <= MOST_ROWS:
            raise NotLoweredError(f"batches of {size} rows are not masked")
        self._inner = tracer
        self._masks = Masks(tracer, size, count)
        self.draws, self.selects = tracer.draws, tracer.selects

    def known(self, tensor: Tensor) -> Array | None:
        """See `Tracer`."""
        return None if isinstance(tensor, (Padded, Sizes)) else self._inner.known(tensor)

    def plain(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        if isinstance(tensor, Padded):
            raise NotLoweredError("rows of a batch are passed on to the next")
        return self._masks.number(tensor)

    def _plain(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [self.plain(tensor) for tensor in tensors]

    def masked(self, count: Tensor, columns: Sequence[Tensor]) -> tuple[Tracer, tuple[Tensor, ...]]:
        """See `Tracer`."""
        raise NotLoweredError("batches are read in the step of a batch")

    def apply(self, node: NodeView, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
        """See `Tracer`."""
        if not any(isinstance(value, (Padded, Sizes)) for value in inputs):
            return self._inner.apply(node, inputs)
        try:
            return self._applied(node, inputs)
        # An operand that a rule takes to be padded, but is not, has no axis.
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"{node.op} of a padded batch cannot be made: {text}") from None

    def _applied(self, node: NodeView, inputs: Sequence[Tensor]) -> Outcome:
        if node.op != "BroadcastGradientArgs":
            outcome = self._tabulated(node, inputs)
            if outcome is not None:
                return outcome
        if node.op not in SHAPED:
            inputs = [self._masks.number(value) for value in inputs]
            if not any(isinstance(value, Padded) for value in inputs):
                return self._inner.apply(node, inputs)
        if node.op not in RULES:
            raise NotLoweredError(f"it has the operation {node.op} of a padded batch")
        return RULES[node.op](self._masks, node, inputs)

    def _tabulated(self, node: NodeView, inputs: Sequence[Tensor]) -> Outcome | None:
        """Return the outputs for each number of rows as sizes, or None if they are not known, or
        not of one shape."""
        size = self._masks.size
        if any(isinstance(v, Padded) for v in inputs):
            return None
        if any(not isinstance(v, Sizes) and self._inner.known(v) is None for v in inputs):
            return None
        if (
            sum(v.table.size if isinstance(v, Sizes) else np.size(v) for v in inputs)
            > MOST_IN_TABLE
        ):
            return None
        outcomes: list[Sequence[np.ndarray]] = []
        for place in range(size):
            values = [v.table[place] if isinstance(v, Sizes) else v for v in inputs]
            try:
                outputs, check = self._inner.apply(node, values)
            except NotLoweredError:
                return None
            known = [self._inner.known(output) for output in outputs]
            arrays = [array for array in known if array is not None]
            if len(arrays) < len(known) or not (check is None or self._holds(check)):
                return None
            first = outcomes[0] if outcomes else arrays
            kinds = [[(each.shape, each.dtype) for each in side] for side in (first, arrays)]
            if kinds[0] != kinds[1] or sum(each.size for each in arrays) * size > MOST_IN_TABLE:
                return None
            outcomes.append(arrays)
        return [_sizes(np.stack(tables)) for tables in zip(*outcomes, strict=True)], None

    def _holds(self, check: Tensor) -> bool:
        known = self._inner.known(check)
        return known is not None and bool(known)

    def call(
        self, node: NodeView, inputs: Sequence[Tensor], *, is_shared: bool
    ) -> Sequence[Tensor]:
        """See `Tracer`."""
        if any(isinstance(value, Padded) for value in inputs):
            raise NotLoweredError(f"it has the operation {node.op} of a padded batch")
        return self._inner.call(node, self._plain(inputs), is_shared=is_shared)

    def draw(self, node: NodeView, inputs: Sequence[Tensor], key: Tensor, count: Tensor) -> Tensor:
        """See `Tracer`."""
        shape, *bounds = inputs
        array = self._inner.draw(node, [self._masks.full(shape), *self._plain(bounds)], key, count)
        if not isinstance(shape, Sizes):
            return array
        return networks.drawn(self._masks, node, shape, array)

    def is_truth(self, tensor: Tensor) -> bool:
        """See `Tracer`."""
        return not isinstance(tensor, Padded) and self._inner.is_truth(self.plain(tensor))

    def both(self, truths: Sequence[Tensor]) -> Tensor:
        """See `Tracer`."""
        return self._inner.both(self._plain(truths))

    def is_finite(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        if isinstance(tensor, Padded):
            tensor = self._masks.filled(tensor, 0)
        return self._inner.is_finite(self.plain(tensor))

    def branch(
        self,
        condition: Tensor,
        one: Callable[[], Sequence[Tensor]],
        other: Callable[[], Sequence[Tensor]],
    ) -> list[Tensor]:
        """See `Tracer`."""
        return self._inner.branch(
            self.plain(condition), lambda: self._plain(one()), lambda: self._plain(other())
        )

    def switch(
        self, index: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]]
    ) -> list[Tensor]:
        """See `Tracer`."""

        def staged(branch: Callable[[], Sequence[Tensor]]) -> Callable[[], Sequence[Tensor]]:
            return lambda: self._plain(branch())

        return self._inner.switch(self.plain(index), [staged(branch) for branch in branches])

    def loop(
        self,
        again: Callable[..., Tensor],
        step: Callable[..., Sequence[Tensor]],
        start: Sequence[Tensor],
    ) -> list[Tensor]:
        """See `Tracer`."""
        return self._inner.loop(
            lambda *values: self.plain(again(*values)),
            lambda *values: self._plain(step(*values)),
            self._plain(start),
        )

    def holds_lists(self, tensors: Sequence[Tensor]) -> bool:
        """See `Tracer`."""
        return self._inner.holds_lists(tensors)

    def shape(self, tensor: Tensor) -> Sequence[int | None]:
        """See `Tracer`."""
        return self._inner.shape(self.plain(tensor))

    def long(self, number: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._inner.long(self.plain(number))

    def least(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._inner.least(one, other)

    def most(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._inner.most(one, other)

    def numbers(self, count: int) -> Tensor:
        """See `Tracer`."""
        return self._inner.numbers(count)

    def rows(self, column: Tensor, at: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._inner.rows(column, at)

    def slice(self, column: Tensor, begin: Tensor, size: int, *, in_step: bool) -> Tensor:
        """See `Tracer`."""
        return self._inner.slice(column, begin, size, in_step=in_step)


def _sizes(table: np.ndarray) -> Any:
    """Return a value for each number of rows as sizes, or as one array if all are the same."""
    same = all(np.array_equal(row, table[0]) for row in table)
    return table[0] if same else Sizes(table)
