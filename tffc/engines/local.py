"""The engine in this process: clients in several threads, memory for those in flight alone.

A round's clients are divided into shards, in their order.  A worker takes a shard, reads its
clients one after another, and accumulates what they give; the accumulators of shards are merged as
a tree.  Shards and tree depend on the number of clients alone, so the result does not depend on
the number of workers.

Secure sums are plain sums here, which keeps no secret; their bounds are checked.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from tffc.engines.engine import Cohort, Outcome
from tffc.engines.process import Process
from tffc.engines.steps import Steps, Together
from tffc.errors import DataError

SHARDS = 32
"""Into how many shards a small cohort is divided, so that there is work for many cores."""

SHARD = 32
"""How many clients are in a shard at most, so that there is something to show soon."""


class LocalEngine:
    """Runs rounds of one process with so many workers, by default one for each core."""

    def __init__(self, process: Process, workers: int | None = None) -> None:
        self.process = process
        self.workers = workers or len(os.sched_getaffinity(0))

    def run_round(self, state: Any, cohort: Cohort) -> Outcome:
        """See `Engine`."""
        steps = self.process.steps
        kept, sent = steps.prepare(state)
        together = Together(steps.aggregations)
        tree = _Tree(lambda first, second: together.merge(first, second, kept))
        skipped: list[str] = []
        zero = together.zero(kept)
        work = _Work(steps, cohort, kept, sent, zero)
        with contextlib.closing(self._finished(work, _shards(cohort.clients))) as finished:
            for shard in finished:
                skipped += shard.skipped
                if shard.taken:
                    tree.add(shard.totals)
        if len(skipped) == len(cohort.clients):
            tree.add(zero)
        new_state, output = steps.finish(kept, together.report(tree.total(), kept))
        return Outcome(new_state, output, tuple(skipped))

    def _finished(self, work: _Work, shards: Iterable[tuple[str, ...]]) -> Generator[_Shard]:
        """Every shard in order, as it is when its clients are done; few of them at a time."""
        if self.workers == 1:
            yield from map(work.run, shards)
            return
        pool = concurrent.futures.ThreadPoolExecutor(self.workers)
        begun: collections.deque[concurrent.futures.Future[_Shard]] = collections.deque()
        try:
            for shard in shards:
                begun.append(pool.submit(work.run, shard))
                if len(begun) > 2 * self.workers:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            work.stopped.set()
            pool.shutdown(cancel_futures=True)


def _shards(clients: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    size = min(SHARD, -(-len(clients) // SHARDS))
    for start in range(0, len(clients), size or 1):
        yield clients[start : start + size]


@dataclasses.dataclass(slots=True)
class _Shard:
    """The accumulators of so many clients, and those that were left out."""

    totals: list[Any]
    taken: int
    skipped: list[str]


class _Work:
    """The clients' part of one round; shards may be run by several threads at once."""

    def __init__(self, steps: Steps, cohort: Cohort, kept: Any, sent: Any, zero: Any) -> None:
        self.stopped = threading.Event()
        self._steps = steps
        self._cohort = cohort
        self._kept = kept
        self._sent = sent
        self._zero = zero
        self._told = threading.Lock()
        self._done = 0
        cohort.progress(0, len(cohort.clients))

    def run(self, clients: tuple[str, ...]) -> _Shard:
        """The shard of these clients; what is there so far, once `stopped` is set."""
        shard = _Shard(self._zero, 0, [])
        for client in clients:
            if self.stopped.is_set():
                break
            try:
                data = self._cohort.source.read(client)
            except DataError:
                if not self._cohort.skip_bad_clients:
                    raise
                shard.skipped.append(client)
                self._tell()
                continue
            self._take(shard, client, data)
            shard.taken += 1
        return shard

    def _take(self, shard: _Shard, client: str, data: Any) -> None:
        if self._steps.client_output_type is None:
            shard.totals = self._steps.absorb(shard.totals, data, self._sent, self._kept, client)
            self._tell()
        else:
            output = self._steps.work(data, self._sent)
            self._tell(lambda: self._cohort.deliver(client, output))

    def _tell(self, deliver: Callable[[], None] = lambda: None) -> None:
        """Delivers something and counts a client; the round's owner is told by one thread at a
        time."""
        with self._told:
            deliver()
            self._done += 1
            self._cohort.progress(self._done, len(self._cohort.clients))


class _Tree:
    """Merges accumulators pairwise as they come, so that few of them are held at a time."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._waiting: list[tuple[int, Any]] = []

    def add(self, accumulator: Any) -> None:
        height = 0
        while self._waiting and self._waiting[-1][0] == height:
            _, earlier = self._waiting.pop()
            accumulator, height = self._merge(earlier, accumulator), height + 1
        self._waiting.append((height, accumulator))

    def total(self) -> Any:
        """Everything merged; at least one accumulator must have been added."""
        _, total = self._waiting.pop()
        while self._waiting:
            _, earlier = self._waiting.pop()
            total = self._merge(earlier, total)
        return total
