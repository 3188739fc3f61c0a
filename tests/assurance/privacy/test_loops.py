"""What is known of what a loop leaves: its condition does not hold for it, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.assurance.privacy.derivations import derivation, round_by
from tffc.assurance.privacy.accounting import Gaussian
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

MOST, DEVIATION = 2.5, 5.0

Work = Callable[[Any], Any]


def noisy(total: Any) -> Any:
    return total + tf.random.normal(total.shape, stddev=DEVIATION)


def at_random(x: Any) -> Any:
    return tf.floor(x + tf.random.uniform(x.shape))


def too_long(x: Any) -> Any:
    return tf.norm(x) > MOST


def until_short(x: Any) -> Any:
    """Conditional rounding: it is tried again until the vector is short."""
    return tf.while_loop(too_long, lambda _: [at_random(0.1 * x)], [at_random(x)])[0]


def until_the_square_is_small(x: Any) -> Any:
    return tf.while_loop(
        lambda y: tf.reduce_sum(y * y) > MOST**2, lambda y: [at_random(0.1 * y)], [x]
    )[0]


def until_nothing_is_left(x: Any) -> Any:
    return tf.while_loop(
        lambda y, n: tf.logical_not(tf.norm(y) <= MOST), lambda y, n: [0.5 * y, n + 1], [x, 0]
    )[0]


def with_bound_that_is_carried(x: Any) -> Any:
    return tf.while_loop(
        lambda y, most: tf.norm(y) > most,
        lambda y, most: [at_random(0.1 * x), most],
        [x, tf.constant(MOST)],
    )[0]


def truncated_afterwards(x: Any) -> Any:
    return tf.cast(tf.cast(until_short(x), tf.int32), tf.float32)


PRIVATE: dict[str, tuple[Work, float]] = {
    "until short": (until_short, MOST),
    "square": (until_the_square_is_small, MOST),
    "negated": (until_nothing_is_left, MOST),
    "carried": (with_bound_that_is_carried, MOST),
    "truncated": (truncated_afterwards, MOST),
    "scaled": (lambda x: 3.0 * until_short(x), 3 * MOST),
    "rounded": (lambda x: tf.round(until_short(x)), MOST + 1.0),
    "one norm after another": (lambda x: until_short(tf.clip_by_norm(x, 1.0)), MOST),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_bound(name: str) -> None:
    work, bound = PRIVATE[name]
    result = derivation(round_by(lambda x: work(x), noisy))
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    assert math.isclose(part.multiplier, DEVIATION / bound, rel_tol=1e-6)


def test_two_tensors_together() -> None:
    def work(x: Any) -> Any:
        def long(a: Any, b: Any) -> Any:
            return tf.sqrt(tf.reduce_sum(a * a) + tf.reduce_sum(b * b)) > MOST

        return tf.while_loop(long, lambda a, b: [at_random(0.5 * a), 0.5 * b], [x, x[:2]])

    result = derivation(round_by(work, lambda a, b: (noisy(a), noisy(b))))
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    assert math.isclose(part.multiplier, DEVIATION / MOST, rel_tol=1e-6)


def loop(condition: Callable[..., Any], body: Callable[..., Any], *first: Any, **more: Any) -> Any:
    return tf.while_loop(condition, body, list(first), **more)[0]


FAULTS: dict[str, Work] = {
    "stops after some tries": lambda x: loop(
        lambda y, n: tf.logical_and(too_long(y), n < 9),
        lambda y, n: [at_random(x), n + 1],
        x,
        0,
    ),
    "stops after most iterations": lambda x: loop(
        too_long, lambda y: [at_random(x)], x, maximum_iterations=9
    ),
    "of another vector": lambda x: loop(
        lambda y, z: too_long(z), lambda y, z: [at_random(x), 0.5 * z], x, x
    ),
    "of the vector before": lambda x: loop(
        lambda y, last: too_long(last), lambda y, last: [at_random(x), y], x, x
    ),
    "of what is given": lambda x: loop(lambda y: too_long(x), lambda y: [at_random(x)], x),
    "while short": lambda x: loop(lambda y: tf.norm(y) < MOST, lambda y: [at_random(3 * x)], x),
    "of a part": lambda x: loop(lambda y: too_long(y[:2]), lambda y: [at_random(x)], x),
    "of a product": lambda x: loop(lambda y: too_long(y * x), lambda y: [at_random(x)], x),
    "own bound": lambda x: loop(
        lambda y: tf.norm(y) > tf.abs(x[0]), lambda y: [at_random(0.1 * x)], x
    ),
    "bound that grows": lambda x: loop(
        lambda y, most: tf.norm(y) > most,
        lambda y, most: [at_random(x), 2.0 * most],
        x,
        tf.constant(MOST),
    ),
    "of one of two": lambda x: loop(
        lambda y, z: tf.logical_and(too_long(y), too_long(z)),
        lambda y, z: [at_random(x), 0.5 * z],
        x,
        x,
    ),
    "mean of squares": lambda x: loop(
        lambda y, n: tf.reduce_mean(y * y) * n > MOST, lambda y, n: [0.5 * y, 0.1 * n], x, x[0]
    ),
    "added afterwards": lambda x: until_short(x) + x,
    "what was there before": lambda x: tf.where(tf.norm(until_short(x)) < 9.0, x, x),
    "no iteration": lambda x: loop(lambda y: tf.constant(False), lambda y: [at_random(x)], x),
    "longer with each": lambda x: loop(
        lambda y: tf.size(y) < 9, lambda y: [tf.concat([y, x], 0)], x,
        shape_invariants=[tf.TensorShape([None])],
    )[:4],
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    work = FAULTS[name]
    assert not derivation(round_by(lambda x: tf.ensure_shape(work(x), [4]), noisy)).is_shown


def grown(most: int) -> Work:
    """Return a function that repeats a vector until it has some number of elements."""

    def work(x: Any) -> Any:
        longer = tf.while_loop(
            lambda y: tf.size(y) < most,
            lambda y: [tf.concat([y, x], 0)],
            [x],
            shape_invariants=[tf.TensorShape([None])],
        )[0]
        return tf.reduce_sum(tf.clip_by_value(longer, -1.0, 1.0))

    return work


def test_the_shape_that_a_loop_begins_with_is_not_the_one_that_it_ends_with() -> None:
    assert not derivation(round_by(grown(999), noisy)).is_shown


def test_a_short_loop_is_looked_at_iteration_by_iteration() -> None:
    (part,) = derivation(round_by(grown(99), noisy)).parts
    assert isinstance(part, Gaussian)
    assert math.isclose(part.multiplier, DEVIATION / 100, rel_tol=1e-6)


def test_assertions_in_loops_are_not_certain() -> None:
    """What holds before the first iteration need not hold later."""

    def finish(total: Any) -> Any:
        def step(n: Any) -> Any:
            with tf.control_dependencies([tf.debugging.Assert(n >= 0, [total])]):
                return n - tf.cast(tf.reduce_max(total) > 3.0, tf.int32)

        last = tf.while_loop(lambda n: n < 5, step, [tf.constant(0)])[0]
        with tf.control_dependencies([last]):
            return noisy(total)

    result = derivation(round_by(lambda x: tf.clip_by_norm(x, 1.0), finish))
    assert "no other release" in {step.step for step in result.missing}


def test_the_condition_is_about_the_given_type() -> None:
    """Integers whose squares do not fit their type have a small norm there."""

    def work(x: Any) -> Any:
        y = tf.cast(x, tf.int32)
        return tf.cast(loop(lambda y: tf.reduce_sum(y * y) > 9, lambda y: [y // 2], y), tf.float32)

    assert not derivation(round_by(work, noisy)).is_shown
