"""Values that graphs are evaluated on, and the draws of all rounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities.combinations import Combination, single
from tffc.assurance.privacy.quantities.quantity import Shape

MOST_STEPS = 2_000_000
"""The nodes that are evaluated by value in all rounds together."""


MOST_ELEMENTS = 100_000
"""The largest tensor of numbers that is followed by value."""

MOST_DRAWS = 20_000
"""The draws that are told apart."""


class StepsError(Exception):
    """The evaluation takes more steps than are followed, or draws that cannot be told apart."""


@dataclasses.dataclass(frozen=True, slots=True)
class Time:
    """What a clock reads, times a number."""

    reading: int
    scale: float


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SeedVector:
    """Integers that nobody can guess, of which the `source` is the number, plus `offsets`.

    Those of a clock are no words yet before they are converted to integers of 64 bits.
    """

    source: int
    offsets: Any
    is_word: bool = True


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SeedKey:
    """An output of the operation that makes a key and a counter of a seed."""

    seed: SeedVector
    port: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A list of tensors; None is one that is not set."""

    items: tuple[Any, ...]


class NotFollowed:
    """A value that is not followed."""


UNKNOWN = NotFollowed()


class NormalDraws:
    """The draws of standard normal noise of all rounds, and the limit of steps."""

    def __init__(self, *, has_secret_seeds: bool) -> None:
        self.has_secret_seeds = has_secret_seeds
        self.assumptions: dict[str, None] = {}
        self.place = ""
        """Where the graphs are, for people."""
        self.steps = 0
        self._sources = 0
        self._packed: set[int] = set()
        self._count = 0
        self._seeded: dict[tuple[Any, ...], tuple[int, Shape, str]] = {}

    def source(self) -> int:
        """Return the number of a new source of seeds."""
        self._sources += 1
        return self._sources

    def pack(self, seed: SeedVector, count: int) -> SeedVector:
        """Return the vector that has a reading of a clock as an element.

        Raises:
          StepsError: another vector has it, and which seeds are the same is not followed.
        """
        if seed.source in self._packed:
            raise StepsError("two seeds are made of one reading of a clock")
        self._packed.add(seed.source)
        return dataclasses.replace(seed, offsets=np.zeros((count,), np.int64))

    def fresh(self, shape: Shape) -> Combination:
        """Return a draw that follows from no seed of the program."""
        return single(self._next(), shape)

    def from_seed(self, seed: SeedVector, shape: Shape, how: str) -> Combination:
        """Return the draw from a seed; the same for the same seed.

        Raises:
          StepsError: other numbers were drawn from the seed.
        """
        key = (seed.source, *np.ravel(seed.offsets).tolist())
        if key not in self._seeded:
            self._seeded[key] = self._next(), shape, how
        number, before, method = self._seeded[key]
        if (before, method) != (shape, how):
            raise StepsError("noise of different shapes or types is drawn from one seed")
        return single(number, shape)

    def _next(self) -> int:
        if self._count >= MOST_DRAWS:
            raise StepsError("it has more draws of noise than are told apart")
        self._count += 1
        return self._count - 1

    def step(self) -> None:
        """Count a node.

        Raises:
          StepsError: there were too many.
        """
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise StepsError("it takes more steps than are followed")
