"""Compiled functions for batches of clients: their work and its accumulation in one call.

A kernel takes clients whose data has the same shapes, or whose sequences have runs of the same
sizes.  It returns one accumulator for all of them, each client's own values, and whether all checks
hold.  It comes in two kinds: a loop over the clients, for work that keeps a core busy, and work
vectorised over the clients, for the smallest models.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import enum
import functools
import logging
import threading
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs, Value
from tffc.graphs.resources import ResourceNode
from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import layout
from tffc.language.values.resources import array_of
from tffc.language.wire.resources import resources_of
from tffc.linking.section import read_section
from tffc.runtime.batching.retrace import Dataset, Retrace
from tffc.runtime.batching.sequences import Order, Rows
from tffc.runtime.frameworks.tensorflow.datasets import components, wire_order
from tffc.runtime.frameworks.tensorflow.load import (
    Tensor,
    TensorFlow,
    devices_for_calls,
    load_tensorflow,
)
from tffc.support.guards import Array

LEAST_SHARED = 2**20
"""The least bytes of a resource that TensorFlow uses where it is."""

MOST_TOLD = 200
"""The number of characters after which TensorFlow's reasons are cut off."""


class Mode(enum.Enum):
    """The ways to compute the clients of a batch."""

    LOOP = "a loop over the clients of a batch"
    VECTOR = "vectorised over the clients of a batch"


def types_of(graphs: ClientGraphs) -> tuple[Type, Type, Type, Type]:
    """Return the types A, D and C of `ClientGraphs`, and the type of a client's own values S."""
    signature = graphs.take.type
    assert isinstance(signature, FunctionType)
    accumulator, client_argument = _pair(signature.parameter)
    result = signature.result
    assert isinstance(result, StructType)
    return accumulator, *_pair(client_argument), StructType(list(result.types[1:]))


def _pair(type: Type | None) -> tuple[Type, Type]:
    assert isinstance(type, StructType)
    first, second = type.types
    return first, second


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """The key of a kernel, which is equal for all clients that it can compute.

    `shapes` are those of a client's arrays as the kernel takes them.  If sequences differ in
    length, `sizes` has the sizes of the runs of each order that the kernel reads, and arrays have
    room for the longest sequence.  `lengths` are those of every client's sequences, or of one
    client's if they differ.
    """

    shapes: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...] = dataclasses.field(compare=False)
    orders: tuple[Order, ...] = ()
    sizes: tuple[tuple[int, ...], ...] | None = None

    def __str__(self) -> str:
        if self.sizes is None:
            if not self.lengths:
                return "clients without sequences"
            return f"sequences of {' and '.join(map(str, self.lengths))} elements"
        sizes = sorted({size for runs in self.sizes for size in runs})
        return f"sequences in steps of {' or '.join(str(size or 1) for size in sizes)} elements"


class DataLayout:
    """The layout of a client's data: its leaves, and the arrays of each.

    `arrays` are the types of all arrays, in the order of a group's columns.  `places` has the range
    of array indices of each leaf.
    """

    def __init__(self, type: Type) -> None:
        self.leaves = leaves(type)
        self.arrays: list[Type] = []
        self.places: list[range] = []
        for leaf in self.leaves:
            first = len(self.arrays)
            self.arrays += components(leaf) if isinstance(leaf, SequenceType) else [leaf]
            self.places.append(range(first, len(self.arrays)))
        for array in self.arrays:
            if not isinstance(array, TensorType) or array.element_type is DType.STRING:
                raise CannotBatchError(f"clients hold {array}")

    def padded(
        self, shapes: Sequence[tuple[int, ...]], rooms: Sequence[int]
    ) -> tuple[tuple[int, ...], ...]:
        """Return the shapes with room for `rooms` elements of the sequences."""
        padded, left = list(shapes), iter(rooms)
        for leaf, at in zip(self.leaves, self.places, strict=True):
            if isinstance(leaf, SequenceType):
                room = next(left)
                padded[at.start : at.stop] = [(room, *padded[place][1:]) for place in at]
        return tuple(padded)

    def lengths(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the length of each sequence of a client whose arrays have these shapes."""
        pairs = zip(self.leaves, self.places, strict=True)
        return tuple(shapes[at[0]][0] for leaf, at in pairs if isinstance(leaf, SequenceType))


class BatchResult(NamedTuple):
    """The result of a batch: the accumulator of its clients, each client's own values, and whether
    the kernel had to be compiled for it."""

    accumulator: Value
    apart: list[Value]
    compiled: bool


class Devices:
    """The devices that batches are computed on, and how many calls run on each.

    Concurrent calls on one device share its threads and wait for one another; with as many devices
    as workers, each worker has its own.  The first devices are preferred, because a kernel is
    compiled once for each device.  Thread-safe.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.first = names[0]
        self._running = dict.fromkeys(names, 0)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def least_busy(self) -> Generator[str]:
        """Yield the first device with the fewest calls, and count one more call in the block."""
        with self._lock:
            device = min(self._running, key=self._running.__getitem__)
            self._running[device] += 1
        try:
            yield device
        finally:
            with self._lock:
                self._running[device] -= 1


@functools.cache
def _all_devices(tf: TensorFlow) -> Devices:
    """Return the devices that all kernels share."""
    return Devices(devices_for_calls(tf))


class Kernel:
    """A compiled function of batches of at most `size` clients; see `compute`.

    Raises:
      CannotBatchError: the graphs cannot be compiled for batches.
    """

    def __init__(
        self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str = ""
    ) -> None:
        self._tf = load_tensorflow()
        self._content = read_section(graphs.take)
        self._merging = read_section(graphs.merge)
        self.mode = mode
        self._key = key
        self.size = size
        self._types = types_of(graphs)
        self._layout = DataLayout(self._types[1])
        self.orders: tuple[Order, ...] = ()
        compute = self._vectorised if mode is Mode.VECTOR else self._looped
        self._devices = Devices([device]) if device else _all_devices(self._tf)
        self._compiled: set[str] = set()
        self._resources = resources_of([graphs.take, graphs.merge])
        with self._tf.device(device or None), self._tf.init_scope(), _silent(self._tf):
            traced = self._tf.function(compute, jit_compile=True, autograph=False)
            try:
                concrete = traced.get_concrete_function(*self._signature())
            except Exception as error:  # noqa: BLE001  (clients can be computed one by one)
                raise CannotBatchError(_reason(error)) from None
        # Calling the traced function takes a millisecond longer, because it checks its arguments.
        self._compute = concrete.inference_fn.call_flat

    def compute(
        self, zero: Value, sent: Value, batch: Sequence[Tensor], clients: int
    ) -> BatchResult | None:
        """Return the result of a batch, or None if a check does not hold.

        `zero` is the accumulator of no clients, and `batch` the tensors that `tensors` returned.

        Raises:
          CannotBatchError: XLA cannot compile the graphs.
        """
        tf, (accumulator, _, context, own) = self._tf, self._types
        fixed = [*layout(accumulator).flatten(zero), *layout(context).flatten(sent)]
        try:
            with self._devices.least_busy() as device, tf.device(device):
                compiles = device not in self._compiled
                resources = (_resource(tf, resource, device) for resource in self._resources)
                *results, holds = self._compute(*map(tf.constant, fixed), *batch, *resources)
                results = [tensor.numpy() for tensor in results]
                self._compiled.add(device)
        except tf.errors.OpError as error:
            text = error.message.strip().partition("\n")[0]
            raise CannotBatchError(f"XLA cannot compile it: {text[:MOST_TOLD]}") from None
        if not holds.numpy():
            return None
        total = layout(accumulator).unflatten(value[()] for value in results)
        added = results[len(leaves(accumulator)) :]
        if added:
            apart = [layout(own).unflatten(leaf[at] for leaf in added) for at in range(clients)]
        else:
            apart = [layout(own).unflatten(iter(()))] * clients
        return BatchResult(total, apart, compiles)

    def tensors(
        self, columns: Sequence[Tensor], lengths: Tensor, counts: Sequence[Tensor], clients: int
    ) -> list[Tensor]:
        """Return the clients of a batch as tensors, which may be kept for the next round.

        The first axis of every array is the clients.  `lengths` has the lengths of their sequences,
        and `counts` has an array for each order, with the number of elements in each run.
        """
        tf, size = self._tf, self.size
        padded = [_padded(np.asarray(array), size) for array in (*columns, lengths, *counts)]
        with tf.device(self._devices.first):
            return [tf.constant(clients, tf.int32), *map(tf.constant, padded)]

    def _signature(self) -> list[Tensor]:
        """Return the types of the arguments: accumulator, values sent by the server, number of
        clients, the clients' arrays, lengths and counts, and resources, which all clients share."""
        tf = self._tf
        fixed = [
            tf.TensorSpec(_known(leaf), _dtype(tf, leaf))
            for type in (self._types[0], self._types[2])
            for leaf in leaves(type)
        ]
        columns = [
            tf.TensorSpec((self.size, *shape), _dtype(tf, array))
            for shape, array in zip(self._key.shapes, self._layout.arrays, strict=True)
        ]
        lengths = tf.TensorSpec((self.size, len(self._key.lengths)), tf.int64)
        counts = [tf.TensorSpec((self.size, len(runs)), tf.int64) for runs in self._key.sizes or ()]
        resources = [tf.TensorSpec(each.shape, each.dtype) for each in self._resources]
        return [*fixed, tf.TensorSpec((), tf.int32), *columns, lengths, *counts, *resources]

    def _parts(
        self, arguments: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], Tensor, list[Tensor], dict[ResourceNode, Tensor]]:
        """Return the accumulator, the values sent by the server, the number of clients, their
        arrays, lengths and counts, and the resources."""
        first = len(leaves(self._types[0]))
        second = first + len(leaves(self._types[2]))
        rest = list(arguments)
        last = len(rest) - len(self._resources)
        resources = dict(zip(self._resources, rest[last:], strict=True))
        batch = rest[second + 1 : last]
        return rest[:first], rest[first:second], rest[second], batch, resources

    def _take(
        self,
        retrace: Retrace,
        accumulator: Sequence[Tensor],
        client: list[Tensor],
        sent: Sequence[Tensor],
    ) -> list[Tensor]:
        """Return the results of `take` for one client, given its arrays, lengths and counts."""
        data: list[Tensor] = []
        columns = len(self._key.shapes)
        number = 0
        for leaf, at in zip(self._layout.leaves, self._layout.places, strict=True):
            if isinstance(leaf, SequenceType):
                arrays = tuple(client[at[place]] for place in wire_order(leaf))
                data.append(self._rows(number, arrays, client[columns], client[columns + 1 :]))
                number += 1
            else:
                data.append(client[at[0]])
        results = retrace.run(self._content, [*accumulator, *data, *sent])
        self.orders = tuple(retrace.orders)
        return results

    def _rows(
        self, number: int, arrays: tuple[Tensor, ...], lengths: Tensor, counts: Tensor
    ) -> Dataset:
        like, most = self._key.lengths[number], int(arrays[0].shape[0])
        if self._key.sizes is None:
            rows = Rows(number, arrays, like, most, like, lambda order: order.counts(like))
        else:

            def counts_of(order: Order) -> list[Tensor]:
                if order not in self._key.orders:
                    raise CannotBatchError("sequences are read in ways that depend on their length")
                own, runs = counts[self._key.orders.index(order)], order.runs(like) or ()
                # Batches that are not rearranged end with at most one smaller batch.
                return [1 if run and not order.batches else own[run] for run in range(len(runs))]

            rows = Rows(number, arrays, lengths[number], most, like, counts_of)
        return Dataset(rows, Order(number))

    def _looped(self, *arguments: Tensor) -> list[Tensor]:
        tf = self._tf
        zero, sent, clients, batch, resources = self._parts(arguments)
        kinds = leaves(self._types[3])
        apart = [
            tf.TensorArray(_dtype(tf, kind), self.size, element_shape=_known(kind))
            for kind in kinds
        ]

        def body(index: Tensor, holds: Tensor, apart: Tensor, accumulator: Tensor) -> Tensor:
            retrace = Retrace(resources)
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
        zero, sent, clients, batch, resources = self._parts(arguments)

        @tf.autograph.experimental.do_not_convert
        def one(client: list[Tensor]) -> list[Tensor]:
            retrace = Retrace(resources, selects=True)
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
        tf, count = self._tf, self.size

        @tf.autograph.experimental.do_not_convert
        def merge(pair: Tensor) -> list[Tensor]:
            first, second, is_there = pair
            retrace = Retrace(resources, selects=True)
            both = retrace.run(self._merging, [*first, *second])
            return [tf.where(is_there, new, old) for new, old in zip(both, first, strict=True)]

        while count > 1 and accumulators:
            half = count // 2
            pairs = (
                [part[: 2 * half : 2] for part in accumulators],
                [part[1 : 2 * half : 2] for part in accumulators],
                is_client[1 : 2 * half : 2],
            )
            merged = tf.vectorized_map(merge, pairs, fallback_to_while_loop=False)
            rest = [part[2 * half :] for part in accumulators]
            accumulators = [
                tf.concat([one, other], 0) for one, other in zip(merged, rest, strict=True)
            ]
            is_client = tf.concat([is_client[: 2 * half : 2], is_client[2 * half :]], 0)
            count -= half
        return [part[0] for part in accumulators]


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
    return last.removeprefix(f"{CannotBatchError.__name__}: ")[:MOST_TOLD]


def _padded(array: Array, size: int) -> Array:
    """Return an array with its last row repeated until it has `size` rows."""
    if len(array) == size:
        return array
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


def check_types(graphs: ClientGraphs) -> None:
    """Check that a batch can hold what clients take and return.

    Raises:
      CannotBatchError: it cannot.
    """
    accumulator, _, context, own = types_of(graphs)
    for leaf in (*leaves(accumulator), *leaves(context), *leaves(own)):
        if isinstance(leaf, SequenceType):
            raise CannotBatchError(f"its work takes or gives a sequence, {leaf}")
        if not isinstance(leaf, TensorType) or leaf.element_type is DType.STRING:
            raise CannotBatchError(f"its work takes or gives {leaf}")
    for leaf in (*leaves(accumulator), *leaves(context)):
        _known(leaf)


def _dtype(tf: TensorFlow, leaf: Type) -> Tensor:
    assert isinstance(leaf, TensorType)
    return tf.as_dtype(leaf.element_type.number)


def _known(leaf: Type) -> list[int]:
    """Return the shape of a tensor in a batch, which must be fully defined."""
    if not isinstance(leaf, TensorType) or not leaf.is_fully_defined():
        raise CannotBatchError(f"its work takes or gives a tensor of type {leaf}, of any shape")
    return [size for size in leaf.shape or () if size is not None]
