"""Faults that are planted in the private rounds of `planted_rounds`.

A fault either leaves no bound at all, or makes the bound of a contribution or the noise worse: then
`share` is the largest share of the multiplier of the correct round that may be claimed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from tests.assurance.privacy.planted_in_clients import CLIENTS, clipped, typed
from tests.assurance.privacy.planted_in_servers import SERVERS
from tests.assurance.privacy.planted_rounds import (
    BASES,
    Base,
    Client,
    Server,
    Steps,
    Tensors,
    of_floats,
    of_normal_noise,
    tf,
    total_norm,
    with_real_noise,
    with_server_noise,
)

CONTRIBUTION = frozenset(
    {"bound of each contribution", "ratio of the noise to the bound", "noise", "integers"}
)
"""Steps that may be missing if clients do something wrong."""

HIDING = frozenset(
    {"noise", "noise drawn once", "noise kept secret", "scale of the noise", "no other release"}
)
HIDING |= {"ratio of the noise to the bound", "integers"}
"""Steps that may be missing if the server does something wrong."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault: what replaces the steps of a round, the steps one of which is then missing, and the
    rounds that it can be planted in."""

    name: str
    steps: Steps
    missing: frozenset[str]
    fits: Callable[[Base], bool]
    share: float | None = None


# What is released beside the sums.

EXTRAS: dict[str, Callable[[Tensors], Any]] = {
    "count": lambda values: tf.constant(1.0),
    "weight": lambda values: tf.cast(tf.reduce_sum(values[0]) > 0, tf.float32),
    "loss": lambda values: tf.reduce_mean(values[0]),
    "clipped loss": lambda values: tf.clip_by_value(tf.reduce_mean(values[0]), 0.0, 1.0),
    "hits": lambda values: tf.cast(total_norm(values) <= 1.0, tf.int32),
}


# Faults that make a bound or the noise worse.


def _worse() -> Iterator[Fault]:
    def clip(factor: Callable[[Tensors], Any]) -> Client:
        return lambda base, bound, values: typed(
            base, [v * tf.minimum(1.0, bound / factor(values)) for v in values]
        )

    def one(base: Base) -> bool:
        return base.name == "vector"

    def largest(values: Tensors) -> Any:
        return tf.reduce_max(tf.abs(values[0]))

    def root_mean(values: Tensors) -> Any:
        return tf.sqrt(tf.reduce_mean(tf.square(values[0])))

    def twice(base: Base, bound: Any, values: Tensors) -> Tensors:
        return typed(base, [2.0 * v for v in clipped(base, bound, values)])

    def rounded_up(base: Base, bound: Any, values: Tensors) -> Tensors:
        return typed(base, [tf.math.ceil(v * 8.0) for v in clipped(base, bound, values)])

    def repeated(base: Base, bound: Any, values: Tensors) -> Tensors:
        return typed(base, [tf.concat([v, v], 0) for v in clipped(base, bound, values)])

    def little(factor: float) -> Server:
        return lambda base, state, sums: (
            list(state["kept"]),
            [t + factor * base.noise(t.shape) for t in sums],
        )

    def again(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
        return list(state["kept"]), [*base.noisy(sums), *base.noisy(sums)]

    def added_twice(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
        return list(state["kept"]), base.noisy([t + t for t in sums])

    root = math.sqrt(0.5)
    yield Fault("largest magnitude", Steps(clip(largest)), CONTRIBUTION, one, 1 / 2)
    yield Fault("root of the mean", Steps(clip(root_mean)), CONTRIBUTION, one, 1 / 2)
    yield Fault("twice", Steps(twice), CONTRIBUTION, of_floats, 1 / 2)
    yield Fault("rounded up", Steps(rounded_up), CONTRIBUTION, of_floats, 1 / 8)
    yield Fault("repeated", Steps(repeated), CONTRIBUTION, of_floats, root)
    for factor in (0.1, -0.1, 1e-6):
        steps = Steps(server=little(factor))
        yield Fault(f"noise times {factor}", steps, HIDING, with_real_noise, abs(factor))
    yield Fault("released twice", Steps(server=again), HIDING, of_normal_noise, root)
    yield Fault("added twice", Steps(server=added_twice), HIDING, with_real_noise, 1 / 2)
    bound_of_l2 = Steps(lambda base, bound, values: typed(base, _l2(bound, values)))

    def of_laplace(base: Base) -> bool:
        return base.name == "laplace"

    yield Fault("clip by L2 for Laplace", bound_of_l2, CONTRIBUTION, of_laplace, 1 / 2)


def _l2(bound: Any, values: Tensors) -> Tensors:
    return [v * tf.minimum(1.0, bound / total_norm(values)) for v in values]


WORSE = tuple(_worse())


def faults() -> Iterator[Fault]:
    """Yield all faults."""
    for name, (function, fits) in CLIENTS.items():
        yield Fault(name, Steps(function), CONTRIBUTION | HIDING, fits)
    for name, (function, fits) in SERVERS.items():
        yield Fault(name, Steps(server=function), HIDING, fits)
    for name, extra in EXTRAS.items():
        yield Fault(f"{name} without noise", Steps(extra=extra), HIDING, of_floats)
    fault = Steps(server=lambda base, state, sums: (sums, base.noisy(sums)), sends_kept=True)
    yield Fault("sum kept and broadcast", fault, HIDING, with_server_noise)
    yield from WORSE


ROUNDS = 4
"""The rounds that each fault is planted in, of those that it fits."""


def planted() -> Iterator[tuple[Base, Fault]]:
    """Yield pairs of a private round and a fault; other faults are planted in other rounds."""
    for at, fault in enumerate(faults()):
        fitting = [base for base in BASES if fault.fits(base)]
        for number in range(min(ROUNDS, len(fitting))):
            yield fitting[(at + number * 3) % len(fitting)], fault
