"""The common part of engines whose workers are other processes: batches, and measured time."""

from __future__ import annotations

import abc
from collections.abc import Collection, Sequence
from typing import Any

from tffc.runtime.batching.planner import Planner
from tffc.runtime.engines.engine import Batching, Cohort, RoundResult
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import Batches
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import SERVER, RemoteSpeed


class RemoteEngine(abc.ABC):
    """Runs rounds of one process: the server's steps here, the clients' work in other processes."""

    def __init__(self, process: Process, batching: Batching) -> None:
        self.process = process
        self._planner = Planner(process.steps, batching)
        self._batching = batching
        self.speed = RemoteSpeed(self._planner.decisions)

    @property
    def _workers(self) -> int | None:
        """The number of workers, if it is known."""
        return None

    @abc.abstractmethod
    def _aggregate(
        self, cohort: Cohort, carried: Any, sent: Any
    ) -> tuple[Sequence[Any], Collection[str]]:
        """Run the clients' work; return the report of each aggregation, and the clients that were
        left out."""

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`."""
        steps, measure = self.process.steps, self.speed.driver.measure
        cohort.check_enough(steps)
        with self.speed.measure_round(len(cohort.clients)):
            with measure(SERVER), showing():
                carried, sent = steps.prepare(state)
            reports, left_out = self._aggregate(cohort, carried, sent)
            cohort.check_enough(steps, len(left_out))
            with measure(SERVER), showing():
                new_state, output = steps.finish(carried, reports)
        skipped = tuple(client for client in cohort.clients if client in left_out)
        return RoundResult(new_state, output, skipped, self._workers, self.speed.parts())

    def explain_speed(self) -> list[str]:
        """See `ExplainsSpeed`."""
        return self.speed.lines(self._workers)

    def _windows(self, clients: tuple[str, ...]) -> tuple[Batches | None, list[tuple[str, ...]]]:
        """Return the numbers for batches and the windows of clients, or None and no windows if no
        batches are made."""
        if not self._planner.makes_batches or self._batching.size is None:
            return None, []
        windows = list(self._planner.windows(clients))
        how = self._batching.compiler, self._batching.precision
        return Batches(self._batching.size, self._planner.first_count, *how), windows
