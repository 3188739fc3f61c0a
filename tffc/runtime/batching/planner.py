"""Plans of batches: the clients that are computed together, and whether that is faster.

If the number of clients a call is given, batches are made from the first round on.  Otherwise
clients are computed one at a time, until those that could share a kernel have taken as long as
compiling it would.  Then it is compiled, and used if it takes less time per client.

Batches depend only on the clients of a round and their data, not on the number of workers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import TypeAlias, TypeVar

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs, RoundSteps
from tffc.graphs.node import all_nodes
from tffc.language.type_parts import leaves
from tffc.language.types import TensorType
from tffc.linking.section import read_section
from tffc.runtime.batching.background import in_background
from tffc.runtime.batching.compilers import Compiler, chosen_compiler
from tffc.runtime.batching.kernels import (
    DataLayout,
    Kernel,
    Key,
    Mode,
    OutOfMemoryError,
    check_types,
    types_of,
)
from tffc.runtime.batching.keys import KernelKeys
from tffc.runtime.batching.pieces import (
    Batch,
    OneByOne,
    Piece,
    PlannedPiece,
    Stacked,
    bytes_of,
    place,
    stack,
)
from tffc.runtime.batching.shares import calls_of, shared_equally, slowdown
from tffc.runtime.data.groups import ClientGroup, GroupedSource, read_groups
from tffc.runtime.data.read_once import ReadOnce
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.frameworks.tensorflow.load import is_installed
from tffc.runtime.lowering.sequences import Order
from tffc.support.errors import TffcError

CONVOLUTIONS = frozenset(
    [
        "AvgPool",
        "AvgPoolGrad",
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "MaxPool",
        "MaxPoolGrad",
    ]
)
"""Operations that XLA computes slower than TensorFlow on a processor."""

T = TypeVar("T")

PROCESSOR = "CPU:0"

MODELS = 8
"""How many times the memory of its model the work of a client takes, where clients are vectorised:
weights, gradients, momentum and their sums."""

Seconds: TypeAlias = float


@functools.lru_cache(maxsize=64)
def _load_kernel(
    compiler: Compiler, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str
) -> Kernel:
    return compiler.kernel(graphs, mode, key, size, device)


class Planner:
    """Plans the rounds of one process, for so many workers.

    `decisions` are those so far and their reasons, in words; `warnings` are those that a user is
    told without asking.  `known` says whether each kind of batch pays off, as measured in this run
    or before it.  `first_count` is the number of clients of the first round.
    """

    def __init__(self, steps: RoundSteps, batching: Batching, workers: int = 1) -> None:
        self.decisions: list[str] = []
        if batching.size == 1 and not is_installed():
            batching = dataclasses.replace(batching, size=batching.limits.without_tensorflow)
        self.known = dict(batching.known)
        self._choice = batching
        self._limits = batching.limits
        self._workers = workers
        self._type = steps.data_type
        self._graphs: ClientGraphs | None = None
        self._kept: tuple[ClientSource, tuple[str, ...], list[PlannedPiece]] | None = None
        self.first_count = 0
        self._sizes: dict[Mode, int] = {}
        self._is_settled = True
        self._spent = 0.0
        self._done = 0
        self._patience = self._limits.patience
        self.warnings: list[str] = []
        self._taken: dict[Kernel, list[tuple[Seconds, Seconds]]] = {}
        self._compared: dict[Key, list[tuple[Seconds, Kernel]]] = {}
        self._most_clients = sys.maxsize
        self._waiting: dict[Key, Seconds] = {}
        self._lock = threading.Lock()
        self._known_graphs: ClientGraphs | None = None
        self._layout: DataLayout | None = None
        self._kernels: dict[Key, Kernel | None] = {}
        self._preparing: dict[Key, Future[Kernel]] = {}
        if batching.size == 1:
            self.decisions.append("one client a call, as was asked for")
            return
        choice = (batching.compiler, batching.precision, batching.device)
        self._compiler = chosen_compiler(*choice)
        try:
            if steps.batches is not None:
                self._graphs = steps.batches.graphs()
            self._check()
        except CannotBatchError as error:
            self.give_up(str(error))
        except TffcError as error:
            self.give_up(error.message)
        self._known_graphs = self._graphs
        self._begin()

    def reasons(self) -> list[str]:
        """Return `decisions` and how kernels were used, or why nothing has been decided yet."""
        if self.decisions or not self._measures:
            used = [kernel for kernel in self._kernels.values() if kernel is not None]
            return [
                *self.decisions,
                *(f"{kernel.mode.value} on {kernel.device}: {kernel.usage}" for kernel in used),
            ]
        least = f"{self._limits.patience:g} s after which compiling may pay"
        so_far = f"{self._spent:.2g} s of the {least}"
        return [f"one client a call so far: clients have taken {so_far}"]

    def _begin(self) -> None:
        """Reset all decisions about clients."""
        self._kernels, self._preparing = {}, {}
        self._is_tiny: bool | None = None
        layout = self._layout
        self._keys = None if layout is None else KernelKeys(layout, self._compiler, self._limits)

    def forget(self) -> None:
        """Forget earlier decisions, so that later plans do not depend on them."""
        self._begin()
        self._graphs = self._known_graphs
        self.decisions.clear()

    def _check(self) -> None:
        """Check what can be checked before there is data.

        Raises:
          CannotBatchError: the program cannot be computed in batches, or would be slower.
        """
        if self._graphs is None:
            raise CannotBatchError("its form has no graphs for many clients")
        self._layout = DataLayout(self._type)
        check_types(self._graphs)
        operations = {
            node.op
            for section in (self._graphs.take, self._graphs.merge)
            for node in all_nodes(read_section(section).graph)
        }
        if not self._choice.device and not self._is_accelerated and operations & CONVOLUTIONS:
            raise CannotBatchError(
                "it has convolutions, which XLA computes slower than TensorFlow on this processor"
            )

    @property
    def _is_accelerated(self) -> bool:
        device = self._choice.device or self._compiler.devices()[0]
        return not device.startswith("CPU")

    def give_up(self, reason: str) -> None:
        """Compute all clients one by one from now on."""
        self._graphs = None
        if self.decisions[-1:] == [_refusal(Mode.VECTOR, reason)]:
            self.decisions.pop()
        if self._choice.size != 1:
            self.decisions.append(f"one client a call: {reason}")

    @property
    def makes_batches(self) -> bool:
        """Whether the next round is computed in batches where possible.

        If the number of clients a call is given, the answer is the same for all rounds.
        """
        if not self._measures:
            return self._known_graphs is not None
        if self._graphs is None:
            return False
        return bool(self.known) or (self._done > 0 and self._spent >= self._limits.patience)

    @property
    def _measures(self) -> bool:
        return self._choice.size is None

    def measured_alone(self, clients: int, seconds: Seconds) -> None:
        """Record how long some clients took, computed one after another."""
        if self._graphs is None or not self._measures or not clients:
            return
        with self._lock:
            self._spent += seconds
            self._done += clients

    def compiled(self, seconds: Seconds) -> None:
        """Record how long a batch took, including the compilation of its kernel."""
        with self._lock:
            self._patience = max(self._limits.patience, seconds)

    def measured(self, batch: Batch, seconds: Seconds, time_alone: Callable[[], Seconds]) -> None:
        """Record how long a batch took with a kernel that was compiled before.

        `time_alone` computes some of its clients one by one, and returns the time of one client.
        It is called right after the batch, so that other work on the machine slows both.
        """
        taken = self._taken.setdefault(batch.kernel, [])
        if self._graphs is None or not self._measures or len(taken) >= self._limits.trials:
            return
        alone = time_alone()
        with self._lock:
            taken.append((seconds / len(batch.clients), alone))
            if len(taken) != self._limits.trials:
                return
            key = next((key for key, own in self._kernels.items() if own is batch.kernel), None)
            if key is None:
                return
            together, alone = sorted(taken, key=_quotient)[self._limits.trials // 2]
            where = f" on {batch.kernel.device}" if self._is_accelerated else ""
            times = f"{1e6 * together:.3g} µs in a batch{where}, and {1e6 * alone:.3g} µs by itself"
            together *= self._idleness(batch.kernel)
            self.decisions.append(f"a client takes {times}")
            measured = self._compared.setdefault(key, [])
            measured.append((together, batch.kernel))
            other = self._on_processor(key) if len(measured) == 1 else None
            if other is not None:
                self._kept = None
                self._kernels[key] = other
                return
            together, kernel = min(measured, key=lambda pair: pair[0])
            self._kernels[key] = kernel
            self.known[_kind(kernel.mode, key)] = together < alone
        if together >= alone:
            self.refuse(dataclasses.replace(batch, kernel=kernel), "that takes less time")

    def _idleness(self, kernel: Kernel) -> float:
        """Return how much longer a round takes because its batches are too few for all workers."""
        if not kernel.device.startswith("CPU"):
            return 1.0
        batches = calls_of(kernel, self.first_count)
        idleness = slowdown(batches, self._workers) / slowdown(self.first_count, self._workers)
        if idleness > 1:
            idle = f"{batches} batches leave workers idle"
            self.decisions.append(f"{idle}: a round takes {idleness:.2g} times as long")
        return idleness

    def _on_processor(self, key: Key) -> Kernel | None:
        """Return a kernel for the processor, where accelerators are used unless it is faster."""
        if self._choice.device or not self._is_accelerated or self._graphs is None:
            return None
        mode = Mode.VECTOR if self._count_numbers() <= self._limits.most_numbers else Mode.LOOP
        size = self._sizes_of(self.first_count, self._limits.shares)[mode]
        try:
            return _load_kernel(self._compiler, self._graphs, mode, key, size, PROCESSOR)
        except CannotBatchError:
            return None

    def pieces(self, cohort: Cohort, reads: ClientSource) -> Iterator[PlannedPiece]:
        """Yield the work of a round in pieces, in an order that depends only on its clients.

        Clients are read from `reads`, which has the same values as the cohort's source.
        """
        source, clients = cohort.source, cohort.clients
        if self._kept is not None and self._kept[0] is source and self._kept[1] is clients:
            yield from self._kept[2]
            return
        self._kept = None
        keeps = clients is source.clients and isinstance(source, GroupedSource | ReadOnce)
        self._is_settled = True
        pieces: list[PlannedPiece] = []
        room = self._limits.most_stored
        windows = self.windows(clients)
        for placed in place(self.window(reads, window, len(clients)) for window in windows):
            if keeps:
                pieces.append(placed)
                room -= bytes_of(placed.piece)
                if room < 0:
                    keeps, pieces = False, []
            yield placed
        if keeps and self._is_settled:
            self._kept = source, clients, pieces

    def windows(self, clients: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield the clients of a round in windows, each of which is planned together."""
        if not clients:
            return  # and the next round is the first one
        sizes = self._sizes_for(len(clients))
        size = self._limits.window * sizes[Mode.LOOP]
        if self._prefers_vectors():
            # All batches but the last ones are full.
            size = -(-size // sizes[Mode.VECTOR]) * sizes[Mode.VECTOR]
        for start in range(0, len(clients), size):
            yield clients[start : start + size]

    def _sizes_for(self, count: int) -> dict[Mode, int]:
        """Return each mode's number of clients in a batch, set by the first round's `count`."""
        if not self._sizes:
            self.first_count = count
            # An accelerator computes as many clients at once as fit into its memory.
            shares = 1 if self._measures and self._is_accelerated else self._limits.shares
            self._sizes = self._sizes_of(count, shares)
        return self._sizes

    def _sizes_of(self, count: int, shares: int) -> dict[Mode, int]:
        most = self._choice.size or self._limits.most_clients
        share = self._choice.size or max(self._limits.least_clients, -(-count // shares))
        count = max(1, count)
        at_once = self._choice.size or -(-count // shared_equally(count, most))
        return {Mode.VECTOR: min(at_once, count), Mode.LOOP: min(most, share, count)}

    def window(self, source: ClientSource, clients: tuple[str, ...], count: int) -> Iterator[Piece]:
        """Yield the work of a window of clients in pieces; the round has `count` clients."""
        self._sizes_for(count)
        if self._graphs is None:
            yield from self._shares(clients)
            return
        grouped = read_groups(source, self._type, clients)
        alone = list(grouped.others)
        for kernel, group in self._kerneled(grouped.groups, alone):
            positions, (columns, lengths, counts) = group
            calls = calls_of(kernel, len(positions))
            for call in range(calls):
                part = slice(call * len(positions) // calls, (call + 1) * len(positions) // calls)
                names = tuple(clients[int(at)] for at in positions[part])
                tensors = kernel.tensors(
                    [column[part] for column in columns],
                    lengths[part],
                    [count[part] for count in counts],
                    len(names),
                )
                yield Batch(names, kernel, tensors)
        yield from self._shares([clients[at] for at in sorted(alone)])

    def _shares(self, clients: Sequence[str]) -> Iterator[OneByOne]:
        share = max(1, -(-len(clients) // self._limits.shares_alone))
        for start in range(0, len(clients), share):
            yield OneByOne(tuple(clients[start : start + share]))

    def _kerneled(
        self, groups: Sequence[ClientGroup], alone: list[int]
    ) -> list[tuple[Kernel, Stacked]]:
        """Return the kernels with the clients that share each; add all other clients to `alone`."""
        assert self._layout is not None, "the data of clients was checked"
        kerneled: list[tuple[Kernel, Stacked]] = []
        for key, together, kernel in self._assigned(groups):
            if key is None or kernel is None:
                alone.extend(int(at) for group in together for at in group.positions)
            else:
                kerneled.append((kernel, stack(self._layout, key, together)))
        return kerneled

    def _assigned(
        self, groups: Sequence[ClientGroup]
    ) -> list[tuple[Key | None, list[ClientGroup], Kernel | None]]:
        """Return the groups of each key, and the kernel that computes them, if one does."""
        assert self._keys is not None, "keys are made for each layout"
        mode = Mode.VECTOR if self._is_vectorised(groups) else Mode.LOOP
        is_ragged = mode is Mode.LOOP or len(groups) > self._limits.most_kernels // 2
        if is_ragged:
            self._keys.make_room(groups, self._find_orders)
        keyed = self._keys.of(groups, ragged=is_ragged)
        by_size = sorted(keyed.items(), key=lambda pair: -_clients_in(pair[1]))
        try:
            return [
                (key, same, key and self._kernel(mode, key, _clients_in(same)))
                for key, same in by_size
            ]
        except CannotBatchError as error:
            # Only vectorised kernels raise it.
            self._is_tiny = False
            self.decisions.append(_refusal(mode, str(error)))
            return self._assigned(groups)

    def kernels(self, groups: Sequence[ClientGroup], clients: int) -> list[Kernel]:
        """Return the kernels for a round of so many clients in these groups."""
        self._sizes_for(clients)
        return [kernel for *_, kernel in self._assigned(groups) if kernel is not None]

    def _is_vectorised(self, groups: Sequence[ClientGroup]) -> bool:
        """Return whether a round with these groups is vectorised."""
        few = self._compiler.has_rests or len(groups) <= self._limits.most_kernels // 2
        return self._prefers_vectors() and few

    def _prefers_vectors(self) -> bool:
        """Return whether rounds are vectorised, if their clients allow it."""
        if self._is_tiny is None and self._graphs is not None:
            few = self._count_numbers() <= self._limits.most_numbers
            self._is_tiny = self._is_accelerated or few
        return bool(self._is_tiny)

    def _count_numbers(self) -> int:
        """Return how many numbers a client gives, which is about the size of its model."""
        assert self._graphs is not None
        accumulator, *_, own = types_of(self._graphs)
        return sum(
            math.prod(size or 1 for size in leaf.shape or ())
            for leaf in leaves(accumulator) + leaves(own)
            if isinstance(leaf, TensorType)
        )

    def _find_orders(self, key: Key) -> tuple[Order, ...] | None:
        """Return the orders in which clients' sequences are read, or None if the clients cannot be
        computed in batches."""
        if self._graphs is None:
            return None
        try:
            return self._compiler.orders(self._graphs, key)
        except CannotBatchError as error:
            self.give_up(str(error))
            return None

    def _load(self, mode: Mode, key: Key, size: int) -> Kernel:
        assert self._graphs is not None
        return _load_kernel(self._compiler, self._graphs, mode, key, size, self._choice.device)

    def _kernel(self, mode: Mode, key: Key, clients: int) -> Kernel | None:
        """Return the kernel for a key.

        None if it cannot be compiled, does not pay off yet for `clients` in this round, or would
        exceed `most_kernels`.

        Raises:
          CannotBatchError: a vectorised kernel cannot be compiled, or is known to be slower.
        """
        if key in self._kernels:
            return self._kernels[key]
        if self._graphs is None:
            return None
        known = self.known.get(_kind(mode, key)) if self._measures else None
        if known is False:
            if mode is Mode.VECTOR:
                raise CannotBatchError("that takes less time, as was measured before")
            self._kernels[key] = None
            return None
        if self._measures and known is None and not self._may_pay(key, clients):
            self._is_settled = False
            return None
        most = self._limits.most_kernels
        if len(self._kernels) == most:
            self.decisions.append(
                f"clients of other sizes are computed one by one: {most} kinds are compiled"
            )
        if len(self._kernels) >= most:
            self._kernels[key] = None
            return None
        kernel = None
        size = self._size(mode, key)
        try:
            if self._measures and known is None:
                kernel = self._prepared(mode, key, size)
                if kernel is None:
                    self._is_settled = False
                    return None
            else:
                kernel = self._load(mode, key, size)
            self.decisions.append(f"up to {size} clients a call, {_kind(mode, key)}")
            if known:
                self._taken[kernel] = [(0.0, 0.0)] * self._limits.trials
        except CannotBatchError as error:
            if mode is Mode.VECTOR:
                raise
            self.decisions.append(_refusal(mode, str(error)))
        self._kernels[key] = kernel
        return kernel

    def _may_pay(self, key: Key, clients: int) -> bool:
        """Return whether clients of a key have taken as long as compiling for them may take; in
        this round there are `clients` more."""
        seconds = self._spent / max(1, self._done)
        self._waiting[key] = self._waiting.get(key, 0.0) + clients * seconds
        return self._waiting[key] >= self._patience

    def _prepared(self, mode: Mode, key: Key, size: int) -> Kernel | None:
        """Return a kernel that was compiled in the background, or None if it is not ready yet.

        Raises:
          CannotBatchError: it cannot be compiled.
        """
        if key not in self._preparing:
            prepare = functools.partial(self._prepare, mode, key, size)
            self._preparing[key] = in_background(prepare)
        compiling = self._preparing[key]
        return compiling.result() if compiling.done() else None

    def _prepare(self, mode: Mode, key: Key, size: int) -> Kernel:
        """Return a kernel that is compiled, as far as it can be, while clients are computed."""
        begun = time.perf_counter()
        kernel = self._load(mode, key, size)
        with contextlib.suppress(OutOfMemoryError):  # the first call will see it
            kernel.prepare()
        self.compiled(time.perf_counter() - begun)
        return kernel

    def wait(self) -> None:
        """Wait until all kernels are compiled that are being compiled."""
        wait(self._preparing.values())

    def _size(self, mode: Mode, key: Key) -> int:
        """Return the number of clients in the batches of a key."""
        return min(self._sizes[mode], self._room(mode, key), self._most_clients)

    def _room(self, mode: Mode, key: Key) -> int:
        """Return how many clients of a key have room in a call."""
        data = max(1, sum(8 * math.prod(shape) for shape in key.shapes))
        if not self._is_accelerated:
            return max(1, self._limits.most_bytes // data)
        # Beside the data: weights, their changes, and what a step computes of them.
        model = MODELS * 8 * self._count_numbers() if mode is Mode.VECTOR else 0
        return max(1, self._compiler.memory(self._choice.device) // (data + model))

    def run_out(self, batch: Batch) -> None:
        """Use smaller batches, because the memory of the device is not enough for one."""
        if batch.kernel.size == 1:
            self.refuse(batch, "the memory of the device is not enough for one client")
            return
        with self._lock:
            self._kept = None
            self._most_clients = min(self._most_clients, max(1, batch.kernel.size // 2))
            keys = [key for key, own in self._kernels.items() if own is batch.kernel]
            self._kernels = {key: own for key, own in self._kernels.items() if key not in keys}
            self._preparing = {}
            warning = (
                f"{batch.kernel.device} has too little memory for {batch.kernel.size} clients a "
                f"call: from now on there are at most {self._most_clients}"
            )
            if keys:
                self.decisions.append(warning)
                self.warnings.append(warning)

    def refuse(self, batch: Batch, reason: str) -> None:
        """Stop using the kernel of a batch.

        If it loops, its clients are computed one by one from now on; if it is vectorised, kernels
        that loop are tried instead.
        """
        with self._lock:
            self._kept = None
            keys = [key for key, kernel in self._kernels.items() if kernel is batch.kernel]
            self._kernels.update(dict.fromkeys(keys))
            if not keys:
                return
            if batch.kernel.mode is Mode.VECTOR:
                # A loop may be faster.
                self._is_tiny = False
                self._kernels.clear()
            self.decisions.append(_refusal(batch.kernel.mode, reason))

    def failed(self) -> None:
        """Record that a check failed in a batch."""
        decision = "clients of a batch in which a check fails are computed again, one by one"
        with self._lock:
            if decision not in self.decisions:
                self.decisions.append(decision)


def _kind(mode: Mode, key: Key) -> str:
    return f"{mode.value}: {key}"


def _refusal(mode: Mode, reason: str) -> str:
    return f"not {mode.value}: {reason}"


def _clients_in(groups: Sequence[ClientGroup]) -> int:
    return sum(len(group.positions) for group in groups)


def _quotient(pair: tuple[Seconds, Seconds]) -> float:
    """Return the quotient of two times; a coarse clock may measure none."""
    return pair[0] / pair[1] if pair[1] else math.inf
