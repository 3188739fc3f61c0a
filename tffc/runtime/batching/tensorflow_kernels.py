"""Kernels compiled by TensorFlow's XLA."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import threading
from collections.abc import Generator, Sequence

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs
from tffc.graphs.resources import ResourceNode
from tffc.language.type_parts import leaves
from tffc.language.values.resources import array_of
from tffc.runtime.batching.choices import FAST
from tffc.runtime.batching.devices import Devices
from tffc.runtime.batching.kernels import (
    MOST_TOLD,
    OUT_OF_MEMORY,
    Kernel,
    Mode,
    OutOfMemoryError,
    RoundValues,
    array_type,
    merged_pairwise,
)
from tffc.runtime.frameworks.tensorflow.load import (
    Tensor,
    TensorFlow,
    devices_for_calls,
    load_tensorflow,
)
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.retrace import Retrace
from tffc.runtime.lowering.tensorflow_tracer import TensorFlowTracer
from tffc.support.guards import Array

_compiling = threading.Lock()
"""One kernel is compiled at a time: XLA uses all cores for it, and measures on accelerators."""

LEAST_SHARED = 2**20
"""The least bytes of a resource that TensorFlow uses where it is."""


@functools.cache
def _all_devices(tf: TensorFlow) -> Devices:
    """Return the devices that all kernels share."""
    return Devices(devices_for_calls(tf))


class TensorFlowKernel(Kernel):
    """See `Kernel`; of several devices, the least busy one computes a batch."""

    def _trace(self, graphs: ClientGraphs, device: str, precision: str) -> None:
        self._tf = load_tensorflow()
        compute = self._vectorised if self.mode is Mode.VECTOR else self._looped
        self._devices = Devices([device]) if device else _all_devices(self._tf)
        self.device = self._devices.first
        self._compiled: set[str] = set()
        self._is_fast = precision == FAST
        specs = [self._tf.TensorSpec(*argument) for argument in self.signature()]
        with self._tf.device(device or None), self._tf.init_scope(), _silent(self._tf):
            traced = self._tf.function(compute, jit_compile=True, autograph=False)
            try:
                concrete = traced.get_concrete_function(*specs)
            except Exception as error:  # noqa: BLE001  (clients can be computed one by one)
                raise CannotBatchError(_reason(error)) from None
        # Calling the traced function takes a millisecond longer, because it checks its arguments.
        self._compute = concrete.inference_fn.call_flat

    def _run(self, values: RoundValues, batch: Sequence[Tensor]) -> tuple[Sequence[Array], int]:
        tf, fixed = self._tf, self._flattened(values)
        try:
            with self._devices.least_busy() as device, tf.device(device):
                resources = (_resource(tf, resource, device) for resource in self._resources)
                arguments = [*map(tf.constant, fixed), *batch, *resources]
                compiles = device not in self._compiled
                with self._compiling() if compiles else contextlib.nullcontext():
                    results = self._compute(*arguments)
                arrays = [tensor.numpy() for tensor in results]
                self._compiled.add(device)
                return arrays, sum(np.asarray(value).nbytes for value in fixed)
        except tf.errors.OpError as error:
            text = error.message.strip().partition("\n")[0]
            if OUT_OF_MEMORY.search(text) or isinstance(error, tf.errors.ResourceExhaustedError):
                raise OutOfMemoryError from None
            raise CannotBatchError(f"XLA cannot compile it: {text[:MOST_TOLD]}") from None

    @contextlib.contextmanager
    def _compiling(self) -> Generator[None]:
        """Let the first call compile the function, in the precision that is asked for."""
        options = self._tf.config.experimental
        with _compiling:
            before = options.tensor_float_32_execution_enabled()
            options.enable_tensor_float_32_execution(self._is_fast)
            try:
                yield
            finally:
                options.enable_tensor_float_32_execution(before)

    def _upload(self, arrays: Sequence[Array]) -> list[Tensor]:
        with self._tf.device(self._devices.first):
            return [self._tf.constant(array) for array in arrays]

    def _looped(self, *arguments: Tensor) -> list[Tensor]:
        tf = self._tf
        zero, sent, clients, batch, _, resources = self._arguments(arguments)
        kinds = leaves(self._types[3])
        apart = [
            tf.TensorArray(dtype, self.size, element_shape=shape)
            for shape, dtype in map(array_type, kinds)
        ]

        def body(index: Tensor, holds: Tensor, apart: Tensor, accumulator: Tensor) -> Tensor:
            retrace = Retrace(TensorFlowTracer(), resources)
            client = [column[index] for column in batch]
            results = self._take(retrace, accumulator, client, sent)
            apart = [
                values.write(index, value)
                for values, value in zip(apart, results[len(zero) :], strict=True)
            ]
            holds = tf.logical_and(holds, retrace.holds())
            return index + 1, holds, apart, results[: len(zero)]

        def more(index: Tensor, *_: Tensor) -> Tensor:
            return index < clients

        start = (tf.constant(0), tf.constant(True), apart, zero)
        _, holds, apart, total = tf.while_loop(more, body, start, parallel_iterations=1)
        return [*total, *(values.stack() for values in apart), holds]

    def _vectorised(self, *arguments: Tensor) -> list[Tensor]:
        tf = self._tf
        zero, sent, clients, batch, _, resources = self._arguments(arguments)

        @tf.autograph.experimental.do_not_convert
        def one(client: list[Tensor]) -> list[Tensor]:
            retrace = Retrace(TensorFlowTracer(selects=True), resources)
            results = self._take(retrace, zero, list(client), sent)
            return [*(tf.identity(result) for result in results), retrace.holds()]

        results = tf.vectorized_map(one, batch, fallback_to_while_loop=False)
        *outputs, holds = results
        is_client = tf.range(self.size) < clients
        total = self._merged(outputs[: len(zero)], is_client, resources)
        return [*total, *outputs[len(zero) :], tf.reduce_all(holds | ~is_client)]

    def _merged(
        self,
        accumulators: list[Tensor],
        is_client: Tensor,
        resources: dict[ResourceNode, Tensor],
    ) -> list[Tensor]:
        """Return the accumulator of all clients, by merging neighbours pairwise."""
        tf = self._tf

        @tf.autograph.experimental.do_not_convert
        def merge(pair: Tensor) -> list[Tensor]:
            first, second, is_there = pair
            retrace = Retrace(TensorFlowTracer(selects=True), resources)
            both = retrace.run(self._merging, [*first, *second])
            return [tf.where(is_there, new, old) for new, old in zip(both, first, strict=True)]

        def merge_pairs(*pairs: Tensor) -> list[Tensor]:
            return tf.vectorized_map(merge, pairs, fallback_to_while_loop=False)

        def join(one: Tensor, other: Tensor) -> Tensor:
            return tf.concat([one, other], 0)

        return merged_pairwise(accumulators, is_client, merge_pairs, join)


@functools.lru_cache(maxsize=256)
def _resource(tf: TensorFlow, resource: ResourceNode, device: str) -> Tensor:
    """Return a resource as a tensor on a device, where it stays."""
    array = array_of(resource)
    if array.nbytes < LEAST_SHARED or array.dtype.kind not in "iuf" or "CPU" not in device.upper():
        with tf.device(device):
            return tf.constant(array)
    # TensorFlow would copy the array, which the store keeps as long as the process lives.  NumPy
    # lends no read-only memory, so this is a view of it that claims to be writable.
    place = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    view = np.frombuffer(memoryview(place), array.dtype).reshape(array.shape)
    return tf.experimental.dlpack.from_dlpack(view.__dlpack__())


@contextlib.contextmanager
def _silent(tf: TensorFlow) -> Generator[None]:
    """Keep TensorFlow from logging what it cannot vectorise."""
    logger = tf.get_logger()
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _reason(error: Exception) -> str:
    """Return why tracing failed: the last line, because TensorFlow puts a stack trace before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else type(error).__name__
    for refusal in (CannotBatchError, NotLoweredError):
        last = last.removeprefix(f"{refusal.__name__}: ")
    return last[:MOST_TOLD]
