"""The sides in one setting: each trains in a process of its own, and their results agree."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.environments import ANY, DEVICES
from benchmarks.field.settings import Setting
from benchmarks.field.table import FieldRow
from benchmarks.rounds.workloads import Arrays
from benchmarks.sides import Side, SideError
from tffc.runtime.engines.sampling import sample

COMPARED = 3
"""The weights after so many rounds are compared, if nothing is drawn."""

SAME = 1e-4
"""How far they may be from one another."""

LEARNT = 100
"""From so many rounds on, accuracies are compared: before, they are hardly above chance."""

ALIKE = 0.02
"""How far accuracies may be from one another after a whole training, in which sides draw what
dropout leaves differently."""


def cohorts_of(setting: Setting) -> list[list[int]]:
    """Return the numbers of the clients of each round, which are those that tffc samples."""
    names = tuple(setting.names)
    return [
        [int(name) for name in sample(names, setting.cohort, 0, number)]
        for number in range(1, setting.rounds + 1)
    ]


class Comparison:
    """The sides that have trained in a setting: their rows, and the versions of packages.

    `interpreters` are those of the sides, by their names.
    """

    def __init__(
        self, setting: Setting, interpreters: Mapping[str, str], device: str = ANY
    ) -> None:
        self.rows: list[FieldRow] = []
        self.versions: dict[str, str] = {}
        self._setting = setting
        self._interpreters = interpreters
        self._device = device
        self._cohorts = cohorts_of(setting)
        self._expected: Arrays = []

    def add(self, title: str, name: str, way: str, options: Mapping[str, Any]) -> None:
        """Have a side train, and add its row.

        Raises:
          SideError: it fails, or its weights differ from those of the first side though neither
            draws anything.
        """
        python, variables = self._interpreters[name], DEVICES[self._device]
        with contextlib.closing(Side(f"field.{name}", python, variables)) as side:
            self.versions |= side.ask("versions")
            row = self._measured(title, side, way, options)
        self.rows.append(row)

    def _measured(self, title: str, side: Side, way: str, options: Mapping[str, Any]) -> FieldRow:
        rounds = self._setting.rounds
        setup = side.ask("prepare", way, self._setting.to_json(), self._cohorts, options)
        early = min(COMPARED, rounds)
        seconds = side.ask("train", 1, early)
        worst = None if any(self._setting.workload.dropout) else self._difference(weights_of(side))
        seconds += side.ask("train", early, rounds)
        return FieldRow(title, setup, tuple(seconds), side.ask("accuracy"), worst)

    def _difference(self, weights: Arrays) -> float:
        """Return how far weights are from the first side's."""
        self._expected = self._expected or weights
        pairs = zip(weights, self._expected, strict=True)
        worst = max(float(np.abs(a - b).max()) for a, b in pairs)
        if not worst <= SAME:
            raise SideError(f"weights differ by {worst:.1g}")
        return worst

    def agreement(self) -> str:
        """Return a sentence about how far accuracies are from one another."""
        accuracies = [row.accuracy for row in self.rows]
        if len(accuracies) < 2:
            return "one side alone is not compared"
        apart = max(accuracies) - min(accuracies)
        if self._setting.rounds < LEARNT:
            return f"accuracies are {apart:.3f} apart, which says nothing after so few rounds"
        verdict = "agree" if apart <= ALIKE else "DIFFER"
        return f"accuracies {verdict}: they are {apart:.3f} apart, and {ALIKE} is tolerated"


def weights_of(side: Side) -> Arrays:
    """Return the present weights of a side."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.npz")
        side.ask("save", path)
        with np.load(path) as file:
            return [file[each] for each in file.files]
