"""The answers of every side: how long a round takes, and the weights after rounds."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.rounds.workloads import WORKLOADS, Arrays

Round = Callable[[Arrays], Arrays]
"""Gives the weights after a round from those before it."""

Make = Callable[[str], Round]
"""Makes the round of a workload, by its name."""

IN_A_ROW = 0.2
"""So many seconds of rounds are measured together."""

ROUNDS = 3
"""The weights after so many rounds are compared."""


class Measured:
    """A side: ways to compute a round, by their names, and the packages that they use."""

    def __init__(self, ways: Mapping[str, Make], packages: Sequence[str]) -> None:
        self._ways = ways
        self._packages = packages
        self._rounds: dict[tuple[str, str], tuple[Round, Arrays]] = {}

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages."""
        return {name: importlib.metadata.version(name) for name in self._packages}

    def prepare(self, way: str, workload: str, seconds: float, path: str) -> None:
        """Compute rounds until they have taken a number of seconds of the processor.

        The weights after the first three are written to a path.
        """
        run, weights = self._ways[way](workload), WORKLOADS[workload].first_weights()
        begun, first = processor_time(), weights
        for number in range(1, 1_000_000):
            weights = run(weights)
            if number == ROUNDS:
                np.savez(path, *weights)
            if number >= ROUNDS and processor_time() - begun > seconds:
                break
        self._rounds[way, workload] = run, first

    def round(self, way: str, workload: str) -> tuple[float, float]:
        """Return the seconds of a round from the first weights: of the processor, and on the clock.

        They are the mean of rounds in a row, as in training.  A single round of milliseconds, after
        seconds of other sides, is one of cold caches.
        """
        run, weights = self._rounds[way, workload]
        gc.collect()
        clock, processor = time.perf_counter(), processor_time()
        count = 0
        while not count or time.perf_counter() - clock < IN_A_ROW:
            run(weights)
            count += 1
        return (processor_time() - processor) / count, (time.perf_counter() - clock) / count


def processor_time() -> float:
    """The seconds of the processor that this process has taken, and those it has started: TFF
    works in one of them."""
    ticks = 0
    for child in children():
        with contextlib.suppress(OSError):
            # What stands before is the name, which may hold blanks.
            fields = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def children() -> list[int]:
    """Return the processes that this one has started."""
    threads = pathlib.Path("/proc/self/task").glob("*/children")
    return [int(each) for thread in threads for each in thread.read_text("utf-8").split()]
