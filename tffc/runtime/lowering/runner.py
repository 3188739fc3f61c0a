"""Running single TensorFlow sections by PJRT, where TensorFlow is not installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, SequenceType, TensorType
from tffc.language.values.concrete import layout
from tffc.language.values.resources import array_of
from tffc.language.wire.resources import resources_of
from tffc.linking.operand import in_component_order
from tffc.linking.section import read_section
from tffc.runtime.data.arrays import ArrayLayout, stackable_layout
from tffc.runtime.frameworks.jax.devices import devices_of, fetch, send
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.frameworks.tensorflow.datasets import components
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.jax_tracer import JaxTracer
from tffc.runtime.lowering.retrace import Dataset, Retrace, Value, draws
from tffc.runtime.lowering.sequences import Order, Rows
from tffc.runtime.lowering.tracer import Tensor
from tffc.support.errors import DataError, ExecutionError


class LoweredRunner:
    """A section that is traced and compiled anew for arguments of other shapes.

    It runs on the processor.
    """

    def __init__(self, section: Compiled) -> None:
        assert isinstance(section.type, FunctionType)
        self._jax = load_jax()
        self._type = section.type
        self._parameter = None if self._type.parameter is None else layout(self._type.parameter)
        self._leaves = [] if self._type.parameter is None else leaves(self._type.parameter)
        self._layouts = [_columns_of(leaf) for leaf in self._leaves]
        self._content = read_section(section)
        self._resources = resources_of([section])
        self._draws = draws(self._content)
        self._device = devices_of("CPU:0")[0]
        self._compute = self._jax.jit(self._traced)
        for leaf in (*self._leaves, *leaves(self._type.result)):
            parts = components(leaf) if isinstance(leaf, SequenceType) else [leaf]
            for part in parts:
                if isinstance(part, TensorType) and part.element_type is DType.STRING:
                    raise _needs_tensorflow("it takes or gives strings")
        if any(isinstance(leaf, SequenceType) for leaf in leaves(self._type.result)):
            raise _needs_tensorflow("it gives a sequence")

    def __call__(self, argument: Any) -> Any:
        values = [] if self._parameter is None else self._parameter.flatten(argument)
        try:
            arrays = [
                [np.asarray(value)] if columns is None else columns.columns(value, "")
                for columns, value in zip(self._layouts, values, strict=True)
            ]
        except DataError as error:
            # It names no file that holds the value.
            raise _needs_tensorflow(error.message.removeprefix(": ")) from None
        keys = [np.frombuffer(os.urandom(16), np.uint64)] if self._draws else []
        resources = [array_of(resource) for resource in self._resources]
        try:
            with self._jax.enable_x64(True), self._jax.default_device(self._device):
                sent = [send(parts, self._device) for parts in arrays]
                *results, holds = fetch(self._compute(sent, keys, resources))
        except NotLoweredError as error:
            raise _needs_tensorflow(str(error)) from None
        except self._jax.errors.JaxRuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise ExecutionError(
                "E722",
                f"XLA could not carry out a computation: {reason}",
                help="run it where TensorFlow is installed, or on a machine with more memory",
            ) from None
        if not holds:
            raise ExecutionError(
                "E722",
                "a check does not hold in a computation: an index or label is out of range, a "
                "number is none, or an assertion of the program fails",
                help="run it where TensorFlow is installed, which tells which check that is",
            )
        return layout(self._type.result).unflatten(value[()] for value in results)

    def _traced(
        self, arrays: Sequence[Sequence[Tensor]], keys: list[Tensor], resources: list[Tensor]
    ) -> list[Tensor]:
        jax = self._jax
        by_node = dict(zip(self._resources, resources, strict=True))
        retrace = Retrace(JaxTracer(is_portable=False), by_node, key=keys[0] if keys else None)
        arguments: list[Value] = []
        for number, (leaf, columns) in enumerate(zip(self._leaves, arrays, strict=True)):
            if not isinstance(leaf, SequenceType):
                arguments.append(columns[0])
                continue
            length = int(columns[0].shape[0])
            parts = tuple(in_component_order(leaf.element, [*columns]))

            def counts(order: Order, length: int = length) -> list[int]:
                return order.counts(length)

            rows = Rows(number, parts, length, length, length, counts)
            arguments.append(Dataset(rows, Order(number)))
        results = retrace.run(self._content, arguments)
        retrace.check_shapes(results, leaves(self._type.result))
        return [jax.numpy.asarray(result) for result in (*results, retrace.holds())]


def _columns_of(leaf: Any) -> ArrayLayout | None:
    """Return how the elements of a sequence are kept as arrays; None for a tensor."""
    if not isinstance(leaf, SequenceType):
        return None
    columns = stackable_layout(leaf)
    if columns is None:
        raise _needs_tensorflow(f"it takes a sequence of type `{leaf}`")
    return columns


def _needs_tensorflow(reason: str) -> ExecutionError:
    refusal = ExecutionError(
        "E701",
        "TensorFlow is not installed, and a part of the program needs it",
        notes=(f"it cannot be compiled without TensorFlow: {reason}",),
        help="pip install tensorflow",
    )
    refusal.holds_values = False
    return refusal
