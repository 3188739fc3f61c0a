"""The published settings, on made-up data of the same shapes.

`cifar10` is the benchmark of pfl-research on CIFAR10: 1,000 users of 50 images of 32x32x3 in 10
classes, 50 of them in each of 1,500 rounds, one local epoch in batches of 10, rates 0.1 at the
users and 1.0 at the server.  Its network is pfl's `simple_cnn`, of 1,626,442 parameters:

    conv 3x3, 32 channels, VALID, ReLU     896
    conv 3x3, 64 channels, VALID, ReLU  18,496
    max pool 2x2, dropout 0.25
    dense 128, ReLU                  1,605,760
    dropout 0.5
    dense 10                             1,290

`femnist` is CNN_FEMNIST of FLUTE: 1,500 rounds of 10 clients, one local epoch in batches of 20,
rate 0.1, of 3,400 writers of images of 28x28x1 in 62 classes.  The network has the same layers on
one channel and 62 outputs, which are 1,206,590 parameters.  How many images a client has is drawn
from a normal distribution of mean 197 and deviation 77, between 20 and 400; those of the writers
have about this mean.

An image is the mean image of its class and noise.  Both are drawn by a generator that is seeded
with the number of the client, and scaled to about the range of pixels from 0 to 1.  So accuracies
say that sides learn the same, not how well they would do on photographs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.rounds.workloads import Client, Workload

SIGNAL, NOISE = 0.1, 0.2
"""The deviations of a class's mean image and of the noise."""

LEAST, MOST = 20, 400
"""How many images an uneven client has at least and at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """A workload of which each round trains a sample of the clients.

    A client has `workload.size` images, with this deviation.  `held_out` images are in no client.
    """

    workload: Workload
    cohort: int
    rounds: int
    deviation: float = 0.0
    held_out: int = 2000

    def to_json(self) -> dict[str, Any]:
        """Return the setting as JSON, from which `of_json` makes it again."""
        return dataclasses.asdict(self)

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Setting:
        """Return the setting that was written as JSON."""
        parts: dict[str, Any] = {
            name: tuple(part) if isinstance(part, list) else part
            for name, part in value["workload"].items()
        }
        return cls(**{**value, "workload": Workload(**parts)})

    def changed(self, *, cohort: int, rounds: int, clients: int, dropout: bool) -> Setting:
        """Return the setting with other numbers, and without dropout if it is not wanted."""
        workload = dataclasses.replace(self.workload, clients=clients)
        if not dropout:
            workload = dataclasses.replace(workload, dropout=(0.0, 0.0))
        return dataclasses.replace(self, workload=workload, cohort=cohort, rounds=rounds)

    @property
    def names(self) -> list[str]:
        """Return the names of the clients, whose order is that of their numbers."""
        width = len(str(self.workload.clients))
        return [str(number).zfill(width) for number in range(self.workload.clients)]

    def sizes(self) -> list[int]:
        """Return how many images each client has."""
        assert self.workload.size is not None
        random = np.random.default_rng(0)
        drawn = random.normal(self.workload.size, self.deviation, self.workload.clients)
        if self.deviation:
            drawn = drawn.clip(LEAST, MOST)
        return [int(each) for each in drawn.round()]

    def clients(self) -> list[Client]:
        """Return the images and labels of each client."""
        return [self._images(number, size) for number, size in enumerate(self.sizes())]

    def others(self) -> Client:
        """Return the images and labels that no client has."""
        return self._images(self.workload.clients, self.held_out)

    def _images(self, number: int, size: int) -> Client:
        random = np.random.default_rng([1, number])
        means = _means(self.workload.widths[-1], self.workload.features)
        y = random.integers(0, len(means), size).astype(np.int32)
        x = random.standard_normal((size, self.workload.features), np.float32)
        return NOISE * x + means[y], y


@functools.cache
def _means(classes: int, features: int) -> np.ndarray:
    random = np.random.default_rng(2)
    drawn = random.standard_normal((classes, features), np.float32)
    return np.float32(SIGNAL) * drawn + np.float32(0.5)


SETTINGS = {
    "cifar10": Setting(
        Workload(
            title="CIFAR10 of pfl-research",
            kind="cnn",
            widths=(14 * 14 * 64, 128, 10),
            clients=1000,
            epochs=1,
            batch=10,
            rate=0.1,
            size=50,
            image=(32, 32, 3),
            dropout=(0.25, 0.5),
        ),
        cohort=50,
        rounds=1500,
    ),
    "femnist": Setting(
        Workload(
            title="CNN_FEMNIST of FLUTE",
            kind="cnn",
            widths=(12 * 12 * 64, 128, 62),
            clients=3400,
            epochs=1,
            batch=20,
            rate=0.1,
            size=197,
            dropout=(0.25, 0.5),
        ),
        cohort=10,
        rounds=1500,
        deviation=77.0,
    ),
}
