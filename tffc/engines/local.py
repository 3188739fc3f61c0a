"""The engine in this process: clients in several threads, memory for those in flight alone.

A round's clients are divided into shards, in their order.  A worker takes a shard, reads its
clients one after another, and accumulates what they give; the accumulators of shards are merged as
a tree, those of two neighbours by the worker that comes second.  Shards and tree depend on the
number of clients alone, so the result does not depend on the number of workers.

Where it pays, clients are computed many in a call; see `tffc.engines.batching`.

Secure sums are plain sums here, which keeps no secret, unless they are masked sums; their bounds
are checked.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from tffc.backends.forms.steps import CannotBatchError, RoundSteps, TupleAggregation
from tffc.data.groups import GroupedSource
from tffc.data.source import ClientSource
from tffc.engines.batching.planner import LEAST_ALONE, Batch, OneByOne, Piece, Planner
from tffc.engines.engine import ONE_A_CALL, Batching, Cohort, RoundResult
from tffc.engines.process import Process
from tffc.engines.read_ahead import ReadAhead, Waits
from tffc.engines.speed import ALONE, BATCHED, MERGE, READ, ROUND, SERVER, STACK, Stopwatch
from tffc.errors import DataError, ExecutionError

SHARDS = 32
"""Into how many shards a small cohort is divided, so that there is work for many cores."""

SHARD = 32
"""How many clients are in a shard at most, so that there is something to show soon."""


GRACE = 1.0
"""How many seconds an interrupted round waits for clients' work that goes on in other threads."""


class LocalEngine:
    """Runs rounds of one process with so many workers, by default one for each core.

    The thread that asks for a round is one of them; the others live as long as the engine.  With
    `masks_sums`, secure sums are masked sums between the clients of a round.
    """

    def __init__(
        self,
        process: Process,
        workers: int | None = None,
        batching: Batching = ONE_A_CALL,
        *,
        masks_sums: bool = False,
    ) -> None:
        self.process = process
        self.workers = workers or len(os.sched_getaffinity(0))
        self._masks_sums = masks_sums
        self.planner = Planner(process, batching)
        if masks_sums:
            self.planner.give_up("secure sums are masked")
        self.stopwatch = Stopwatch()
        self._rounds = 0
        self._others, self._readers = _Threads(), _Threads()
        self._waits = Waits()

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`."""
        steps = self.process.steps
        if self._masks_sums:
            steps = self.process.masked_steps(cohort.clients)
        self._rounds += 1
        begun, before = time.perf_counter(), dict(self.stopwatch.seconds)
        with self.stopwatch.measure(SERVER):
            kept, sent = steps.prepare(state)
        aggregation = TupleAggregation(steps.aggregations)
        source: ClientSource = cohort.source
        ahead = ReadAhead(source, cohort.clients, self._waits, self._readers.call)
        if not isinstance(source, GroupedSource):
            source = ahead
        work = _Work(steps, aggregation, cohort, source, kept, sent, self.planner, self.stopwatch)
        others: list[threading.Event] = []
        try:
            for _ in range(min(self.workers, work.most_workers) - 1):
                others.append(self._others.call(work.run_aside, len(others) + 1))
            work.run()
            for other in others:
                other.wait()
        except BaseException:
            # An interruption.  A thread that does not return is left to itself.
            work.stop()
            deadline = time.monotonic() + GRACE
            if not all(other.wait(max(0, deadline - time.monotonic())) for other in others):
                self._others = _Threads()
            self._readers = _Threads()
            raise
        finally:
            ahead.close()
        totals = work.totals()
        with self.stopwatch.measure(SERVER):
            reports = aggregation.report(totals, kept)
            new_state, output = steps.finish(kept, reports)
        self.stopwatch.add(ROUND, time.perf_counter() - begun, len(cohort.clients))
        parts = self.stopwatch.since(before)
        known = dict(self.planner.known)
        return RoundResult(new_state, output, work.skipped(), self.workers, parts, known)

    def explain_speed(self) -> list[str]:
        """Return in lines where the time of the rounds so far has gone, how clients were computed
        and why."""
        lines = self.stopwatch.table(self._rounds, self.workers)
        return [*lines, *(f"batching: {line}" for line in self.planner.told)]


class _Threads:
    """Threads that wait for something to call, and end with this object.

    They are daemons, so that one that hangs in a function of the user's does not keep the process
    from its end, as those of Python's executors do.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], None], threading.Event] | None] = (
            queue.SimpleQueue()
        )
        self._count = 0

    def __del__(self) -> None:
        for _ in range(self._count):
            self._calls.put(None)

    def call(self, function: Callable[[], None], threads: int) -> threading.Event:
        """Call a function, which raises nothing, in one of at least so many threads.

        Returns what is set when it has returned.
        """
        while self._count < threads:
            serve = threading.Thread(target=_serve, args=(self._calls,), daemon=True)
            serve.start()
            self._count += 1
        done = threading.Event()
        self._calls.put((function, done))
        return done


def _serve(calls: queue.SimpleQueue[tuple[Callable[[], None], threading.Event] | None]) -> None:
    while (call := calls.get()) is not None:
        function, done = call
        function()
        del call, function  # so that nothing of a round is kept until the next
        done.set()


class _Work:
    """The clients' part of one round."""

    def __init__(
        self,
        steps: RoundSteps,
        aggregation: TupleAggregation,
        cohort: Cohort,
        source: ClientSource,
        kept: Any,
        sent: Any,
        planner: Planner,
        stopwatch: Stopwatch,
    ) -> None:
        self._steps = steps
        self._cohort = cohort
        self._source = source
        self._kept = kept
        self._sent = sent
        self._planner = planner
        self._stopwatch = stopwatch
        self._zero = aggregation.zero(kept)
        clients = cohort.clients
        self.most_workers = len(clients)

        def merge(one: Any, two: Any) -> Any:
            with stopwatch.measure(MERGE):
                return aggregation.merge(one, two, kept)

        if planner.makes_batches:
            self._tree: _Tree | _Chain = _Chain(merge)
            self._pieces = planner.pieces(cohort, source)
        else:
            size = min(SHARD, -(-len(clients) // SHARDS))
            starts = range(0, len(clients), size or 1)
            self._tree = _Tree(len(starts), merge)
            self._pieces = (OneByOne(clients[start : start + size]) for start in starts)
        self._number = 0
        self._taking = threading.Lock()
        self._end = len(clients)
        self._failure: BaseException | None = None
        self._skipped: set[str] = set()
        self._done = 0
        self._lock = threading.Lock()
        cohort.progress(0, len(clients))

    def run(self) -> None:
        """Take pieces until there are no more; several threads may do so at once."""
        while (taken := self._next()) is not None:
            number, piece = taken
            try:
                total = self._run_piece(number, piece)
                self._tree.add(number, total)
            except Exception as error:  # noqa: BLE001  (it is raised by `totals`)
                self._fail(number, error)

    def _next(self) -> tuple[int, Piece] | None:
        """Return the next piece and its number; None if there is none, or the work has ended."""
        with self._taking:
            number, self._number = self._number, self._number + 1
            if number >= self._end:
                return None
            try:
                with self._stopwatch.measure(STACK):
                    piece = next(self._pieces, None)
            except Exception as error:  # noqa: BLE001  (it is raised by `totals`)
                self._fail(number, error)
                return None
        return None if piece is None else (number, piece)

    def run_aside(self) -> None:
        """Take shards as a thread of its own, which has nobody to raise anything to."""
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001  (it is raised by `totals`)
            self._fail(-1, error)

    def stop(self) -> None:
        """End the work of all threads before their next clients."""
        self._end = 0

    def totals(self) -> Any:
        """Return the accumulators of all clients, once there are no more shards.

        Raises what the first shard that failed did.
        """
        if self._failure is not None:
            raise self._failure
        return self._zero if self._tree.total is None else self._tree.total

    def skipped(self) -> tuple[str, ...]:
        """Return the clients that were left out."""
        return tuple(client for client in self._cohort.clients if client in self._skipped)

    def _run_piece(self, number: int, piece: Piece) -> Any:
        """Return the accumulators of a piece; None if all its clients are left out.

        A batch in which something does not hold is computed again, one client at a time.
        """
        if isinstance(piece, Batch) and (totals := self._run_batch(piece)) is not None:
            return totals
        return self._run_shard(number, piece.clients)

    def _run_batch(self, batch: Batch) -> Any:
        steps = self._steps.batches
        assert steps is not None, "there are batches where they can be computed"
        zero, sent = steps.graph_accumulator(self._zero), steps.graph_sent(self._sent)
        begun = time.perf_counter()
        try:
            computed = batch.kernel.compute(zero, sent, batch.tensors, len(batch.clients))
        except CannotBatchError as error:
            self._planner.refuse(batch, str(error))
            return None
        if computed is None:
            self._planner.failed()
            return None
        seconds = time.perf_counter() - begun
        self._stopwatch.add(BATCHED, seconds, len(batch.clients))
        accumulator, given = computed
        totals = steps.totals(accumulator, given, batch.clients, self._kept)
        self._planner.measured(batch, seconds, lambda: self._time_alone(batch.clients, seconds))
        outputs = steps.outputs(given)

        def deliver() -> None:
            for client, output in zip(batch.clients, outputs, strict=bool(outputs)):
                self._cohort.deliver(client, output)

        self._tell(len(batch.clients), deliver)
        return totals

    def _time_alone(self, clients: tuple[str, ...], seconds: float) -> float:
        """Return the seconds that one of these clients takes by itself.

        So many of them are computed as take about as long as they all did together, for nothing:
        what can be computed in a batch has no effects.
        """
        spent, done = 0.0, 0
        stride = max(1, len(clients) // LEAST_ALONE)
        for client in (each for first in range(stride) for each in clients[first::stride]):
            data = self._source.read(client)
            begun = time.perf_counter()
            self._steps.work_and_accumulate(self._zero, data, self._sent, self._kept, client)
            spent, done = spent + time.perf_counter() - begun, done + 1
            if spent > seconds and done >= LEAST_ALONE:
                break
        return spent / done

    def _run_shard(self, number: int, clients: tuple[str, ...]) -> Any:
        totals: Any = None
        read = computed = 0.0
        done = 0
        for client in clients:
            if number >= self._end:
                break
            begun = time.perf_counter()
            try:
                data = self._source.read(client)
            except DataError:
                if not self._cohort.skip_bad_clients:
                    raise
                self._skipped.add(client)
                self._tell()
                continue
            between = time.perf_counter()
            try:
                totals = self._take(self._zero if totals is None else totals, client, data)
            except ExecutionError as error:
                if f"client {client}" not in error.message:
                    error.notes += (f"it was at work on the data of client {client}",)
                raise
            read, computed = read + between - begun, computed + time.perf_counter() - between
            done += 1
        self._stopwatch.add(READ, read)
        self._stopwatch.add(ALONE, computed, done)
        self._planner.measured_alone(done, computed)
        return totals

    def _take(self, totals: Any, client: str, data: Any) -> Any:
        if self._steps.client_output_type is None:
            totals = self._steps.work_and_accumulate(totals, data, self._sent, self._kept, client)
            self._tell()
        else:
            output = self._steps.work(data, self._sent)
            self._tell(1, lambda: self._cohort.deliver(client, output))
        return totals

    def _tell(self, clients: int = 1, deliver: Callable[[], None] = lambda: None) -> None:
        """Deliver something and count clients; the round's owner is told by one thread at a
        time."""
        with self._lock:
            deliver()
            self._done += clients
            self._cohort.progress(self._done, len(self._cohort.clients))

    def _fail(self, number: int, error: BaseException) -> None:
        """End the work from a shard on; those before it go on, and may fail too."""
        with self._lock:
            if number < self._end:
                self._end, self._failure = number, error


class _Tree:
    """Merges so many accumulators pairwise as they come, so that few of them are held at a time.

    Several threads may add to it.  `total` is there when all were added.
    """

    def __init__(self, count: int, merge: Callable[[Any, Any], Any]) -> None:
        self._count = count
        self._merge = merge
        self._waiting: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()
        self.total: Any = None

    def add(self, number: int, accumulator: Any) -> None:
        """Add the accumulator of this number; None is that of nothing."""
        height, width = 0, self._count
        while width > 1:
            if number ^ 1 < width:
                with self._lock:
                    if (height, number ^ 1) not in self._waiting:
                        self._waiting[height, number] = accumulator
                        return
                    neighbour = self._waiting.pop((height, number ^ 1))
                two = (neighbour, accumulator) if number % 2 else (accumulator, neighbour)
                accumulator = self._merged(*two)
            height, number, width = height + 1, number // 2, -(-width // 2)
        self.total = accumulator

    def _merged(self, first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return self._merge(first, second)


class _Chain:
    """Merges accumulators, of which it is not known how many there are, one after another.

    Several threads may add to it.  `total` is that of the first ones of which all have been added.
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._waiting: dict[int, Any] = {}
        self._count = 0
        self._lock = threading.Lock()
        self.total: Any = None

    def add(self, number: int, accumulator: Any) -> None:
        """Add the accumulator of this number; None is that of nothing."""
        with self._lock:
            self._waiting[number] = accumulator
            while self._count in self._waiting:
                following = self._waiting.pop(self._count)
                self._count += 1
                if self.total is None or following is None:
                    self.total = following if self.total is None else self.total
                else:
                    self.total = self._merge(self.total, following)
