"""Skellam's noise that is the difference of columns of a table of Poisson numbers of one seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.assurance.privacy.derivations import derivation, round_by
from tffc.assurance.privacy.accounting import Skellam
from tffc.assurance.privacy.derivation import Derivation
from tffc.assurance.privacy.question import Neighbours

SIZE, CLIENTS, SIGMA = 4, 25, 6.0
RATE = SIGMA**2 / 2
"""The rate of Poisson numbers whose difference has the standard deviation `SIGMA`."""

Noise = Callable[[], Any]


def seed(factor: float = 1e6) -> Any:
    return tf.cast(tf.stack([tf.timestamp() * factor, tf.constant(0.0, tf.float64)]), tf.int64)


def table(of: Any, columns: int = 2, rate: Any = RATE, kind: Any = tf.int64) -> Any:
    rates = tf.broadcast_to(tf.constant(rate, tf.float64), [columns])
    return tf.random.stateless_poisson([SIZE, columns], of, rates, kind)


def difference(numbers: Any) -> Any:
    return numbers[:, 0] - numbers[:, 1]


def clip(x: Any) -> Any:
    return clipped(x, tf.int64)


def clipped(x: Any, kind: Any) -> Any:
    """At most 2 in length; rounding towards zero makes nothing longer."""
    return tf.cast(tf.clip_by_norm(x, 2.0), kind)


def of_clients(
    noise: Noise,
    kind: Any = tf.int64,
    neighbours: Neighbours = Neighbours.ZERO_OUT,
    *,
    vouches: bool = True,
) -> Derivation:
    def work(x: Any) -> Any:
        return clipped(x, kind) + tf.cast(noise(), kind)

    process = round_by(work, lambda total: total)
    return derivation(process, neighbours, CLIENTS, has_secret_seeds=vouches)


def of_server(finish: Callable[[Any], Any]) -> Derivation:
    return derivation(round_by(clip, finish), Neighbours.ZERO_OUT, has_secret_seeds=True)


def checked(result: Derivation, deviation: float) -> None:
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Skellam)
    assert part.deviation == pytest.approx(deviation, rel=1e-9)
    assert part.l2 == pytest.approx(2.0 / deviation, rel=1e-6)


@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_noise_of_clients(kind: Any) -> None:
    result = of_clients(lambda: difference(table(seed())), kind)
    checked(result, SIGMA * CLIENTS**0.5)
    assert any("cannot be guessed" in text for text in result.assumptions)


def test_noise_of_the_server() -> None:
    checked(of_server(lambda total: total + difference(table(seed()))), SIGMA)


def test_noise_of_a_seed_that_is_drawn() -> None:
    def finish(total: Any) -> Any:
        return total + difference(table(tf.random.uniform([2], maxval=2**40, dtype=tf.int64)))

    result = derivation(round_by(clip, finish), Neighbours.ZERO_OUT)
    checked(result, SIGMA)


def count(x: Any, kind: Any) -> Any:
    """How many elements are positive."""
    return tf.reshape(tf.reduce_sum(tf.cast(x > 0.0, kind)), [1])


def one(kind: Any) -> Any:
    rates = tf.fill([2], tf.constant(RATE, tf.float64))
    return tf.cast(difference(tf.random.stateless_poisson([1, 2], seed(), rates, tf.int64)), kind)


def test_a_count_is_an_integer_by_its_type() -> None:
    process = round_by(lambda x: count(x, tf.int64) + one(tf.int64), lambda total: total)
    result = derivation(process, Neighbours.ZERO_OUT, CLIENTS, has_secret_seeds=True)
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Skellam)
    assert part.l1 == part.l2 == pytest.approx(SIZE / (SIGMA * CLIENTS**0.5))


def test_a_multiple_of_it_is_not() -> None:
    def work(x: Any) -> Any:
        return 0.3 * count(x, tf.float64) + one(tf.float64)

    process = round_by(work, lambda total: total)
    assert derivation(process, Neighbours.ZERO_OUT, CLIENTS, has_secret_seeds=True).missing


def test_two_pairs_of_columns() -> None:
    def finish(total: Any) -> Any:
        numbers = table(seed(), 4)
        second = numbers[:, 2] - numbers[:, 3]
        return total + difference(numbers), total + second

    result = of_server(finish)
    assert result.is_shown, result.missing
    assert len(result.sums) == 2


def at_one_seed(second: Callable[[Any], Any]) -> Noise:
    def noise() -> Any:
        time = seed()
        return table(time)[:, 0] - second(time)

    return noise


WIDE = 2.0**25
"""A standard deviation that integers of 32 bits are not known to hold."""

FAULTS: dict[str, Noise] = {
    "one draw": lambda: table(seed())[:, 0],
    "one column twice": lambda: (lambda n: n[:, 1] - n[:, 1])(table(seed())),
    "one column of two tables of a seed": at_one_seed(lambda time: table(time)[:, 0]),
    "columns of two tables of a seed": at_one_seed(lambda time: table(time, 3)[:, 1]),
    "a table and a row of a seed": at_one_seed(
        lambda time: tf.random.stateless_poisson([SIZE], time, tf.constant(RATE), tf.int64)
    ),
    "two rows of a seed": lambda: (
        lambda time: (
            tf.random.stateless_poisson([SIZE], time, tf.constant(RATE), tf.int64)
            - tf.random.stateless_poisson([SIZE], time, tf.constant(RATE), tf.int64)
        )
    )(seed()),
    "normal numbers of the seed": at_one_seed(
        lambda time: tf.cast(tf.random.stateless_normal([SIZE], time), tf.int64)
    ),
    "columns that overlap": lambda: (
        lambda n: tf.reshape(n, [-1])[:SIZE] - tf.reshape(n, [-1])[1 : SIZE + 1]
    )(table(seed())),
    "rows": lambda: (lambda n: n[0, :SIZE] - n[1, :SIZE])(table(seed(), SIZE)),
    "the seconds": lambda: difference(table(seed(1.0))),
    "a seed that is given": lambda: difference(table(tf.constant([1, 2], tf.int64))),
    "the time times zero": lambda: difference(table(seed(0.0))),
    "two rates": lambda: difference(table(seed(), rate=[RATE, 2 * RATE])),
    "no rate": lambda: difference(table(seed(), rate=0.0)),
    "a rate too large for the type": lambda: difference(table(seed(), rate=2.0**80)),
    "numbers of few digits": lambda: difference(table(seed(), kind=tf.float16)),
    "numbers of 32 bits": lambda: difference(table(seed(), kind=tf.int32)),
    "a part of it": lambda: tf.tile(difference(table(seed()))[:1], [SIZE]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_shown(name: str) -> None:
    assert not of_clients(FAULTS[name]).is_shown


NARROWED: dict[str, Noise] = {
    "noise that may not fit": lambda: difference(table(seed(), rate=WIDE**2 / 2 + 1.0)),
    "noise beside a large number": lambda: difference(table(seed())) + (2**31 - 1),
    "a column beside a large number": lambda: (lambda n: n[:, 0] - (n[:, 1] - np.int64(2**31 - 1)))(
        table(seed())
    ),
    "noise beside wide noise": lambda: (
        difference(table(seed())) + difference(table(seed(), rate=2.0**49))
    ),
}


@pytest.mark.parametrize("name", NARROWED)
def test_what_integers_of_32_bits_may_not_hold(name: str) -> None:
    # With a client's data replaced, a number that it always adds tells nothing.
    assert not of_clients(NARROWED[name], tf.int32, Neighbours.REPLACE).is_shown
    assert of_clients(NARROWED[name], tf.int64, Neighbours.REPLACE).is_shown


RELEASES: dict[str, Callable[[Any, Any], Any]] = {
    "the seed": lambda total, time: (total + difference(table(time)), time),
    "a column": lambda total, time: (total + difference(table(time)), table(time)[:, 1]),
    "the table": lambda total, time: (total + difference(table(time)), table(time)),
    "an element": lambda total, time: (total + difference(table(time)), table(time)[0, 0]),
    "other numbers of the seed": lambda total, time: (
        total + difference(table(time)),
        tf.random.stateless_uniform([9], time),
    ),
    "another sum with a column": lambda total, time: (
        total + difference(table(time, 3)),
        2 * total + table(time, 3)[:, 1] - table(time, 3)[:, 2],
    ),
    "another sum with the same noise": lambda total, time: (
        total + difference(table(time)),
        2 * total + difference(table(time)),
    ),
    "another sum with noise of the seed": lambda total, time: (
        total + difference(table(time)),
        2 * total + difference(table(time, rate=3.0)),
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_beside_the_noise_is_not_shown(name: str) -> None:
    assert not of_server(lambda total: RELEASES[name](total, seed())).is_shown


def test_nobody_vouches() -> None:
    assert not of_clients(lambda: difference(table(seed())), vouches=False).is_shown


def test_what_columns_are() -> None:
    """Columns are Poisson's, and independent, as far as chance has it."""
    draws = 400_000
    numbers = tf.random.stateless_poisson(
        [draws, 2], (1_700_000_000_000_000, 0), tf.fill([2], np.float64(RATE)), tf.int64
    ).numpy()
    covariance = np.cov(numbers.T)
    assert np.abs(numbers.mean(0) - RATE).max() < 6 * np.sqrt(RATE / draws)
    assert np.abs(np.diag(covariance) - RATE).max() < 6 * RATE * np.sqrt(2.1 / draws)
    assert abs(covariance[0, 1]) < 6 * RATE / np.sqrt(draws)
    beside = np.cov(numbers[1:, 0], numbers[:-1, 1])[0, 1]
    assert abs(beside) < 6 * RATE / np.sqrt(draws)
