"""The answers of every side: how long its rounds take, and what its weights are after them."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.field.settings import Setting
from benchmarks.rounds.workloads import Arrays, Client

PART = 250
"""So many images are evaluated at once."""

Options = Mapping[str, Any]
"""What a side is told besides the setting; the names are those of `tffc.run`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Federation:
    """What a side trains on: the setting, the clients' data, and the numbers of the clients of
    each round."""

    setting: Setting
    clients: Sequence[Client]
    cohorts: Sequence[Sequence[int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Training:
    """A training that has been set up.

    `advance` computes the round of a number, from 0 and in order, until its weights are there;
    `weights` returns the present ones, and `scores` the outputs of their network for some images.
    """

    advance: Callable[[int], None]
    weights: Callable[[], Arrays]
    scores: Callable[[np.ndarray], np.ndarray]


Way = Callable[[Federation, Options], Training]
"""Sets up a training, with the weights that the workload begins with."""


class Trained:
    """A side: ways to train, by their names, and the packages that they use."""

    def __init__(self, ways: Mapping[str, Way], packages: Sequence[str]) -> None:
        self._ways = ways
        self._packages = packages
        self._training: Training | None = None
        self._federation: Federation | None = None

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages."""
        return {name: importlib.metadata.version(name) for name in self._packages}

    def prepare(
        self, way: str, setting: Mapping[str, Any], cohorts: list[list[int]], options: Options
    ) -> float:
        """Make the data, and return the seconds from there until the end of the first round."""
        described = Setting.of_json(setting)
        self._federation = Federation(described, described.clients(), cohorts)
        start = time.perf_counter()
        self._training = self._ways[way](self._federation, options)
        self._training.advance(0)
        return time.perf_counter() - start

    def train(self, first: int, end: int) -> list[float]:
        """Return the seconds of each round from a number to before another one."""
        assert self._training is not None
        seconds: list[float] = []
        for number in range(first, end):
            start = time.perf_counter()
            self._training.advance(number)
            seconds.append(time.perf_counter() - start)
        return seconds

    def accuracy(self) -> float:
        """Return the share of the images held out that the present weights classify correctly."""
        assert self._training is not None
        assert self._federation is not None
        x, y = self._federation.setting.others()
        right = 0
        for at in range(0, len(y), PART):
            scores = self._training.scores(x[at : at + PART])
            right += int((scores.argmax(1) == y[at : at + PART]).sum())
        return right / len(y)

    def weights(self) -> Arrays:
        """Return the present weights."""
        assert self._training is not None
        return self._training.weights()

    def save(self, path: str) -> None:
        """Write the present weights to a path."""
        np.savez(path, *self.weights())
