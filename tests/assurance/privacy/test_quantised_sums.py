"""Sums of quantised values, as secure sums take them: their bounds are those by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.derivations import NOTHING, VECTOR, derivation, nothing
from tffc.assurance.privacy.accounting import Gaussian
from tffc.assurance.privacy.derivation import Derivation
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import constant
from tffc.assurance.privacy.quantities.quantity import (
    Contribution,
    Mechanism,
    Noise,
    Provenance,
    Quantity,
)
from tffc.assurance.privacy.question import Neighbours
from tffc.assurance.privacy.sensitivity import sensitivity
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

CLIP, DEVIATION, SIZE = 3.0, 6.0, 4
LOW, HIGH, BITS = -4.0, 4.0, 10
MOST = 2**BITS - 1
STEP = (HIGH - LOW) / MOST
HALF = 0.5 * STEP * math.sqrt(SIZE)
"""By how much rounding to the nearest step may make a vector longer."""

Work = Callable[[Any], Any]
Finish = Callable[[Any, Any], Any]
ADDED, REPLACED = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE


def clipped(x: Any) -> Any:
    return x * tf.minimum(1.0, CLIP / tf.norm(x))


def nearest(x: Any) -> Any:
    return tf.cast(tf.round(x), tf.int64)


def at_random(x: Any) -> Any:
    return tf.cast(tf.floor(x + tf.random.uniform([SIZE])), tf.int64)


def in_range(x: Any) -> Any:
    return tf.clip_by_value(x, np.int64(0), np.int64(MOST))


def noisy(x: Any) -> Any:
    return tf.cast(x, tf.float32) + tf.random.normal([SIZE], stddev=DEVIATION)


def one(x: Any) -> Any:
    return tf.constant(1, tf.int64)


def quantised(x: Any, clip: Work = clipped, rounded: Work = nearest, low: float = LOW) -> Any:
    return in_range(rounded((clip(x) - low) / STEP))


def dequantised(total: Any, number: Any, low: float = LOW) -> Any:
    return tf.cast(total, tf.float64) * STEP + tf.cast(number, tf.float64) * low


def with_shift(x: Any) -> Any:
    """The integer of the lower end is taken away, and not the end itself."""
    return in_range(nearest(clipped(x) / STEP) - nearest(tf.constant(LOW / STEP)))


def shifted_back(total: Any, number: Any) -> Any:
    return tf.cast(total + number * nearest(tf.constant(LOW / STEP)), tf.float64) * STEP


def process(work: Work, finish: Finish, count: Work = one) -> Any:
    """Rounds that release what `finish` makes of the secure sums of two values of each client."""
    each = tff.tf_computation(VECTOR)(lambda x: work(x))
    number = tff.tf_computation(VECTOR)(count)
    last = tff.tf_computation(each.type_signature.result, number.type_signature.result)(
        lambda total, clients: finish(total, clients)
    )

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(state: Any, values: Any) -> Any:
        total = tff.federated_secure_sum_bitwidth(tff.federated_map(each, values), BITS)
        clients = tff.federated_secure_sum_bitwidth(tff.federated_map(number, values), 1)
        return state, tff.federated_map(last, (total, clients))

    return tff.templates.IterativeProcess(nothing, next_round)


def lengths(result: Derivation) -> float:
    """By how much a client changes a sum."""
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    return DEVIATION / part.multiplier


PRIVATE: dict[str, tuple[Work, Finish, float, float]] = {
    # The work, what the server does, and by how much a client that is added, or that is replaced,
    # changes what it does.
    "values": (quantised, dequantised, CLIP + HALF, 2 * CLIP + 2 * HALF),
    "shift": (with_shift, shifted_back, CLIP + HALF, 2 * CLIP + 2 * HALF),
    "at random": (
        lambda x: quantised(x, rounded=at_random),
        dequantised,
        CLIP + 2 * HALF,
        2 * CLIP + 4 * HALF,
    ),
    "range of one sign": (
        lambda x: quantised(x, low=1.0),
        lambda total, number: dequantised(total, number, 1.0),
        CLIP + HALF + 1.0 * math.sqrt(SIZE),
        2 * CLIP + 2 * HALF,
    ),
    "no clip but the range": (
        lambda x: quantised(x, tf.identity),
        dequantised,
        HIGH * math.sqrt(SIZE),
        (HIGH - LOW) * math.sqrt(SIZE),
    ),
    "no count": (
        quantised,
        lambda total, number: tf.cast(total, tf.float64) * STEP,
        CLIP + HALF - LOW * math.sqrt(SIZE),
        2 * CLIP + 2 * HALF,
    ),
    "count twice": (
        quantised,
        lambda total, number: dequantised(total, 2 * number),
        CLIP + HALF - LOW * math.sqrt(SIZE),
        2 * CLIP + 2 * HALF,
    ),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_sensitivity(name: str) -> None:
    work, finish, added, replaced = PRIVATE[name]
    rounds = process(work, lambda total, number: noisy(finish(total, number)))
    assert math.isclose(lengths(derivation(rounds, ADDED)), added, rel_tol=1e-6)
    assert math.isclose(lengths(derivation(rounds, REPLACED)), replaced, rel_tol=1e-6)


def released_count(total: Any, number: Any) -> Any:
    return noisy(dequantised(total, number)), number


FAULTS: dict[str, tuple[Work, Finish, Work]] = {
    "count of data": (
        quantised,
        lambda total, number: noisy(dequantised(total, number)),
        lambda x: tf.cast(x[0] > 0, tf.int64),
    ),
    "weight": (
        quantised,
        lambda total, number: noisy(dequantised(total, number)),
        lambda x: tf.cast(tf.random.uniform([]) > 0.5, tf.int64),
    ),
    "count released": (quantised, released_count, one),
    "count of the power two": (
        quantised,
        lambda total, number: noisy(dequantised(total, number * number)),
        one,
    ),
    "mean": (
        quantised,
        lambda total, number: noisy(dequantised(total, number) / tf.cast(number, tf.float64)),
        one,
    ),
    "step of the sum": (
        quantised,
        lambda total, number: noisy(dequantised(total, number) * tf.cast(total[0], tf.float64)),
        one,
    ),
    "no noise": (quantised, lambda total, number: dequantised(total, number), one),
    "not rounded to a type": (
        lambda x: tf.cast(tf.cast(tf.round(x / STEP), tf.int64), tf.int64),
        lambda total, number: noisy(dequantised(total, number)),
        one,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("neighbours", [ADDED, REPLACED])
def test_faults(name: str, neighbours: Neighbours) -> None:
    work, finish, count = FAULTS[name]
    result = derivation(process(work, finish, count), neighbours)
    if name in ("count released", "mean") and neighbours is REPLACED and result.is_shown:
        return
    assert not result.is_shown


# Assertions at the server.


def asserting(condition: Callable[[Any, Any], Any]) -> Finish:
    def finish(total: Any, number: Any) -> Any:
        with tf.control_dependencies([tf.debugging.Assert(condition(total, number), [total])]):
            return noisy(dequantised(total, number))

    return finish


def in_a_loop(total: Any, number: Any) -> Any:
    def step(i: Any) -> Any:
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_max(total) < i, [total])]):
            return i + 1

    last = tf.while_loop(lambda i: i < 3, step, [tf.constant(0, tf.int64)])[0]
    with tf.control_dependencies([last]):
        return noisy(dequantised(total, number))


def test_assertions_that_cannot_fail_tell_nothing() -> None:
    finish = asserting(
        lambda total, number: tf.logical_and(
            tf.reduce_min(total) >= 0, tf.reduce_max(total) <= MOST * number
        )
    )
    assert derivation(process(quantised, finish)).is_shown


UNCERTAIN: dict[str, Finish] = {
    "tight": asserting(lambda total, number: tf.reduce_max(total) <= (MOST - 200) * number),
    "strict": asserting(lambda total, number: tf.reduce_max(total) < MOST * number),
    "fixed": asserting(lambda total, number: tf.reduce_max(total) <= 7),
    "above": asserting(lambda total, number: tf.reduce_min(total) >= 1),
    "either": asserting(
        lambda total, number: tf.logical_and(
            tf.reduce_min(total) >= 0, tf.reduce_max(total) <= number
        )
    ),
    "loop": in_a_loop,
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_assertions_that_may_fail_tell_something(name: str) -> None:
    result = derivation(process(quantised, UNCERTAIN[name]))
    assert "no other release" in {step.step for step in result.missing}


# Lines.

OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scale": (lambda a, x, c: a.multiply(x, a.constant(c)), lambda x, c: x * c),
    "shift": (lambda a, x, c: a.add(x, a.constant(c)), lambda x, c: x + c),
    "above": (lambda a, x, c: a.maximum(x, a.constant(c)), np.maximum),
    "below": (lambda a, x, c: a.minimum(x, a.constant(c)), np.minimum),
}


def bound_of(algebra: Algebra, value: Quantity, neighbours: Neighbours) -> float:
    """By how much a client changes the sum of a value."""
    noise = Noise("normal", constant(1.0), frozenset((0,)), "")
    contribution = Contribution("sum", "sum", value)
    mechanism = Mechanism(((contribution, constant(1.0)),), noise, (SIZE,), "")
    number = sensitivity([mechanism], 2, neighbours, algebra).number({})
    assert number is not None
    return number


@pytest.mark.parametrize("seed", range(60))
def test_generated_lines(seed: int) -> None:
    """No vector is longer, and no two are farther apart, than what is shown."""
    random = np.random.default_rng(seed)
    algebra = Algebra()
    vector = Quantity(algebra.fresh(), Provenance(is_of_client=True), shape=(SIZE,))
    norm = algebra.root(algebra.total(algebra.square(vector), ()))
    ratio = algebra.divide(algebra.constant(CLIP), norm)
    value = algebra.multiply(vector, algebra.minimum(algebra.constant(1.0), ratio))
    drawn = random.normal(size=(4000, SIZE)) ** 3
    vectors = np.concatenate([drawn / np.linalg.norm(drawn, axis=1)[:, None], drawn * 0.0])
    vectors *= CLIP
    for _ in range(int(random.integers(1, 8))):
        name = str(random.choice(list(OPERATIONS)))
        number = float(random.choice([-2.0, -0.5, 0.25, 1.5, 3.0]))
        described, computed = OPERATIONS[name]
        value, vectors = described(algebra, value, number), computed(vectors, number)
    longest = float(np.max(np.linalg.norm(vectors, axis=1)))
    farthest = float(np.max(np.linalg.norm(vectors - vectors[::-1], axis=1)))
    assert longest <= bound_of(algebra, value, ADDED) * (1 + 1e-9)
    assert farthest <= bound_of(algebra, value, REPLACED) * (1 + 1e-9)
