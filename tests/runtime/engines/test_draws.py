"""Clients of a batch draw what they draw by themselves, or numbers of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.distribution import FAR, distance
from tests.runtime.engines.batches import (
    BOTH,
    Outcome,
    assert_alike,
    check_same,
    numbers_to,
    round_of,
    source_of,
)
from tffc.runtime.batching.choices import PJRT
from tffc.runtime.batching.limits import Limits

FLOATS = tff.SequenceType(np.float32)
ALIKE = 4e-6
"""How far sums of normal draws may be apart: these follow sines and logarithms."""


@pytest.fixture(autouse=True)
def by_pjrt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only PJRT computes draws in batches."""
    monkeypatch.setattr("tffc.runtime.batching.compilers.preferred", lambda: PJRT)


def stateless(random: np.random.RandomState) -> Callable[[Any], Any]:
    """A client's work that draws in some ways, under seeds that depend on its data and steps."""
    kinds = random.randint(0, 5, size=random.randint(1, 4))
    sizes = random.randint(1, 6, size=len(kinds))
    size, repeats = random.randint(1, 4), random.randint(1, 3)

    def drawn(kind: int, count: int, seed: Any) -> Any:
        shape = [count, 2] if kind % 2 else [count]
        match kind:
            case 0 | 1:
                return tf.reduce_sum(tf.random.stateless_uniform(shape, seed))
            case 2:
                return tf.reduce_sum(tf.random.stateless_normal(shape, seed))
            case 3:
                integers = tf.random.stateless_uniform(shape, seed, -9, 90, tf.int64)
                return tf.cast(tf.reduce_sum(integers), tf.float32)
            case _:
                kept = tf.random.stateless_uniform(shape, seed) < 0.5
                return tf.reduce_sum(tf.where(kept, 1.0, 0.0))

    def work(data: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            number, total = state
            first = tf.cast(tf.reduce_sum(x) * 8, tf.int32)
            for at, (kind, count) in enumerate(zip(kinds, sizes, strict=True)):
                total += drawn(int(kind), int(count), tf.stack([first + at, number]))
            return number + 1, total * 0.5

        start = (tf.constant(0), tf.constant(0.0))
        return data.repeat(int(repeats)).batch(int(size)).reduce(start, step)

    return work


def check_stateless(seed: int) -> None:
    random = np.random.RandomState(seed)
    process = round_of(stateless(random), FLOATS, "broadcast")
    lengths = random.randint(0, 7, size=4)
    source = source_of(process, [numbers_to(3, int(length)) for length in lengths])
    alone = Outcome(process, source, 1)
    for limits in (Limits(), Limits(most_numbers=0)):
        together = Outcome(process, source, 3, limits=limits)
        assert together.together == 4, together.decisions
        assert_alike(process, together, alone, ALIKE)


def test_stateless_draws_are_those_of_one_client() -> None:
    check_stateless(0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 12))
def test_more_stateless_draws_are_those_of_one_client(seed: int) -> None:
    check_stateless(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12, 500))
def test_many_stateless_draws_are_those_of_one_client(seed: int) -> None:
    check_stateless(seed)


@pytest.mark.slow
@BOTH
def test_models_with_dropout_are_in_batches(limits: Limits) -> None:
    def work(data: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            number, weights = state
            seed = tf.stack([tf.cast(tf.reduce_sum(x), tf.int32), number])
            kept = tf.nn.experimental.stateless_dropout(tf.reshape(x, [-1, 1]) * weights, 0.4, seed)
            return number + 1, weights - 0.1 * tf.reduce_mean(kept, 0)

        return data.batch(2).reduce((tf.constant(0), tf.ones([3])), step)[1]

    found = check_same(round_of(work, FLOATS), [numbers_to(3, 4)] * 3, limits=limits)
    assert all("vectorised" in line or "loop" in line for line in found.decisions)


def unseeded(data: Any) -> Any:
    """Draws for each element, of each kind."""
    start = (tf.constant(0), tf.zeros([5, 4]), tf.zeros([5, 4]), tf.zeros([5, 4], tf.int64))

    def step(state: Any, x: Any) -> Any:
        at, uniform, normal, integer = state
        here = tf.one_hot(at, 5)[:, None]
        uniform += here * tf.random.uniform([1, 4])
        normal += here * tf.random.normal([1, 4])
        drawn = tf.random.uniform([1, 4], 0, 1000, tf.int64)
        integer += tf.cast(here, tf.int64) * drawn
        return at + 1, uniform, normal, integer

    return data.reduce(start, step)[1:]


@pytest.mark.slow
@BOTH
def test_draws_without_a_seed_are_independent(limits: Limits) -> None:
    process = round_of(unseeded, FLOATS, "broadcast")
    source = source_of(process, [numbers_to(4, 5)] * 1000)
    rounds = [Outcome(process, source, 500, limits=limits) for _ in range(2)]
    assert all(outcome.together == 1000 for outcome in rounds)
    uniform, normal, integer = (
        np.array([[client[at] for client in outcome.delivered.values()] for outcome in rounds])
        for at in range(3)
    )
    random = np.random.default_rng(7)
    assert distance(uniform, random.uniform(size=uniform.shape)) < FAR
    assert distance(normal, random.normal(size=normal.shape)) < FAR
    assert distance(integer, random.integers(0, 1000, size=integer.shape)) < FAR
    # No number comes twice: not for two clients, steps, places or rounds.
    assert len(np.unique(normal)) > 0.99 * normal.size
    # Nor do they go together: each of these is about a standard deviation of 1.
    flat = [np.moveaxis(normal, axis, 0).reshape(normal.shape[axis], -1) for axis in range(4)]
    for rows in flat:
        correlation = (rows[:-1] * rows[1:]).mean() * np.sqrt(rows[1:].size)
        assert abs(correlation) < 5
    both = (uniform - 0.5) * normal
    assert abs(both.mean() / both.std()) * np.sqrt(both.size) < 5


@pytest.mark.slow
def test_a_seed_of_the_operation_stays_with_tensorflow() -> None:
    process = round_of(lambda x: x + tf.random.uniform([], seed=3), np.float32)
    found = Outcome(process, source_of(process, [np.float32(1)] * 3))
    assert found.together == 0
    assert "RandomUniform, of a seed of its own" in found.decisions[-1]
