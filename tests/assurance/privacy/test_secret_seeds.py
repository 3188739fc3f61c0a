"""Seeds that a user vouches for, and what nobody can vouch for."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import VECTOR, derivation, round_by
from tffc.assurance.privacy.derivation import Derivation
from tffc.assurance.privacy.quantities.seeds import repeats
from tffc.assurance.privacy.question import Neighbours

SEED = tff.TensorType(np.int64, [2])
STATE = tff.to_type(
    collections.OrderedDict(seed=SEED, other=tff.TensorType(np.int64, [2]), memory=VECTOR)
)


def micros() -> Any:
    return tf.floor(tf.timestamp() * 1e6)


def clock() -> Any:
    return tf.cast(tf.stack([micros(), tf.constant(0.0, tf.float64)]), tf.int64)


def normal(seed: Any, scale: float = 2.0) -> Any:
    return scale * tf.random.stateless_normal([4], seed=seed)


def state(seed: Any, other: Any = None, memory: Any = None) -> Any:
    return collections.OrderedDict(
        seed=seed,
        other=tf.zeros([2], tf.int64) if other is None else other,
        memory=tf.zeros([4]) if memory is None else memory,
    )


def process_of(first: Callable[[], Any], finish: Callable[[Any, Any], Any]) -> Any:
    """Rounds that add up clipped vectors; `finish` gets the state and the sum."""
    begin = tff.tf_computation(first)
    end = tff.tf_computation(STATE, VECTOR)(finish)
    clip = tff.tf_computation(VECTOR)(lambda x: tf.clip_by_norm(x, 1.0))

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(begin, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
    def following(memory: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(clip, values))
        result = tff.federated_map(end, (memory, total))
        return result[0], result[1]

    return tff.templates.IterativeProcess(initialize, following)


def of(
    finish: Callable[[Any, Any], Any],
    first: Callable[[], Any] = lambda: state(clock()),
    vouches: bool = True,
) -> Derivation:
    return derivation(process_of(first, finish), has_secret_seeds=vouches)


def next_seed(s: Any, step: int = 1) -> Any:
    return state(s["seed"] + step)


def parts(result: Derivation) -> list[str]:
    return [f"{step.step}: {step.reason}" for step in result.missing] or list(
        map(str, result.parts)
    )


GAUSSIAN = ["Gaussian, noise multiplier 2"]


def test_a_seed_that_grows() -> None:
    result = of(lambda s, total: (next_seed(s), total + normal(s["seed"])))
    assert parts(result) == GAUSSIAN
    assert (
        "memory.seed begins as a seed that cannot be guessed, and is never the same as another "
        "seed, whatever is added to either" in result.assumptions
    )
    assert not any("reads" in assumption for assumption in result.assumptions)


def test_a_seed_of_the_time_of_the_round() -> None:
    result = of(
        lambda s, total: (s, total + normal(clock())), lambda: state(np.array([3, 4], np.int64))
    )
    assert parts(result) == GAUSSIAN
    (text,) = [each for each in result.assumptions if "reads" in each]
    assert re.sub(":[0-9]+ ", ":N ", text) == (
        "the time that Timestamp in tests/assurance/privacy/test_secret_seeds.py:N reads, in 1e+06 "
        "steps a second, cannot be guessed, and is never the same twice, in no other round and at "
        "no other client"
    )


def test_a_seed_of_the_time_at_clients() -> None:
    process = round_by(lambda x: tf.clip_by_norm(x, 1.0) + normal(clock()), lambda total: total)
    result = derivation(process, Neighbours.ZERO_OUT, 25, has_secret_seeds=True)
    assert parts(result) == ["Gaussian, noise multiplier 10"]
    assert derivation(process, Neighbours.ZERO_OUT, 25).missing


def test_seeds_that_are_drawn_first() -> None:
    def first() -> Any:
        return state(tf.random.uniform([2], maxval=2**40, dtype=tf.int64))

    assert parts(of(lambda s, total: (next_seed(s), total + normal(s["seed"])), first)) == GAUSSIAN


def test_two_draws_of_seeds_that_are_apart() -> None:
    def finish(s: Any, total: Any) -> Any:
        both = normal(s["seed"]), normal(s["seed"] + 1)
        return next_seed(s, 2), (total + both[0], 2.0 * total + both[1])

    (part,) = parts(of(finish))
    assert part == f"Gaussian, noise multiplier {2 / 5**0.5:.7g}"


def test_no_seed_is_secret_unless_somebody_vouches() -> None:
    def finish(s: Any, total: Any) -> Any:
        return next_seed(s), total + normal(s["seed"])

    assert of(finish, vouches=False).missing
    assert of(lambda s, total: (s, total + normal(clock())), vouches=False).missing


def test_the_reason_if_a_seed_repeats() -> None:
    result = of(lambda s, total: (s, total + normal(s["seed"])))
    assert "the seed in memory.seed may be the same in two rounds" in parts(result)[0]


SECOND = np.array([0, 1], np.int64)


def shared_clock() -> Any:
    time = clock()
    return state(time, time)


def early_noise() -> Any:
    time = clock()
    return state(time, memory=normal(time + 1))


def told(time: Any, condition: Any) -> Any:
    """Two draws that are equal if a condition holds."""
    first = tf.stack([time, tf.constant(1.0, tf.float64)])
    second = tf.stack([time, tf.cast(condition, tf.float64)])
    return [tf.random.stateless_uniform([9], tf.cast(v, tf.int64)) for v in (first, second)]


ATTACKS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[], Any]]] = {
    "a constant": (
        lambda s, t: (next_seed(s), t + normal(s["seed"])),
        lambda: state(tf.constant([1, 2], tf.int64)),
    ),
    "a constant that is computed": (
        lambda s, t: (next_seed(s), t + normal(s["seed"])),
        lambda: state(
            tf.bitwise.bitwise_xor(tf.constant([1, 2], tf.int64), np.array([5, 6], np.int64))
        ),
    ),
    "the same in each round": (lambda s, t: (s, t + normal(s["seed"])), lambda: state(clock())),
    "back and forth": (
        lambda s, t: (state(-1 - s["seed"]), t + normal(s["seed"])),
        lambda: state(clock()),
    ),
    "every second round": (
        lambda s, t: (next_seed(s), t + normal(s["seed"] // 2)),
        lambda: state(clock()),
    ),
    "that of the next round": (
        lambda s, t: (next_seed(s), (t + normal(s["seed"]), normal(s["seed"] + 1))),
        lambda: state(clock()),
    ),
    "that of the last round": (
        lambda s, t: (next_seed(s, 2), (t + normal(s["seed"]), normal(s["seed"] - 4))),
        lambda: state(clock()),
    ),
    "that of the last round, memory": (
        lambda s, t: (
            state(s["seed"] + 1, s["seed"]),
            (t + normal(s["seed"]), normal(s["other"])),
        ),
        lambda: state(clock()),
    ),
    "twice in a round": (
        lambda s, t: (next_seed(s), (t + normal(s["seed"]), 2.0 * t + normal(s["seed"]))),
        lambda: state(clock()),
    ),
    "as other numbers": (
        lambda s, t: (
            next_seed(s),
            (t + normal(s["seed"]), tf.random.stateless_uniform([9], seed=s["seed"])),
        ),
        lambda: state(clock()),
    ),
    "the seed is released": (
        lambda s, t: (next_seed(s), (t + normal(s["seed"]), s["seed"] + 7)),
        lambda: state(clock()),
    ),
    "a part of it is released": (
        lambda s, t: (next_seed(s), (t + normal(s["seed"]), s["seed"][0] % 2**40)),
        lambda: state(clock()),
    ),
    "it is kept and released": (
        lambda s, t: (
            state(s["seed"] + 1, s["seed"]),
            (t + normal(s["seed"]), s["other"]),
        ),
        lambda: state(clock()),
    ),
    "it is shared": (
        lambda s, t: (
            state(s["seed"] + 1, s["other"] + 1),
            (t + normal(s["seed"]), 2.0 * t + normal(s["other"])),
        ),
        shared_clock,
    ),
    "it is shared and released": (
        lambda s, t: (state(s["seed"] + 1, s["other"]), (t + normal(s["seed"]), s["other"])),
        shared_clock,
    ),
    "another reading is released": (
        lambda s, t: (state(s["seed"] + 1, s["other"]), (t + normal(s["seed"]), s["other"])),
        lambda: state(clock(), clock()),
    ),
    "its noise is drawn first": (
        lambda s, t: (next_seed(s), (t + normal(s["seed"] + 1), s["memory"])),
        early_noise,
    ),
    "the time of the round, released": (
        lambda s, t: (s, (t + normal(clock()), clock())),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "draws that are equal if the noise is small": (
        lambda s, t: (
            s,
            (lambda time, noise: (t + noise, told(time, noise[0] > 0.0)))(
                micros(), tf.random.normal([4], stddev=2.0)
            ),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "draws that are equal if a digit of the time is even": (
        lambda s, t: (
            s,
            (lambda time: (t + normal(clock()), told(time, time // 1024.0 % 2.0 > 0.0)))(micros()),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time of the round in seconds": (
        lambda s, t: (
            s,
            t + normal(tf.cast(tf.stack([tf.floor(tf.timestamp())] * 2), tf.int64)),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time and much more": (
        lambda s, t: (
            s,
            t + normal(tf.cast(tf.stack([tf.floor((tf.timestamp() + 1e30) * 1e6)] * 2), tf.int64)),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time in numbers of few digits": (
        lambda s, t: (
            s,
            t
            + normal(tf.cast(tf.stack([tf.cast(tf.timestamp() * 1e6, tf.float32)] * 2), tf.int64)),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time in small integers": (
        lambda s, t: (s, t + normal(tf.cast(clock(), tf.int32))),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time in steps that nothing can count": (
        lambda s, t: (
            s,
            t + normal(tf.cast(tf.stack([tf.floor(tf.timestamp() * 1e12)] * 2), tf.int64)),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "the time that overflows": (
        lambda s, t: (
            s,
            t
            + normal(
                tf.cast(tf.stack([tf.floor(tf.timestamp() * 1e300 * 1e20 / 1e314)] * 2), tf.int64)
            ),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "one reading for two sums": (
        lambda s, t: (
            s,
            (lambda time: (t + normal(time), 2.0 * t + normal(time + 1)))(clock()),
        ),
        lambda: state(np.array([1, 2], np.int64)),
    ),
    "a small range": (
        lambda s, t: (next_seed(s), t + normal(s["seed"])),
        lambda: state(tf.random.uniform([2], maxval=99, dtype=tf.int64)),
    ),
    "it wraps around": (
        lambda s, t: (next_seed(s, 2**62), t + normal(s["seed"])),
        lambda: state(clock()),
    ),
    "its elements are swapped": (
        lambda s, t: (state(s["seed"][::-1] + SECOND), t + normal(s["seed"])),
        lambda: state(clock()),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str) -> None:
    finish, first = ATTACKS[name]
    result = of(finish, first)
    assert result.missing
    assert {step.step for step in result.missing} <= {
        "noise",
        "noise drawn once",
        "noise kept secret",
    }


def test_a_seed_of_a_client_is_no_secret() -> None:
    def work(x: Any) -> Any:
        return tf.clip_by_norm(x, 1.0) + normal(tf.cast(x[:2], tf.int64))

    process = round_by(work, lambda total: total)
    result = derivation(process, Neighbours.ZERO_OUT, has_secret_seeds=True)
    assert [step.step for step in result.missing] == ["noise"]


@pytest.mark.parametrize(
    ("step", "offsets", "is_repeated"),
    [
        ((1, 1), [(0, 0)], False),
        ((0, 0), [(0, 0)], True),
        ((0, 0), [], True),
        ((2, 2), [(0, 0), (1, 1)], False),
        ((2, 2), [(0, 0), (3, 3)], False),
        ((2, 2), [(0, 0), (4, 4)], True),
        ((-2, -2), [(0, 0), (6, 6)], True),
        ((2, 2), [(0, 0), (4, 2)], False),
        ((0, 3), [(1, 0), (1, 9)], True),
        ((0, 3), [(1, 0), (2, 9)], False),
    ],
)
def test_repeats(step: Any, offsets: Any, is_repeated: bool) -> None:
    assert repeats(step, offsets) == is_repeated
    drawn = [
        tuple(o + number * s for o, s in zip(offset, step, strict=True))
        for number in range(9)
        for offset in offsets
    ]
    if offsets:
        assert (len(set(drawn)) < len(drawn)) == is_repeated
