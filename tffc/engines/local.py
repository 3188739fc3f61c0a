"""The engine in this process: clients in several threads, memory for those in flight alone.

Workers run clients' work; this thread accumulates what they give, in the order of the clients and
in shards that are merged as a tree.  The tree depends on the number of clients alone, so the
result does not depend on the number of workers.

Secure sums are plain sums here, which keeps no secret; their bounds are checked.
"""

from __future__ import annotations

import collections
import concurrent.futures
import os
from collections.abc import Iterator
from typing import Any

from tffc.engines.engine import Cohort, Outcome
from tffc.engines.process import Process
from tffc.engines.steps import Together
from tffc.errors import DataError

SHARD = 32
"""How many clients one accumulator takes.  Real systems merge many, so this one does too."""

IN_FLIGHT = 4
"""How many clients a worker has been given, or has given back, before more are begun."""


class LocalEngine:
    """Runs rounds of one process with so many workers, by default one for each core."""

    def __init__(self, process: Process, workers: int | None = None) -> None:
        self.process = process
        self.workers = workers or len(os.sched_getaffinity(0))

    def run_round(self, state: Any, cohort: Cohort) -> Outcome:
        """See `Engine`."""
        steps = self.process.steps
        together = Together(steps.aggregations)
        kept, sent = steps.prepare(state)
        tree = _Tree(lambda first, second: together.merge(first, second, kept))
        skipped: list[str] = []
        shard, taken = together.zero(kept), 0
        cohort.progress(0, len(cohort.clients))
        for done, (client, update) in enumerate(self._updates(cohort, sent), 1):
            if isinstance(update, DataError):
                skipped.append(client)
            elif steps.client_output_type is not None:
                cohort.deliver(client, update)
            else:
                shard, taken = together.accumulate(shard, update, kept, client), taken + 1
                if taken % SHARD == 0:
                    tree.add(shard)
                    shard = together.zero(kept)
            cohort.progress(done, len(cohort.clients))
        if taken % SHARD or not taken:
            tree.add(shard)
        new_state, output = steps.finish(kept, together.report(tree.total(), kept))
        return Outcome(new_state, output, tuple(skipped))

    def _updates(self, cohort: Cohort, sent: Any) -> Iterator[tuple[str, Any]]:
        """Each client and what it contributes, in order; or the error in the data of one that is
        to be left out."""

        def work(client: str) -> Any:
            try:
                data = cohort.source.read(client)
            except DataError as error:
                if not cohort.skip_bad_clients:
                    raise
                return error
            return self.process.steps.work(data, sent)

        if self.workers == 1:
            for client in cohort.clients:
                yield client, work(client)
            return
        pool = concurrent.futures.ThreadPoolExecutor(self.workers)
        begun: collections.deque[tuple[str, Any]] = collections.deque()
        try:
            for client in cohort.clients:
                begun.append((client, pool.submit(work, client)))
                if len(begun) >= IN_FLIGHT * self.workers:
                    name, future = begun.popleft()
                    yield name, future.result()
            while begun:
                name, future = begun.popleft()
                yield name, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Tree:
    """Merges accumulators pairwise as they come, so that few of them are held at a time."""

    def __init__(self, merge: Any) -> None:
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
