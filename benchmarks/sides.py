"""Worker processes, and measurements that ask them in turn."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import time
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
NONE: Mapping[str, str] = types.MappingProxyType({})


class SideError(Exception):
    """A side cannot do what it was asked for."""


class Side:
    """One side of the comparison, in a process of its own that lives as long as this object.

    `variables` are set in the environment of the process.
    """

    def __init__(self, name: str, python: str, variables: Mapping[str, str] = NONE) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name],
            cwd=ROOT,
            env=environment() | dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method of the side.

        Raises:
          SideError: it failed, or the process has ended.
        """
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            requests.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
            requests.flush()
        except BrokenPipeError:
            raise SideError(f"the process of {self.name} has ended") from None
        line = answers.readline()
        if not line:
            raise SideError(
                f"the process of {self.name} has ended; run `python -m benchmarks.worker "
                f"{self.name}` to see why"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def environment() -> dict[str, str]:
    """Return the environment of every measured process: no messages of TensorFlow, this checkout
    first."""
    return {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": str(ROOT),
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """The results of several runs, in seconds unless stated otherwise."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def low(self) -> float:
        return min(self.runs)

    @property
    def high(self) -> float:
        return max(self.runs)


@dataclasses.dataclass(slots=True)
class Schedule:
    """How long to measure: `runs` runs of each side, fewer once they took `budget` seconds."""

    runs: int
    budget: float

    def alternate(self, measurements: dict[str, Callable[[], float]]) -> dict[str, Figure]:
        """Return the figures of several measurements, taken in turn; those that fail have none."""
        taken: dict[str, list[float]] = {name: [] for name in measurements}
        spent = dict.fromkeys(measurements, 0.0)
        failed: set[str] = set()
        for _ in range(self.runs):
            for name, measure in measurements.items():
                if name in failed or spent[name] > self.budget:
                    continue
                start = time.perf_counter()
                try:
                    taken[name].append(measure())
                except SideError:
                    failed.add(name)
                spent[name] += time.perf_counter() - start
        return {name: Figure(tuple(runs)) for name, runs in taken.items() if runs}


def asking(sides: Iterable[Side], method: str, *arguments: Any) -> dict[str, Callable[[], float]]:
    """Return measurements that ask each side for the same."""

    def of(side: Side) -> Callable[[], float]:
        return lambda: side.ask(method, *arguments)

    return {side.name: of(side) for side in sides}
