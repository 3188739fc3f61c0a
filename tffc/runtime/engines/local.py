"""The engine in this process: clients in several threads, only those in flight in memory.

A round's clients are divided into shards, in their order.  A worker takes a shard, reads its
clients one after another, and accumulates their updates.  The accumulators of shards are merged as
a tree, those of two neighbours by the worker that finishes last.  Shards and tree depend only on
the number of clients, so the result does not depend on the number of workers.

Where it pays off, many clients are computed in one call; see `tffc.runtime.batching`.

The bounds of secure sums are checked, but unless sums are masked, nothing is kept secret.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from tffc.backends.forms.buffered import BufferedSteps
from tffc.backends.forms.steps import TupleAggregation
from tffc.runtime.batching.pieces import OneByOne, PlannedPiece, place
from tffc.runtime.batching.planner import Planner
from tffc.runtime.data.groups import GroupedSource
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.contributions import Contributor
from tffc.runtime.engines.delays import CONSTANT, Delays
from tffc.runtime.engines.engine import ONE_A_CALL, Batching, Cohort, RoundResult, processor_count
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.read_ahead import ReadAhead, Waits
from tffc.runtime.engines.shards import ClientWork, Merge, shards_of
from tffc.runtime.engines.showing import showing, without_logs
from tffc.runtime.engines.simulated import SimulatedArrivals
from tffc.runtime.engines.speed import ROUND, SERVER, STACK, Stopwatch

T = TypeVar("T")

GRACE = 1.0
"""How many seconds an interrupted round waits for clients' work in other threads to end."""


class LocalEngine:
    """Runs rounds of one process with a number of workers, by default one for each core.

    The thread that calls `run_round` is one of them; the others live as long as the engine.  With
    `masks_sums`, secure sums are masked sums between the clients of a round; with `shows_clients`,
    clients' code prints, and its errors have their whole texts.
    """

    def __init__(
        self,
        process: Process,
        workers: int | None = None,
        batching: Batching = ONE_A_CALL,
        *,
        masks_sums: bool = False,
        shows_clients: bool = False,
    ) -> None:
        self.process = process
        self.shows_clients = shows_clients
        self.workers = workers or processor_count()
        self._masks_sums = masks_sums
        self.planner = Planner(process.steps, batching, self.workers)
        if masks_sums:
            self.planner.give_up("secure sums are masked")
        self.stopwatch = Stopwatch()
        self._rounds = 0
        self._others, self._readers = _Threads(), _Threads()
        self._waits = Waits()

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`."""
        steps = self.process.steps
        cohort.check_enough(steps)
        if self._masks_sums:
            steps = self.process.masked_steps(cohort.clients)
        self._rounds += 1
        begun, before = time.perf_counter(), dict(self.stopwatch.seconds)
        with self.stopwatch.measure(SERVER), showing():
            carried, sent = steps.prepare(state)
        aggregation = TupleAggregation(steps.aggregations)
        source: ClientSource = cohort.source
        ahead = ReadAhead(source, cohort.clients, self._waits, self._readers.call)
        if not isinstance(source, GroupedSource):
            source = ahead
        alone = ClientWork(
            steps,
            source,
            carried,
            sent,
            cohort.skip_bad_clients,
            self.planner,
            self.stopwatch,
            shows=self.shows_clients,
        )
        work = _Work(alone, cohort, source, self.planner, self.stopwatch)
        others: list[Future[None]] = []
        try:
            with without_logs(self.shows_clients):
                for _ in range(min(self.workers, len(cohort.clients)) - 1):
                    others.append(self._others.call(work.run_aside, len(others) + 1))
                work.run()
                wait(others)
        except BaseException:
            # An interruption.  A thread that does not return in time is abandoned.
            work.stop()
            if wait(others, GRACE).not_done:
                self._others = _Threads()
            self._readers = _Threads()
            raise
        finally:
            ahead.close()
        totals = work.totals()
        cohort.check_enough(steps, len(work.skipped()))
        with self.stopwatch.measure(SERVER), showing():
            reports = aggregation.report(totals, carried)
            new_state, output = steps.finish(carried, reports)
        self.stopwatch.add(ROUND, time.perf_counter() - begun, len(cohort.clients))
        parts = self.stopwatch.since(before)
        known = dict(self.planner.known)
        warnings = tuple(self.planner.warnings)
        self.planner.warnings.clear()
        return RoundResult(
            new_state, output, work.skipped(), self.workers, parts, known, warnings=warnings
        )

    def arrivals(
        self, steps: BufferedSteps, cohort: Cohort, delays: Delays | None, seed: int
    ) -> SimulatedArrivals:
        """See `BufferedEngine`; contributions arrive in simulated time."""

        def contributor(state: Any) -> Contributor:
            with self.stopwatch.measure(SERVER), showing():
                carried, sent = steps.group.prepare(state)
            return Contributor(
                steps.group,
                cohort.source,
                carried,
                sent,
                cohort.skip_bad_clients,
                self.stopwatch,
                shows=self.shows_clients,
            )

        return SimulatedArrivals(
            contributor, delays or CONSTANT, seed, self.workers, self._others.call, self.stopwatch
        )

    def explain_speed(self) -> list[str]:
        """See `ExplainsSpeed`; the times are those of all rounds so far."""
        lines = self.stopwatch.table(self._rounds, self.workers)
        return [*lines, *(f"batching: {line}" for line in self.planner.reasons())]


class _Threads:
    """Threads that wait for calls, and end with this object.

    They are daemons, unlike those of Python's executors, so that one that hangs in a user's
    function does not keep the process from exiting.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._count = 0

    def __del__(self) -> None:
        for _ in range(self._count):
            self._calls.put(None)

    def call(self, function: Callable[[], T], threads: int) -> Future[T]:
        """Call a function in one of at least `threads` threads; return its future result."""
        while self._count < threads:
            serve = threading.Thread(target=_serve, args=(self._calls,), daemon=True)
            serve.start()
            self._count += 1
        done: Future[T] = Future()
        self._calls.put((function, done))
        return done


_Call = tuple[Callable[[], Any], Future[Any]]


def _serve(calls: queue.SimpleQueue[_Call | None]) -> None:
    while _serve_one(calls):
        pass


def _serve_one(calls: queue.SimpleQueue[_Call | None]) -> bool:
    """Make the next call; return False if there are no more.

    This is a function of its own so that a waiting thread keeps no references to its last call.
    """
    call = calls.get()
    if call is None:
        return False
    function, done = call
    try:
        done.set_result(function())
    except BaseException as error:  # noqa: BLE001  (raised where the result is read)
        done.set_exception(error)
    return True


class _Work:
    """The clients' part of one round."""

    def __init__(
        self,
        work: ClientWork,
        cohort: Cohort,
        source: ClientSource,
        planner: Planner,
        stopwatch: Stopwatch,
    ) -> None:
        self._cohort = cohort
        self._stopwatch = stopwatch
        self._clients = work
        clients = cohort.clients
        self._merges = _Merges(self._clients.merge)
        if planner.makes_batches:
            self._pieces = planner.pieces(cohort, source)
        else:
            self._pieces = place([OneByOne(shard)] for shard in shards_of(clients))
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
            number, placed = taken
            try:
                goes_on = functools.partial(self._goes_on, number)
                self._merges.add(placed, self._clients.run(placed.piece, self._tell, goes_on))
            except Exception as error:  # noqa: BLE001  (raised by `totals`)
                self._fail(number, error)

    def _goes_on(self, number: int) -> bool:
        return number < self._end

    def _next(self) -> tuple[int, PlannedPiece] | None:
        """Return the next piece and its number; None if there is none, or the work has ended."""
        with self._taking:
            number, self._number = self._number, self._number + 1
            if number >= self._end:
                return None
            try:
                with self._stopwatch.measure(STACK):
                    placed = next(self._pieces, None)
            except Exception as error:  # noqa: BLE001  (raised by `totals`)
                self._fail(number, error)
                return None
        return None if placed is None else (number, placed)

    def run_aside(self) -> None:
        """Do what `run` does in another thread, and record any exception for `totals`."""
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001  (raised by `totals`)
            self._fail(-1, error)

    def stop(self) -> None:
        """End the work of all threads before their next clients."""
        self._end = 0

    def totals(self) -> Any:
        """Return the accumulators of all clients, when all threads are done.

        If a piece failed, raises the error of the first one that did.
        """
        if self._failure is not None:
            raise self._failure
        total = self._merges.total()
        return self._clients.zero if total is None else total

    def skipped(self) -> tuple[str, ...]:
        """Return the clients that were left out."""
        if not self._skipped:
            return ()
        return tuple(client for client in self._cohort.clients if client in self._skipped)

    def _tell(self, clients: Sequence[str], outputs: Sequence[Any] | None) -> None:
        """Deliver clients' final values and count the clients, in one thread at a time."""
        with self._lock:
            if outputs is None:
                self._skipped.update(clients)
            for client, output in zip(clients, outputs or (), strict=bool(outputs)):
                self._cohort.deliver(client, output)
            self._done += len(clients)
            self._cohort.progress(self._done, len(self._cohort.clients))

    def _fail(self, number: int, error: BaseException) -> None:
        """End the work from a piece on; earlier pieces continue, and may fail too."""
        with self._lock:
            if number < self._end:
                self._end, self._failure = number, error


class _Merges:
    """Merges accumulators as they arrive, so that few are held at a time: those of a window in
    order, and those of windows pairwise.

    Several threads may call `add`.  None is the accumulator of no clients.
    """

    def __init__(self, merge: Merge) -> None:
        self._merge = merge
        self._windows: dict[int, _Window] = {}
        self._waiting: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()

    def add(self, placed: PlannedPiece, accumulator: Any) -> None:
        """Add the accumulator of a piece."""
        with self._lock:
            window = self._windows.setdefault(placed.window, _Window())
            window.waiting[placed.number] = accumulator
            if placed.is_last:
                window.count = placed.number + 1
            while window.done in window.waiting:
                following = window.waiting.pop(window.done)
                window.total = self._merge(window.total, following)
                window.done += 1
            if window.done != window.count:
                return
            del self._windows[placed.window]
        self._add_window(placed.window, window.total)

    def _add_window(self, number: int, accumulator: Any) -> None:
        for height in itertools.count():
            with self._lock:
                if (height, number ^ 1) not in self._waiting:
                    self._waiting[height, number] = accumulator
                    return
                neighbour = self._waiting.pop((height, number ^ 1))
            two = (neighbour, accumulator) if number % 2 else (accumulator, neighbour)
            accumulator = self._merge(*two)
            number //= 2

    def total(self) -> Any:
        """Return the accumulator of everything that was added."""
        total: Any = None
        # Only subtrees without a neighbour are left.  The lower ones hold later windows, and are
        # merged first.
        for at in sorted(self._waiting):
            total = self._merge(self._waiting[at], total)
        return total


@dataclasses.dataclass(slots=True)
class _Window:
    """The accumulators of the pieces of a window.

    `total` is that of the first `done` pieces, `waiting` has those of later ones, and `count` is
    the number of pieces once it is known.
    """

    waiting: dict[int, Any] = dataclasses.field(default_factory=dict[int, Any])
    done: int = 0
    count: int | None = None
    total: Any = None
