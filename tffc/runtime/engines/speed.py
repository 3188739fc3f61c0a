"""Measured time of rounds: seconds of work in each part of a round, summed over threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

READ = "reading data"
STACK = "making batches"
ALONE = "computing one client a call"
BATCHED = "computing in batches"
MERGE = "merging sums"
SERVER = "the server's steps"
WAIT = "waiting for workers"
ROUND = "whole rounds"


PARTS = (READ, STACK, ALONE, BATCHED, MERGE, SERVER)
REST = "waiting, and Python between"
OTHER = "handing out work, and Python between"


class Stopwatch:
    """Sums the seconds and the clients of each part of rounds; several threads may use it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.clients: dict[str, int] = defaultdict(int)
        self.occupied = 0.0
        """The seconds in which at least one batch was being computed."""
        self._calls, self._occupied_since = 0, 0.0
        self._lock = threading.Lock()

    def add(self, part: str, seconds: float, clients: int = 0) -> None:
        """Add seconds to a part, and the number of clients that were done in them."""
        with self._lock:
            self.seconds[part] += seconds
            self.clients[part] += clients

    @contextlib.contextmanager
    def measure(self, part: str, clients: int = 0) -> Generator[None]:
        """Add the seconds that the block takes to a part."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(part, time.perf_counter() - begun, clients)

    @contextlib.contextmanager
    def occupying(self) -> Generator[None]:
        """Measure how long devices compute a batch, or take its data to and fro, in the block."""
        with self._lock:
            if not self._calls:
                self._occupied_since = time.perf_counter()
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls:
                    self.occupied += time.perf_counter() - self._occupied_since

    def measured(self, part: str, items: Iterable[T]) -> Iterator[T]:
        """Yield items, and add the seconds that it takes to get them to a part."""
        source = iter(items)
        end: Any = object()
        while True:
            with self.measure(part):
                item = next(source, end)
            if item is end:
                return
            yield item

    def times(self) -> list[float]:
        """Return the seconds and the clients of each part as numbers, for `add_times`."""
        return [amounts[part] for amounts in (self.seconds, self.clients) for part in PARTS]

    def add_times(self, times: Sequence[float]) -> None:
        """Add the result of another stopwatch's `times`; an empty one adds nothing."""
        for part, seconds, clients in zip(PARTS, times, times[len(PARTS) :], strict=False):
            self.add(part, float(seconds), int(clients))

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of each part since `before`, an earlier copy of `seconds`."""
        return {
            part: seconds
            for part in PARTS
            if (seconds := self.seconds.get(part, 0.0) - before.get(part, 0.0)) > 0
        }

    def table(self, rounds: int, workers: int | None, driver: Stopwatch | None = None) -> list[str]:
        """Return lines that say how long each part of a round took.

        `workers` is their number, if it is known.  `driver` is the stopwatch of a process that
        works beside them; if given, it has measured whole rounds.
        """
        whole = (driver or self).seconds[ROUND]
        who = "all" if workers is None else workers
        lines = [f"time of {rounds} round{'s' if rounds > 1 else ''}, of {who} workers together"]
        together = None if workers is None else whole * workers
        lines += self._lines(rounds, together, (*PARTS, REST))
        if driver is not None:
            lines.append("time of the driver beside them")
            lines += driver._lines(rounds, whole, (SERVER, MERGE, WAIT, OTHER))
        if whole and self.occupied and driver is None:
            lines.append(
                f"  devices were busy with batches for {self.occupied / whole:.0%} of the time"
            )
        if whole:
            lines.append(f"  {(driver or self).clients[ROUND] / whole:.3g} clients a second")
        return lines

    def _lines(self, rounds: int, whole: float | None, parts: Sequence[str]) -> Iterator[str]:
        """Yield a line for each part; the last part is the rest of `whole`, if that is known."""
        times = [(part, self.seconds[part]) for part in parts if self.seconds[part]]
        if whole is not None:
            # Not below 0: while one thread makes a batch, the others may compute.
            times.append((parts[-1], max(0.0, whole - sum(seconds for _, seconds in times))))
        for part, seconds in times:
            share = "" if whole is None else f", {seconds / whole if whole else 0:.0%}"
            done = f", {self.clients[part]} clients" if self.clients[part] else ""
            yield f"  {part}: {1e3 * seconds / max(rounds, 1):.1f} ms a round{share}{done}"


class RemoteSpeed:
    """The time of rounds whose workers are other processes, and of the driver.

    `decisions` has the decisions about batches and their reasons, in words.
    """

    def __init__(self, decisions: Iterable[str]) -> None:
        self.driver, self.workers = Stopwatch(), Stopwatch()
        self.decisions = dict.fromkeys(decisions)
        self._rounds = 0
        self._before: dict[str, float] = {}

    @contextlib.contextmanager
    def measure_round(self, clients: int) -> Generator[None]:
        """Measure a round with a number of clients."""
        self._rounds += 1
        self._before = self._seconds()
        with self.driver.measure(ROUND, clients):
            yield

    def take(self, times: Sequence[float], decisions: Iterable[str]) -> None:
        """Add a worker's measurements and decisions."""
        self.workers.add_times(times)
        self.decisions.update(dict.fromkeys(decisions))

    def parts(self) -> dict[str, float]:
        """Return the seconds of each part since the last round began."""
        seconds = self._seconds()
        return {part: seconds[part] - self._before[part] for part in PARTS if seconds[part]}

    def end_round(self, begun: float, clients: int) -> dict[str, float]:
        """Measure a round with a number of clients that began at a time of `perf_counter`, after
        the one before; return the seconds of each part since that."""
        self._rounds += 1
        self.driver.add(ROUND, time.perf_counter() - begun, clients)
        before, self._before = self._before, self._seconds()
        return {
            part: spent
            for part, seconds in self._before.items()
            if (spent := seconds - before.get(part, 0.0)) > 0
        }

    def lines(self, workers: int | None) -> list[str]:
        """Return lines that say where the time went, and why."""
        lines = self.workers.table(self._rounds, workers, self.driver)
        return [*lines, *(f"batching: {line}" for line in self.decisions)]

    def _seconds(self) -> dict[str, float]:
        return {part: self.workers.seconds[part] + self.driver.seconds[part] for part in PARTS}
