"""Sums of remainders, as secure sums of few bits take them: they tell what noise hides, modulo a
number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.derivations import NOTHING, VECTOR, derivation, nothing
from tffc.assurance.privacy.accounting import Skellam
from tffc.assurance.privacy.question import Neighbours
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

CLIP, SCALE, SIZE, RATE, CLIENTS = 3.0, 64.0, 4, 450.0, 30
BITS = 12
MOD = 2**BITS
LENGTH = CLIP * SCALE + 0.5 * math.sqrt(SIZE)

Work = Callable[[Any], Any]
Finish = Callable[[Any, Any], Any]


def wrapped(x: Any, low: int = 0, mod: int = MOD, kind: Any = None) -> Any:
    """The integers from `low` that are equal to others modulo a number, by division."""
    quotient = tf.floor(x / mod - tf.cast(low, tf.float64) / mod)
    return x - tf.cast(tf.cast(quotient, kind or x.dtype), x.dtype) * mod


def by_operation(x: Any) -> Any:
    return tf.math.floormod(x, MOD)


def rounded(x: Any) -> Any:
    clipped = x * tf.minimum(1.0, CLIP / tf.norm(x))
    return tf.cast(tf.round(clipped * SCALE), tf.int32)


def noise(share: float = 1.0) -> Any:
    first, second = (tf.random.poisson([SIZE], RATE * share, tf.int32) for _ in range(2))
    return first - second


def noisy(x: Any) -> Any:
    return rounded(x) + noise()


def released(whole: Any, number: Any) -> Any:
    return tf.cast(wrapped(whole, -MOD // 2), tf.float32) / SCALE


def process(work: Work, finish: Finish = released) -> Any:
    """Rounds that release what `finish` makes of the sum of what clients send, and their number."""
    each = tff.tf_computation(VECTOR)(lambda x: work(x))
    one = tff.tf_computation(lambda: tf.constant(1, each.type_signature.result.dtype))
    number = one.type_signature.result
    last = tff.tf_computation(each.type_signature.result, number)(lambda t, n: finish(t, n))

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(state: Any, values: Any) -> Any:
        sent = tff.federated_map(each, values)
        total = tff.federated_secure_sum_bitwidth(sent, BITS)
        clients = tff.federated_sum(tff.federated_eval(one, tff.CLIENTS))
        return state, tff.federated_map(last, (total, clients))

    return tff.templates.IterativeProcess(nothing, next_round)


def result_of(rounds: Any, neighbours: Neighbours = Neighbours.ZERO_OUT) -> Any:
    return derivation(rounds, neighbours, CLIENTS)


def as_secure_sums_do(x: Any) -> Any:
    """Wrapped twice, and clipped to the range of the sum."""
    low = wrapped(wrapped(noisy(x), -MOD // 2))
    return tf.clip_by_value(low, 0, MOD - 1) - 0


PRIVATE: dict[str, tuple[Work, Finish]] = {
    "by division": (lambda x: wrapped(noisy(x)), released),
    "by an operation": (lambda x: by_operation(noisy(x)), lambda t, n: by_operation(t)),
    "in two ways": (lambda x: wrapped(noisy(x)), lambda t, n: by_operation(t)),
    "twice": (as_secure_sums_do, lambda t, n: released(wrapped(t + n * 0), n)),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_noise_of_clients(name: str) -> None:
    result = result_of(process(*PRIVATE[name]))
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Skellam)
    assert part.deviation == pytest.approx(math.sqrt(2 * RATE * CLIENTS), rel=1e-6)
    assert part.l2 * part.deviation == pytest.approx(LENGTH, rel=1e-6)


def test_a_remainder_is_bounded() -> None:
    """Central noise hides it too, as it hides any number of its interval."""

    def work(x: Any) -> Any:
        return wrapped(tf.cast(x, tf.int32), -MOD // 2)

    rounds = process(work, lambda t, n: tf.cast(t, tf.float32) + tf.random.normal([SIZE], 0.0, 1e4))
    result = result_of(rounds)
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert part.multiplier == pytest.approx(1e4 / (MOD / 2 * math.sqrt(SIZE)), rel=1e-6)


def with_turned_quotient(total: Any, number: Any) -> Any:
    """Each remainder is of a quotient of another element."""
    square = tf.reshape(total, [2, 2])
    quotient = tf.cast(tf.floor(square / MOD), tf.int32)
    return square - tf.transpose(quotient) * MOD


def in_a_larger_type(x: Any) -> Any:
    """The product with the quotient does not fit the smaller type, and is another one there."""
    whole = tf.cast(x, tf.int32)
    quotient = tf.cast(tf.floor(whole / 3000 + 0.5), tf.int32)
    return tf.cast(whole, tf.int64) - tf.cast(quotient * 3000, tf.int64)


FAULTS: dict[str, tuple[Work, Finish]] = {
    "sum released": (lambda x: wrapped(noisy(x)), lambda t, n: t),
    "sum divided": (lambda x: wrapped(noisy(x)), lambda t, n: t // MOD),
    "largest": (lambda x: wrapped(noisy(x)), lambda t, n: tf.reduce_max(t)),
    "other modulus": (lambda x: wrapped(noisy(x)), lambda t, n: wrapped(t, 0, MOD + 1)),
    "larger modulus": (lambda x: wrapped(noisy(x)), lambda t, n: wrapped(t, 0, 2 * MOD)),
    "modulus of a client": (
        lambda x: wrapped(noisy(x), 0, MOD - 1),
        lambda t, n: wrapped(t),
    ),
    "other divisor": (
        lambda x: wrapped(noisy(x)),
        lambda t, n: t - tf.cast(tf.floor(t / (2 * MOD)), tf.int32) * MOD,
    ),
    "quotient of another": (
        lambda x: wrapped(noisy(x)),
        lambda t, n: t - tf.cast(tf.floor((t + t) / MOD), tf.int32) * MOD,
    ),
    "rounded up at one": (
        lambda x: wrapped(noisy(x)),
        lambda t, n: t - tf.cast(tf.floor(t / MOD), tf.int32) * (MOD + 1),
    ),
    "quotients in other places": (lambda x: wrapped(noisy(x)), with_turned_quotient),
    "moved by the count": (lambda x: wrapped(noisy(x)), lambda t, n: wrapped(t + n)),
    "small quotient": (
        lambda x: tf.cast(
            wrapped(tf.cast(tf.cast(x * 1e9, tf.int64), tf.int64), 0, MOD, tf.int16), tf.int32
        ),
        lambda t, n: tf.cast(t, tf.float32) + tf.random.normal([SIZE], 0.0, 1e4),
    ),
    "clipped": (lambda x: tf.clip_by_value(wrapped(noisy(x)), 0, 9), released),
    "scaled": (lambda x: wrapped(noisy(x)) // 3, released),
    "noise of no client": (lambda x: wrapped(rounded(x)), released),
    "half of the noise": (lambda x: wrapped(rounded(x)) + noise() * 0, released),
    "noise that is known": (
        lambda x: wrapped(rounded(x) + tf.random.stateless_poisson([SIZE], [3, 4], RATE, tf.int32)),
        released,
    ),
    "no clip": (lambda x: wrapped(tf.cast(x, tf.int32) + noise()), released),
    "remainder and the whole": (
        lambda x: wrapped(noisy(x)),
        lambda t, n: (wrapped(t), tf.cast(t, tf.float32) / MOD),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    assert not result_of(process(*FAULTS[name])).is_shown


def test_remainders_in_other_places_are_other_numbers() -> None:
    """Their difference is not zero."""

    def work(x: Any) -> Any:
        square = wrapped(tf.reshape(tf.cast(x, tf.int32), [2, 2]))
        return tf.reshape(wrapped(tf.transpose(square)) - square, [SIZE])

    rounds = process(work, lambda t, n: tf.cast(t, tf.float32) + tf.random.normal([SIZE], 0.0, 1e4))
    (part,) = result_of(rounds).parts
    assert part.multiplier <= 1e4 / ((MOD - 1) * math.sqrt(2))


def test_a_quotient_that_lost_digits_bounds_nothing() -> None:
    largest = float(np.float32(2.0**31 - 128))
    reached = in_a_larger_type(tf.fill([SIZE], largest)).numpy()[0]
    rounds = process(
        in_a_larger_type, lambda t, n: tf.cast(t, tf.float32) + tf.random.normal([SIZE], 0.0, 1e4)
    )
    (part,) = result_of(rounds).parts
    assert reached > 2.0**31
    assert 1e4 / part.multiplier >= reached * math.sqrt(SIZE)


def test_a_client_that_leaves_takes_its_noise_along() -> None:
    rounds = process(*PRIVATE["by division"])
    assert not result_of(rounds, Neighbours.ADD_OR_REMOVE).is_shown


def test_the_formula_is_right() -> None:
    x = np.arange(-3 * MOD, 3 * MOD, 7, dtype=np.int32)
    for low in (0, -MOD // 2, 5):
        rest = wrapped(tf.constant(x), low).numpy()
        assert (rest >= low).all()
        assert (rest < low + MOD).all()
        assert ((rest - x) % MOD == 0).all()
