"""A worker's part of a round, wherever it runs: computing clients, folding and merging updates.

A shard returns the accumulators of its clients and has no other effect, so it may be repeated.  An
error of tffc is returned as a result too, because repeating the shard would not help.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, RoundSteps, TupleAggregation
from tffc.runtime.batching.choices import AUTO, FULL
from tffc.runtime.batching.kernels import OutOfMemoryError, RoundValues
from tffc.runtime.batching.pieces import Batch, OneByOne, Piece
from tffc.runtime.batching.planner import Planner
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.encoding import decode, encode, error_from_bytes, error_to_bytes
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.showing import client_code, showing, without_logs
from tffc.runtime.engines.speed import ALONE, BATCHED, MERGE, READ, STACK, Stopwatch
from tffc.support.errors import DataError, ExecutionError, TffcError

SHARDS = 32
"""The number of shards of a small cohort, so that many cores have work."""

SHARD = 32
"""The most clients in a shard, so that progress can be shown soon."""

LEAST_ALONE = 8
"""How many clients of a batch are also computed one by one while it is measured."""

Merge: TypeAlias = Callable[[Any, Any], Any]

Tell: TypeAlias = Callable[[Sequence[str], Sequence[Any] | None], None]
"""A function that is called with clients that are done, and with their outputs (empty if they
have none), or None if the clients are left out."""


def shards_of(clients: Sequence[str], most: int | None = None) -> list[tuple[str, ...]]:
    """Divide the clients of a round, computed one in each call, into shards of at most `most`."""
    size = min(most or SHARD, -(-len(clients) // SHARDS)) or 1
    return [tuple(clients[at : at + size]) for at in range(0, len(clients), size)]


class ShardResult(NamedTuple):
    """The result of a shard.

    It has the accumulators (None if there are none), the clients' final values, the clients left
    out, the error that ended the shard, if any, and the seconds that it took.  `times` divides them
    into parts (see `Stopwatch.times`); `decisions` are those about batches.  After `from_bytes`,
    the accumulators are still encoded.
    """

    totals: Any
    outputs: Sequence[tuple[str, Any]] = ()
    skipped: Sequence[str] = ()
    error: TffcError | None = None
    seconds: float = 0.0
    times: Sequence[float] = ()
    decisions: Sequence[str] = ()

    def to_bytes(self) -> bytes:
        """Encode the result."""
        outputs = [(os.fsencode(client), output) for client, output in self.outputs]
        error = None if self.error is None else error_to_bytes(self.error)
        skipped = list(map(os.fsencode, self.skipped))
        times = np.array([self.seconds, *self.times])
        decisions = [line.encode() for line in self.decisions]
        return encode((encode(self.totals), outputs, skipped, error, times, decisions))

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardResult:
        """Restore a result from the bytes of `to_bytes`; the accumulators stay encoded."""
        totals, outputs, skipped, error, times, decisions = decode(data)
        seconds, *times = times.tolist()
        return cls(
            totals,
            [(os.fsdecode(client), output) for client, output in outputs],
            list(map(os.fsdecode, skipped)),
            None if error is None else error_from_bytes(error),
            seconds,
            times,
            [line.decode() for line in decisions],
        )


class Batches(NamedTuple):
    """The number of clients that one call computes, and that of the clients in the first round;
    what compiles calls, and in which precision."""

    size: int
    clients: int
    compiler: str = AUTO
    precision: str = FULL


class WindowPlanner:
    """Plans the work of windows of clients, in batches if `batches` is given.

    The plan of a window does not depend on earlier windows.
    """

    def __init__(self, steps: RoundSteps, batches: Batches | None) -> None:
        self.planner = None
        if batches:
            batching = Batching(
                batches.size, compiler=batches.compiler, precision=batches.precision
            )
            self.planner = Planner(steps, batching)
        self._batches = batches
        self._decisions: dict[str, None] = {}
        self._known = 0

    def pieces(
        self, source: ClientSource, clients: tuple[str, ...], stopwatch: Stopwatch
    ) -> Iterator[Piece]:
        """Yield the work of a window."""
        if self.planner is None or self._batches is None:
            yield OneByOne(clients)
            return
        self.planner.forget()
        window = self.planner.window(source, clients, self._batches.clients)
        yield from stopwatch.measured(STACK, window)
        self._decisions.update(dict.fromkeys(self.planner.decisions))

    def news(self) -> list[str]:
        """Return the decisions since the last call."""
        decisions = list(self._decisions)[self._known :]
        self._known += len(decisions)
        return decisions


class ClientWork:
    """The clients' part of one round in this process, with one or many clients in each call.

    With `skip_bad`, clients whose data cannot be read are left out; otherwise such a client ends
    the work.  `planner` receives measurements; `zero` is the accumulator of no clients, and `merge`
    merges two accumulators (see `merging`).  With `shows`, clients' code may show their values.
    """

    def __init__(
        self,
        steps: RoundSteps,
        source: ClientSource,
        carried: Any,
        sent: Any,
        skip_bad: bool,
        planner: Planner | None = None,
        stopwatch: Stopwatch | None = None,
        *,
        shows: bool = False,
    ) -> None:
        self.shows = shows
        self._steps = steps
        self._source = source
        self._carried = carried
        self._sent = sent
        self._skip_bad = skip_bad
        self._planner = planner
        self._stopwatch = stopwatch or Stopwatch()
        with showing():
            self.zero = TupleAggregation(steps.aggregations).zero(carried)
        self.merge = merging(steps, carried, self._stopwatch, shows=shows)

    @functools.cached_property
    def _values(self) -> RoundValues:
        batches = self._steps.batches
        assert batches is not None, "there are batches where they can be computed"
        return RoundValues(batches.graph_accumulator(self.zero, self._carried), self._sent)

    def run(self, piece: Piece, tell: Tell, goes_on: Callable[[], bool] = lambda: True) -> Any:
        """Return the accumulators of a piece; None if all clients are left out or the round does
        not aggregate.

        A batch with a failed check is computed again, one client at a time.  `goes_on` is called
        before each client, and once it returns False, no more clients are read.

        Raises:
          DataError: the data of a client cannot be read.
          ExecutionError: the work of a client fails.
        """
        if isinstance(piece, Batch):
            with showing(self.shows):
                totals = self._run_batch(piece, tell)
            if totals is not None:
                return totals
        totals: Any = None
        read = computed = 0.0
        done = 0
        for client in piece.clients:
            if not goes_on():
                break
            begun = time.perf_counter()
            try:
                data = self._source.read(client)
            except DataError:
                if not self._skip_bad:
                    raise
                tell((client,), None)
                continue
            between = time.perf_counter()
            try:
                totals = self._take(self.zero if totals is None else totals, client, data, tell)
            except ExecutionError as error:
                if f"client {client}" not in error.message:
                    note = f"it was at work on the data of client {client}"
                    error.notes += (note,)
                    if error.whole is not None:
                        error.whole.notes += (note,)
                raise
            read, computed = read + between - begun, computed + time.perf_counter() - between
            done += 1
        self._stopwatch.add(READ, read)
        self._stopwatch.add(ALONE, computed, done)
        if self._planner is not None:
            self._planner.measured_alone(done, computed)
        return totals

    def _take(self, totals: Any, client: str, data: Any, tell: Tell) -> Any:
        steps = self._steps
        with showing(self.shows), client_code():
            totals, output = steps.work_and_accumulate(
                totals, data, self._sent, self._carried, client
            )
        tell((client,), () if steps.client_output_type is None else (output,))
        return totals if steps.aggregates else None

    def _run_batch(self, batch: Batch, tell: Tell) -> Any:
        steps, planner = self._steps.batches, self._planner
        assert steps is not None, "there are batches where they can be computed"
        assert planner is not None, "a planner made the batch"
        begun = time.perf_counter()
        try:
            with client_code(), self._stopwatch.occupying():
                computed = batch.kernel.compute(self._values, batch.tensors, len(batch.clients))
        except OutOfMemoryError:
            planner.run_out(batch)
            return None
        except CannotBatchError as error:
            planner.refuse(batch, str(error))
            return None
        if computed is None:
            planner.failed()
            return None
        seconds = time.perf_counter() - begun
        self._stopwatch.add(BATCHED, seconds, len(batch.clients))
        apart, clients = computed.apart, batch.clients
        try:
            totals = steps.totals(self.zero, computed.accumulator, apart, clients, self._carried)
        except ExecutionError:
            planner.failed()
            return None
        if computed.compiled:
            planner.compiled(seconds)
        else:
            planner.measured(batch, seconds, lambda: self.time_alone(clients, seconds))
        has_outputs = self._steps.client_output_type is not None
        tell(clients, [output for *_, output in apart] if has_outputs else ())
        return totals

    def time_alone(self, clients: Sequence[str], seconds: float) -> float:
        """Return the seconds that one of these clients takes when computed alone.

        It computes clients and discards the results, for about `seconds`.  This is safe because
        work that can be batched has no side effects.
        """
        spent, done = 0.0, 0
        stride = max(1, len(clients) // LEAST_ALONE)
        for client in (client for first in range(stride) for client in clients[first::stride]):
            data = self._source.read(client)
            begun = time.perf_counter()
            with client_code():
                self._steps.work_and_accumulate(self.zero, data, self._sent, self._carried, client)
            spent, done = spent + time.perf_counter() - begun, done + 1
            if spent > seconds and done >= LEAST_ALONE:
                break
        return spent / done


def run_shards(work: ClientWork, shards: Iterable[Iterable[Piece]]) -> ShardResult:
    """Return the result of neighbouring shards, up to the first error if there is one.

    The pieces of a shard are merged in order, and the shards pairwise.  So the result does not
    depend on the number of shards in a call, provided it is a power of two.
    """
    begun = time.perf_counter()
    outputs: list[tuple[str, Any]] = []
    skipped: list[str] = []

    def tell(clients: Sequence[str], values: Sequence[Any] | None) -> None:
        if values is None:
            skipped.extend(clients)
        else:
            outputs.extend(zip(clients, values, strict=bool(values)))

    def totals() -> Iterator[Any]:
        for pieces in shards:
            total: Any = None
            for piece in pieces:
                total = work.merge(total, work.run(piece, tell))
            yield total

    try:
        with without_logs(work.shows):
            total = merge_pairwise(totals(), work.merge)
    except TffcError as error:
        return ShardResult(None, outputs, skipped, error)
    return ShardResult(total, outputs, skipped, None, time.perf_counter() - begun)


def merging(
    steps: RoundSteps, carried: Any, stopwatch: Stopwatch | None = None, *, shows: bool = False
) -> Merge:
    """Return a function that merges two accumulators, where None stands for no clients.

    An accumulator may be of one client, so only with `shows` may code show it.
    """
    aggregation = TupleAggregation(steps.aggregations)
    measure = (stopwatch or Stopwatch()).measure

    def merge(first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        with measure(MERGE), showing(shows), client_code():
            return aggregation.merge(first, second, carried)

    return merge


def merged(steps: RoundSteps, carried: Any, parts: Iterable[Any]) -> Any:
    """Merge accumulators as `merge_pairwise` does."""
    return merge_pairwise(parts, merging(steps, carried))


def merge_pairwise(parts: Iterable[Any], merge: Merge) -> Any:
    """Merge neighbours pairwise, then the results, until one is left: the local engine's tree.

    Without parts the result is None, as for no clients.  Parts are taken one at a time, and only as
    many accumulators are held as the tree is high.
    """
    # The number of parts merged in each: falling powers of two.
    merges: list[tuple[int, Any]] = []
    for part in parts:
        count, value = 1, part
        while merges and merges[-1][0] == count:
            value = merge(merges.pop()[1], value)
            count *= 2
        merges.append((count, value))
    total: Any = None
    while merges:
        total = merge(merges.pop()[1], total)
    return total
