"""Compiled functions for batches of clients: their work and its accumulation in one call.

A kernel takes clients whose data has the same shapes, or whose sequences have runs of the same
sizes.  It returns one accumulator for all of them, each client's own values, and whether all checks
hold.  It comes in two kinds: a loop over the clients, for work that keeps a core busy, and work
vectorised over the clients, for the smallest models.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs, Value
from tffc.graphs.resources import ResourceNode
from tffc.language.dtypes import BY_NUMBER, DType
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import layout
from tffc.language.wire.resources import resources_of
from tffc.linking.operand import in_component_order
from tffc.linking.section import read_section
from tffc.runtime.batching.choices import FULL
from tffc.runtime.frameworks.tensorflow.datasets import components
from tffc.runtime.lowering.retrace import Dataset, Retrace, draws
from tffc.runtime.lowering.sequences import Order, Rests, Rows
from tffc.runtime.lowering.tracer import Tensor
from tffc.support.guards import Array, ElementType

OUT_OF_MEMORY = re.compile("RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE)
"""What the frameworks say where there is too little memory."""

MOST_TOLD = 200
"""The number of characters after which the reasons of frameworks are cut off."""


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
    room for the longest sequence.  `rests` has the sizes of the last batch of each order if clients
    differ in it, and is empty for an order otherwise.  `lengths` are those of every client's
    sequences, or of one client's if they differ.
    """

    shapes: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...] = dataclasses.field(compare=False)
    orders: tuple[Order, ...] = ()
    sizes: tuple[tuple[int, ...], ...] | None = None
    rests: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        if self.sizes is None:
            if not self.lengths:
                return "clients without sequences"
            return f"sequences of {' and '.join(map(str, self.lengths))} elements"
        sizes = sorted({size for runs in (*self.sizes, *self.rests) for size in runs})
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


@dataclasses.dataclass(slots=True)
class Usage:
    """What a kernel has been used for: how long compiling took, with the first call if it cannot be
    told apart; the other calls and their seconds; and the bytes to and from the device in all of
    them, except for the clients' data and keys."""

    compiling: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0

    def add(self, seconds: float, moved: int, results: Sequence[Array]) -> None:
        """Add a call, with the bytes that were taken to the device for it, and its results."""
        self.calls += 1
        self.seconds += seconds
        self.bytes += moved + sum(np.asarray(array).nbytes for array in results)

    def __str__(self) -> str:
        text = f"compiled in {self.compiling:.2g} s"
        if not self.calls:
            return text
        return (
            f"{text}, {self.calls} calls of {1e3 * self.seconds / self.calls:.3g} ms, "
            f"{self.bytes // self.calls:,} bytes to and from it a call"
        )


class OutOfMemoryError(Exception):
    """A batch does not fit into the memory of its device."""


class RoundValues:
    """What all batches of a round take: the accumulator of no clients, and what the server sends.

    Nobody writes to them during the round, so a kernel keeps here what it put on a device.
    """

    def __init__(self, zero: Value, sent: Value) -> None:
        self.zero, self.sent = zero, sent
        self.tensors: dict[tuple[Kernel, Any], list[Tensor]] = {}
        """The leaves as tensors, by kernel and device; changed by the holder of `lock`."""
        self.lock = threading.Lock()


class BatchResult(NamedTuple):
    """The result of a batch: the accumulator of its clients, each client's own values, and whether
    the kernel had to be compiled for it."""

    accumulator: Value
    apart: list[Value]
    compiled: bool


ArrayType: TypeAlias = tuple[tuple[int, ...], ElementType]
"""The shape and the element type of an array."""


class KernelArguments(NamedTuple):
    """The arguments of a kernel: the accumulator of no clients, the values sent by the server, the
    number of clients, the clients' arrays, lengths and counts, the keys that they draw under, if
    they draw, and the resources."""

    zero: list[Tensor]
    sent: list[Tensor]
    clients: Tensor
    batch: list[Tensor]
    keys: Tensor
    resources: dict[ResourceNode, Tensor]


class BatchedWork:
    """The work of a batch of at most `size` clients, as a function of tensors to be traced.

    `orders` are those in which it reads sequences, once it is traced.
    """

    def __init__(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int) -> None:
        self._content = read_section(graphs.take)
        self._merging = read_section(graphs.merge)
        self.mode = mode
        self.key = key
        self.size = size
        self._types = types_of(graphs)
        self._layout = DataLayout(self._types[1])
        self.orders: tuple[Order, ...] = ()
        self._draws = draws(self._content)
        self._resources = resources_of([graphs.take, graphs.merge])

    def signature(self) -> list[ArrayType]:
        """Return the types of the arguments, in the order of `KernelArguments`."""
        rows = self.size
        fixed = [
            array_type(leaf) for type in (self._types[0], self._types[2]) for leaf in leaves(type)
        ]
        columns = [
            ((rows, *shape), array_type(array, any_shape=True)[1])
            for shape, array in zip(self.key.shapes, self._layout.arrays, strict=True)
        ]
        int64 = np.dtype(np.int64)
        lengths = ((rows, len(self.key.lengths)), int64)
        counts = [((rows, width), int64) for width in self._widths()]
        keys = [((rows, 2), np.dtype(np.uint64))] if self._draws else []
        resources = [(each.shape, BY_NUMBER[each.dtype].dtype) for each in self._resources]
        number = ((), np.dtype(np.int32))
        return [*fixed, number, *columns, lengths, *counts, *keys, *resources]

    def _widths(self) -> list[int]:
        """Return the number of counts of each order."""
        rests = self.key.rests or [()] * len(self.key.orders)
        return [
            len(runs) + bool(sizes) for runs, sizes in zip(self.key.sizes or (), rests, strict=True)
        ]

    def _arguments(self, tensors: Sequence[Tensor]) -> KernelArguments:
        first = len(leaves(self._types[0]))
        second = first + len(leaves(self._types[2]))
        rest = list(tensors)
        last = len(rest) - len(self._resources)
        resources = dict(zip(self._resources, rest[last:], strict=True))
        keys = rest[last - 1] if self._draws else None
        batch = rest[second + 1 : last - self._draws]
        return KernelArguments(
            rest[:first], rest[first:second], rest[second], batch, keys, resources
        )

    def _take(
        self,
        retrace: Retrace,
        accumulator: Sequence[Tensor],
        client: list[Tensor],
        sent: Sequence[Tensor],
    ) -> list[Tensor]:
        """Return the results of `take` for one client, given its arrays, lengths and counts."""
        data: list[Tensor] = []
        columns = len(self.key.shapes)
        number = 0
        for leaf, at in zip(self._layout.leaves, self._layout.places, strict=True):
            if isinstance(leaf, SequenceType):
                arrays = tuple(client[place] for place in in_component_order(leaf.element, [*at]))
                data.append(self._rows(number, arrays, client[columns], client[columns + 1 :]))
                number += 1
            else:
                data.append(client[at[0]])
        results = retrace.run(self._content, [*accumulator, *data, *sent])
        retrace.check_shapes(results, leaves(self._types[0]) + leaves(self._types[3]))
        self.orders = tuple(retrace.orders)
        return results

    def _rows(
        self, number: int, arrays: tuple[Tensor, ...], lengths: Tensor, counts: Sequence[Tensor]
    ) -> Dataset:
        key = self.key
        like, most = key.lengths[number], int(arrays[0].shape[0])
        if key.sizes is None:
            rows = Rows(number, arrays, like, most, like, lambda order: order.counts(like))
            return Dataset(rows, Order(number))

        def place(order: Order) -> int:
            if order not in key.orders:
                raise CannotBatchError("sequences are read in ways that depend on their length")
            return key.orders.index(order)

        def rests_of(order: Order) -> Rests | None:
            sizes = key.rests[place(order)] if key.rests else ()
            return Rests(counts[place(order)][1], sizes) if sizes else None

        def counts_of(order: Order) -> list[Tensor]:
            own = counts[place(order)]
            if rests_of(order):
                return [own[0]]
            runs = order.runs(like) or ()
            # Batches that are not rearranged end with at most one smaller batch.
            return [1 if run and not order.batches else own[run] for run in range(len(runs))]

        rows = Rows(number, arrays, lengths[number], most, like, counts_of, rests_of)
        return Dataset(rows, Order(number))


class Kernel(BatchedWork, abc.ABC):
    """A compiled function of batches of at most `size` clients; see `compute`.

    `device` is a name such as `GPU:0`, or empty for all preferred ones, and `precision` one of
    `PRECISIONS`.

    Raises:
      CannotBatchError: the graphs cannot be compiled for batches.
    """

    device: str
    """The name of the device that computes it, or of the first if there are several."""

    def __init__(
        self,
        graphs: ClientGraphs,
        mode: Mode,
        key: Key,
        size: int,
        device: str = "",
        precision: str = FULL,
    ) -> None:
        super().__init__(graphs, mode, key, size)
        self.usage = Usage()
        self._trace(graphs, device, precision)

    @abc.abstractmethod
    def _trace(self, graphs: ClientGraphs, device: str, precision: str) -> None:
        """Trace the work, and set `device`."""

    def is_kept(self) -> bool:
        """Return whether the next run reads it instead of tracing the work again."""
        return False

    def prepare(self) -> None:
        """Compile the function now, if that is possible before there are batches.

        Raises:
          CannotBatchError: XLA cannot compile the graphs.
          OutOfMemoryError: there is too little memory.
        """

    def compute(
        self, values: RoundValues, batch: Sequence[Tensor], clients: int
    ) -> BatchResult | None:
        """Return the result of a batch, or None if a check does not hold.

        `batch` has the tensors that `tensors` returned.

        Raises:
          CannotBatchError: XLA cannot compile the graphs.
          OutOfMemoryError: there is too little memory.
        """
        compiles = self._compile_for(batch)
        begun = time.perf_counter()
        (*results, holds), moved = self._run(values, batch)
        seconds = time.perf_counter() - begun
        compiled = compiles or not self.usage.compiling
        if self.usage.compiling:
            self.usage.add(seconds, moved, results)
        else:
            self.usage.compiling = seconds  # the first call of a function compiles it
        return self._outcome(results, clients, compiled) if holds else None

    def _compile_for(self, batch: Sequence[Tensor]) -> bool:
        """Compile the function for a batch, if that is possible apart from calling it; return
        whether that had to be done, or awaited."""
        return False

    @abc.abstractmethod
    def _run(self, values: RoundValues, batch: Sequence[Tensor]) -> tuple[Sequence[Array], int]:
        """Return the results of a batch with whether all checks hold, see `compute`, and how many
        bytes of the round's values were taken to the device for it."""

    def tensors(
        self, columns: Sequence[Array], lengths: Array, counts: Sequence[Array], clients: int
    ) -> list[Tensor]:
        """Return the clients of a batch as tensors, which may be kept for the next round.

        The first axis of every array is the clients.  `lengths` has the lengths of their sequences,
        and `counts` has an array for each order, with the number of elements in each run, and the
        size of the last batch if it is one of several.
        """
        padded = [padded_to(np.asarray(array), self.size) for array in (*columns, lengths, *counts)]
        return self._upload([np.array(clients, np.int32), *padded])

    @abc.abstractmethod
    def _upload(self, arrays: Sequence[Array]) -> list[Tensor]:
        """Return arrays as tensors on the device that computes them."""

    def _outcome(self, results: Sequence[Array], clients: int, compiled: bool) -> BatchResult:
        """Return the result of a batch from the arrays that the compiled function gave, except for
        whether checks hold."""
        accumulator, _, _, own = self._types
        total = layout(accumulator).unflatten(value[()] for value in results)
        added = results[len(leaves(accumulator)) :]
        if added:
            apart = [layout(own).unflatten(leaf[at] for leaf in added) for at in range(clients)]
        else:
            apart = [layout(own).unflatten(iter(()))] * clients
        return BatchResult(total, apart, compiled)

    def _flattened(self, values: RoundValues) -> list[Value]:
        """Return the leaves of the accumulator of no clients, and of what the server sends."""
        accumulator, _, context, _ = self._types
        return [*layout(accumulator).flatten(values.zero), *layout(context).flatten(values.sent)]


def merged_pairwise(
    accumulators: list[Tensor],
    is_client: Tensor,
    merge_pairs: Callable[[list[Tensor], list[Tensor], Tensor], list[Tensor]],
    join: Callable[[Tensor, Tensor], Tensor],
) -> list[Tensor]:
    """Return the accumulator of all clients, by merging neighbours pairwise.

    `merge_pairs` merges the rows of tensors with those of others, where these are of clients;
    `join` puts the rows of one tensor after those of another.
    """
    count = int(is_client.shape[0])
    while count > 1 and accumulators:
        half = count // 2
        first = [part[: 2 * half : 2] for part in accumulators]
        second = [part[1 : 2 * half : 2] for part in accumulators]
        merged = merge_pairs(first, second, is_client[1 : 2 * half : 2])
        rest = [part[2 * half :] for part in accumulators]
        accumulators = [join(one, other) for one, other in zip(merged, rest, strict=True)]
        is_client = join(is_client[: 2 * half : 2], is_client[2 * half :])
        count -= half
    return [part[0] for part in accumulators]


def padded_to(array: Array, size: int) -> Array:
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


def array_type(leaf: Type, *, any_shape: bool = False) -> ArrayType:
    """Return the shape and element type of a tensor; with `any_shape`, of the element type alone.

    Raises:
      CannotBatchError: the shape is not fully defined.
    """
    assert isinstance(leaf, TensorType)
    return () if any_shape else tuple(_known(leaf)), leaf.element_type.dtype


def _known(leaf: Type) -> list[int]:
    """Return the shape of a tensor in a batch, which must be fully defined."""
    if not isinstance(leaf, TensorType) or not leaf.is_fully_defined():
        raise CannotBatchError(f"its work takes or gives a tensor of type {leaf}, of any shape")
    return [size for size in leaf.shape or () if size is not None]
