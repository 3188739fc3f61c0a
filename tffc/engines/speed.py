"""Where the time of rounds goes: seconds of work, summed over threads, by what they were for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping

READ = "reading data"
STACK = "making batches"
ALONE = "computing one client a call"
BATCHED = "computing in batches"
MERGE = "merging sums"
SERVER = "the server's steps"
ROUND = "whole rounds"


class Stopwatch:
    """Sums the seconds and the clients of each part of rounds; several threads may use it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.clients: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def add(self, part: str, seconds: float, clients: int = 0) -> None:
        """Add seconds to a part, in which so many clients were done."""
        with self._lock:
            self.seconds[part] += seconds
            self.clients[part] += clients

    @contextlib.contextmanager
    def measure(self, part: str, clients: int = 0) -> Iterator[None]:
        """Add the seconds that the block takes to a part."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(part, time.perf_counter() - begun, clients)

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of each part since `seconds` was as it is in `before`."""
        return {
            part: seconds
            for part in PARTS
            if (seconds := self.seconds.get(part, 0.0) - before.get(part, 0.0)) > 0
        }

    def table(self, rounds: int, workers: int) -> list[str]:
        """Return in lines how long each part took in a round, by as many workers."""
        whole = self.seconds[ROUND]
        parts = [(part, self.seconds[part]) for part in PARTS if self.seconds[part]]
        # While a thread makes a batch or waits for one, all others may compute.
        rest = max(0.0, whole * workers - sum(seconds for _, seconds in parts))
        lines = [
            f"time of {rounds} round{'s' if rounds > 1 else ''}, of {workers} workers together"
        ]
        for part, seconds in (*parts, (REST, rest)):
            share = seconds / (whole * workers) if whole else 0
            done = f", {self.clients[part]} clients" if self.clients[part] else ""
            lines.append(
                f"  {part}: {1e3 * seconds / max(rounds, 1):.1f} ms a round, {share:.0%}{done}"
            )
        if whole:
            lines.append(f"  {self.clients[ROUND] / whole:.3g} clients a second")
        return lines


PARTS = (READ, STACK, ALONE, BATCHED, MERGE, SERVER)
REST = "waiting, and Python between"
