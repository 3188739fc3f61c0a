"""The workloads: networks, clients' data and rates, the same for all sides.

A client trains with plain gradient descent on its examples, repeated and divided into batches of
which the last may be smaller.  The server adds the mean of the clients' changes, weighted by their
numbers of examples.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "train"
Arrays = list[np.ndarray]
Client = tuple[np.ndarray, np.ndarray]
Drop = Callable[[Any, int], Any]
"""Gives what dropout leaves of the values at one of the two places of a network."""


def keep(values: Any, place: int) -> Any:
    """Drop nothing."""
    return values


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """A network and how it is trained.

    `kind` is `dense` for layers of these widths, `cnn` for two convolutions of 3x3 with these
    `filters` and a maximum of 2x2 before them, and `logistic` for one layer whose single output is
    a probability.  Of a `cnn`, `dropout` has the rates after the maximum and after the hidden
    layer; `image` is the height, the width and the channels of an example, which is kept flat.
    """

    title: str
    kind: str
    widths: tuple[int, ...]
    clients: int
    epochs: int
    batch: int
    rate: float
    size: int | None = None
    image: tuple[int, int, int] = (28, 28, 1)
    filters: tuple[int, int] = (32, 64)
    dropout: tuple[float, float] = (0.0, 0.0)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the weights, each layer's bias after its matrix."""
        found: list[tuple[int, ...]] = []
        if self.kind == "cnn":
            one, two = self.filters
            found += [(3, 3, self.image[2], one), (one,), (3, 3, one, two), (two,)]
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            found += [(inputs, outputs), (outputs,)]
        return found

    @property
    def features(self) -> int:
        """Return how many numbers an example has."""
        return math.prod(self.image) if self.kind == "cnn" else self.widths[0]

    def first_weights(self) -> Arrays:
        """Return the weights before the first round."""
        random = np.random.RandomState(0)
        return [
            np.zeros(shape, np.float32)
            if len(shape) == 1
            else (random.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
            for shape in self.shapes
        ]

    def client_data(self) -> list[Client]:
        """Return the examples and labels of each client."""
        if self.size is None:
            return [_digits(path) for path in sorted(DIGITS.glob("*.npz"))]
        random = np.random.RandomState(1)
        classes = 2 if self.kind == "logistic" else self.widths[-1]
        return [
            (
                random.normal(size=(self.size, self.features)).astype(np.float32),
                random.randint(0, classes, self.size).astype(np.int32),
            )
            for _ in range(self.clients)
        ]


def _digits(path: pathlib.Path) -> Client:
    with np.load(path) as file:
        return (file["pixels"] / 16).astype(np.float32), file["label"].astype(np.int32)


WORKLOADS = {
    "W1": Workload("digits, 64-48-10", "dense", (64, 48, 10), 60, 5, 10, 0.1),
    "W2": Workload("784-200-200-62", "dense", (784, 200, 200, 62), 100, 1, 20, 0.05, 100),
    "W3": Workload("two convolutions", "cnn", (12 * 12 * 64, 128, 62), 20, 1, 20, 0.05, 100),
    "W4": Workload("logistic regression", "logistic", (20, 1), 10_000, 2, 5, 0.1, 5),
    "L2": Workload("784-200-200-62", "dense", (784, 200, 200, 62), 1000, 1, 20, 0.05, 100),
    "L4": Workload("logistic regression", "logistic", (20, 1), 100_000, 2, 5, 0.1, 5),
}
ON_THE_PAGE = ("W1", "W2", "W3", "W4")
"""The workloads of the page; the larger ones are for devices."""


@functools.cache
def clients_of(name: str) -> list[Client]:
    """Return the clients of a workload, which a process makes once."""
    return WORKLOADS[name].client_data()
