"""Tracing with JAX, inside of a function that JAX traces.

Numbers stay 64 bits wide: whoever calls such a function does so under `jax.enable_x64`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.tracer import Tensor, Tracer
from tffc.support.guards import Array

MOST_ELEMENTS = 1 << 40
"""The most elements of a tensor.  XLA ends the process where it cannot count bytes in 64 bits."""


class JaxTracer:
    """See `Tracer`.

    With `is_portable`, what it traces is compiled for several platforms.
    """

    draws = True

    def __init__(self, *, selects: bool = False, is_portable: bool = True) -> None:
        self.selects = selects
        self._is_portable = is_portable
        self._jax = load_jax()
        # They import JAX.
        from tffc.runtime.lowering.jax_checks import CHECKS
        from tffc.runtime.lowering.jax_modules import call_module
        from tffc.runtime.lowering.operations import draws
        from tffc.runtime.lowering.operations.table import OPERATIONS

        self._operations, self._call = OPERATIONS, call_module
        self._checks, self._draw = CHECKS, draws.draw

    def known(self, tensor: Tensor) -> Array | None:
        """See `Tracer`."""
        return None if isinstance(tensor, self._jax.Array) else np.asarray(tensor)

    def masked(self, count: Tensor, columns: Sequence[Tensor]) -> tuple[Tracer, tuple[Tensor, ...]]:
        """See `Tracer`."""
        # It imports JAX.
        from tffc.runtime.lowering.masking.tracer import MaskedTracer
        from tffc.runtime.lowering.masking.values import Padded

        tracer = MaskedTracer(self, int(columns[0].shape[0]), count)
        return tracer, tuple(Padded(column, 0) for column in columns)

    def plain(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        return tensor

    def apply(self, node: NodeView, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
        """See `Tracer`."""
        if node.op not in self._operations:
            raise NotLoweredError(f"it has the operation {node.op}")
        inputs = [self._array(tensor) for tensor in inputs]
        if any(tensor.dtype == object for tensor in inputs):
            raise NotLoweredError(f"it has the operation {node.op} of strings")
        try:
            outputs = self._operations[node.op](node, inputs)
            check = self._checks[node.op](node, inputs) if node.op in self._checks else None
        except (ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as error:
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"{node.op} cannot be made: {text}") from None
        if any(math.prod(np.shape(output)) > MOST_ELEMENTS for output in outputs):
            raise NotLoweredError(f"{node.op} gives more numbers than any memory holds")
        return outputs, check

    def _array(self, tensor: Tensor) -> Any:
        return tensor if isinstance(tensor, self._jax.Array) else np.asarray(tensor)

    def call(
        self, node: NodeView, inputs: Sequence[Tensor], *, is_shared: bool
    ) -> Sequence[Tensor]:
        """See `Tracer`."""
        arrays = [self._array(tensor) for tensor in inputs]
        return self._call(
            node,
            arrays,
            selects=self.selects,
            is_shared=is_shared,
            is_portable=self._is_portable,
        )

    def draw(self, node: NodeView, inputs: Sequence[Tensor], key: Tensor, count: Tensor) -> Tensor:
        """See `Tracer`."""
        # A generator counts in the first of two numbers: each draw has all of it for itself.
        counter = self._jax.numpy.stack([np.uint64(0), key[1] + count.astype(np.uint64)])
        return self._draw(node, [self._array(each) for each in inputs], key[:1], counter)

    def is_truth(self, tensor: Tensor) -> bool:
        """See `Tracer`."""
        return np.ndim(tensor) == 0 and tensor.dtype == np.bool_

    def both(self, truths: Sequence[Tensor]) -> Tensor:
        """See `Tracer`."""
        holds: Any = np.True_
        for truth in truths:
            if not isinstance(truth, self._jax.Array):
                holds = holds if np.all(truth) else np.False_
            elif holds is np.False_:
                break
            else:
                holds = truth if holds is np.True_ else self._jax.numpy.logical_and(holds, truth)
        return holds

    def is_finite(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._jax.numpy.isfinite(tensor).all()

    def branch(
        self,
        condition: Tensor,
        one: Callable[[], Sequence[Tensor]],
        other: Callable[[], Sequence[Tensor]],
    ) -> list[Tensor]:
        """See `Tracer`."""
        return self.switch(self._jax.numpy.asarray(condition).astype(np.int32), [other, one])

    def switch(
        self, index: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]]
    ) -> list[Tensor]:
        """See `Tracer`."""

        def staged(branch: Callable[[], Sequence[Tensor]]) -> Callable[[], tuple[Any, ...]]:
            return lambda: tuple(map(self._jax.numpy.asarray, branch()))

        known = self.known(index)
        if known is not None:
            return list(branches[int(known)]())
        try:
            return list(self._jax.lax.switch(index, [staged(branch) for branch in branches]))
        except TypeError as error:
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"branches give tensors of different shapes: {text}") from None

    def loop(
        self,
        again: Callable[..., Tensor],
        step: Callable[..., Sequence[Tensor]],
        start: Sequence[Tensor],
    ) -> list[Tensor]:
        """See `Tracer`."""
        array = self._jax.numpy.asarray

        def more(values: Sequence[Tensor]) -> Tensor:
            return array(again(*values))

        def body(values: Sequence[Tensor]) -> tuple[Tensor, ...]:
            return tuple(map(array, step(*values)))

        try:
            return list(self._jax.lax.while_loop(more, body, tuple(map(array, start))))
        except TypeError as error:
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"a loop changes a shape: {text}") from None

    def holds_lists(self, tensors: Sequence[Tensor]) -> bool:
        """See `Tracer`."""
        return False

    def shape(self, tensor: Tensor) -> Sequence[int | None]:
        """See `Tracer`."""
        return np.shape(tensor)

    def long(self, number: Tensor) -> Tensor:
        """See `Tracer`."""
        known = self.known(number)
        return number.astype(np.int64) if known is None else known.astype(np.int64)

    def least(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._jax.numpy.minimum(one, other)

    def most(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._jax.numpy.maximum(one, other)

    def numbers(self, count: int) -> Tensor:
        """See `Tracer`."""
        return np.arange(count)

    def rows(self, column: Tensor, at: Tensor) -> Tensor:
        """See `Tracer`."""
        if not column.shape[0]:
            # JAX gathers nothing of no rows: these are never read.
            shape = (*np.shape(at), *column.shape[1:])
            return self._jax.numpy.zeros(shape, column.dtype)
        return self._jax.numpy.take(column, self._array(at), axis=0, mode="clip")

    def slice(self, column: Tensor, begin: Tensor, size: int, *, in_step: bool) -> Tensor:
        """See `Tracer`."""
        return self._jax.lax.dynamic_slice_in_dim(column, begin, size)
