"""Tracing into TensorFlow's current graph."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from tffc.graphs.node import NodeView
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.tensorflow_operations import ALL_FIXED, CHECKS, DRAWN, PLAIN
from tffc.runtime.lowering.tracer import Tensor, Tracer
from tffc.support.guards import Array


class TensorFlowTracer:
    """See `Tracer`."""

    draws = False

    def __init__(self, *, selects: bool = False) -> None:
        self.selects = selects
        self._tf = load_tensorflow()

    def known(self, tensor: Tensor) -> Array | None:
        """See `Tracer`."""
        return self._tf.get_static_value(tensor)

    def masked(self, count: Tensor, columns: Sequence[Tensor]) -> tuple[Tracer, tuple[Tensor, ...]]:
        """See `Tracer`."""
        raise NotLoweredError("batches are not masked")

    def plain(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        return tensor

    def apply(self, node: NodeView, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
        """See `Tracer`."""
        if node.op in DRAWN:
            return self._drawn(node, inputs), None
        if node.op not in PLAIN:
            raise NotLoweredError(f"it has the operation {node.op}")
        inputs = [self._tf.convert_to_tensor(tensor) for tensor in inputs]
        if node.op in ALL_FIXED:
            for tensor in inputs[1 if "Slice" in node.op else 0 :]:
                if tensor.shape.rank == 0 or tensor.dtype.is_integer:
                    self._check_fixed(node, tensor)
        check = CHECKS[node.op](self._tf, node, inputs) if node.op in CHECKS else None
        return self._add(node, inputs), check

    def _drawn(self, node: NodeView, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the outputs of a node as constants, which TensorFlow computes now."""
        tf = self._tf
        values = [tf.get_static_value(tensor) for tensor in tensors]
        if any(value is None for value in values):
            raise NotLoweredError(f"it has the operation {node.op}, of a seed that is not known")
        with tf.Graph().as_default():
            outputs = self._add(node, [tf.constant(value) for value in values])
            with tf.compat.v1.Session() as session:
                results = session.run(list(outputs))
        return [tf.constant(value) for value in results]

    def _check_fixed(self, node: NodeView, tensor: Tensor) -> None:
        if node.op != "Fill" and self._tf.get_static_value(tensor) is None:
            raise NotLoweredError(
                f"it has the operation {node.op} of what is known only when it runs"
            )

    def _add(self, node: NodeView, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Add a copy of a node to the current graph, and return its outputs."""
        tf = self._tf
        graph = tf.compat.v1.get_default_graph()
        attribute = tf.compat.v1.AttrValue.FromString
        attributes = {
            name: attribute(value.SerializeToString())
            for name, value in node.attr.items()
            if name[0] != "_"
        }
        try:
            operation = graph._create_op_internal(node.op, list(tensors), attrs=attributes)
        except (ValueError, TypeError) as error:
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"{node.op} cannot be made: {text}") from None
        return operation.outputs

    def call(
        self, node: NodeView, inputs: Sequence[Tensor], *, is_shared: bool
    ) -> Sequence[Tensor]:
        """See `Tracer`."""
        if is_shared:
            raise NotLoweredError("a module, which may have loops, in a branch or a loop")
        outputs, _ = self.apply(node, inputs)
        return outputs

    def draw(self, node: NodeView, inputs: Sequence[Tensor], key: Tensor, count: Tensor) -> Tensor:
        """See `Tracer`."""
        raise NotLoweredError(f"it has the operation {node.op}")

    def is_truth(self, tensor: Tensor) -> bool:
        """See `Tracer`."""
        tensor = self._tf.convert_to_tensor(tensor)
        return tensor.dtype == self._tf.bool and tensor.shape.rank == 0

    def both(self, truths: Sequence[Tensor]) -> Tensor:
        """See `Tracer`."""
        tf = self._tf
        return tf.reduce_all(tf.stack([tf.constant(True), *truths]))

    def is_finite(self, tensor: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._tf.reduce_all(self._tf.math.is_finite(tensor))

    def branch(
        self,
        condition: Tensor,
        one: Callable[[], Sequence[Tensor]],
        other: Callable[[], Sequence[Tensor]],
    ) -> list[Tensor]:
        """See `Tracer`."""
        if not self.selects:
            return list(self._tf.cond(condition, lambda: tuple(one()), lambda: tuple(other())))
        pairs = list(zip(one(), other(), strict=True))
        if any(first.shape != second.shape for first, second in pairs):
            raise NotLoweredError("branches give tensors of different shapes")
        return [self._tf.where(condition, first, second) for first, second in pairs]

    def switch(
        self, index: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]]
    ) -> list[Tensor]:
        """See `Tracer`."""
        raise NotLoweredError("TensorFlow's XLA compiles all branches of a switch for each call")

    def loop(
        self,
        again: Callable[..., Tensor],
        step: Callable[..., Sequence[Tensor]],
        start: Sequence[Tensor],
    ) -> list[Tensor]:
        """See `Tracer`."""
        body: Any = lambda *values: tuple(step(*values))  # noqa: E731
        try:
            return list(self._tf.while_loop(again, body, tuple(start), parallel_iterations=1))
        except ValueError as error:
            if isinstance(error.__cause__, NotLoweredError):
                raise error.__cause__ from None
            text = str(error).partition("\n")[0]
            raise NotLoweredError(f"a loop changes a shape: {text}") from None

    def holds_lists(self, tensors: Sequence[Tensor]) -> bool:
        """See `Tracer`."""
        return any(tensor.dtype == self._tf.variant for tensor in tensors)

    def shape(self, tensor: Tensor) -> Sequence[int | None]:
        """See `Tracer`."""
        return tensor.shape

    def long(self, number: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._tf.cast(number, self._tf.int64)

    def least(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._tf.minimum(one, other)

    def most(self, one: Tensor, other: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._tf.maximum(one, other)

    def numbers(self, count: int) -> Tensor:
        """See `Tracer`."""
        return self._tf.range(count, dtype=self._tf.int64)

    def rows(self, column: Tensor, at: Tensor) -> Tensor:
        """See `Tracer`."""
        return self._tf.gather(column, at)

    def slice(self, column: Tensor, begin: Tensor, size: int, *, in_step: bool) -> Tensor:
        """See `Tracer`."""
        tf = self._tf
        start = tf.stack([tf.cast(begin, tf.int32), *[0] * (column.shape.rank - 1)])
        shape = [size, *column.shape[1:]]
        if in_step:
            return tf.slice(column, start, shape)
        # XLA compiles a Slice again for each start that depends on an argument.
        operations = importlib.import_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops")
        return operations.xla_dynamic_slice(column, start, tf.constant(shape))
