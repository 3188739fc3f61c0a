"""What is known of the elements of tensors holds at their places, in their types and shapes.

Each program was once claimed to be private, by a fact that holds of other elements than it said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.derivations import derivation, round_by
from tffc.assurance.privacy.accounting import Gaussian
from tffc.assurance.privacy.question import Neighbours
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

WORKS: dict[str, Callable[[Any], Any]] = {}
"""What clients do in rounds that must not be shown."""


def work(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    WORKS[function.__name__] = function
    return function


def clipped(x: Any) -> Any:
    return x * tf.minimum(1.0, 1.0 / tf.norm(x))


def in_box(x: Any) -> Any:
    return tf.clip_by_value(x, -1.0, 1.0)


def noisy(total: Any) -> Any:
    return tf.cast(total, tf.float32) + tf.random.normal(total.shape, stddev=2.0)


# Values at other places.


def square(x: Any) -> Any:
    return tf.reshape(x, [2, 2])


@work
def comparison_of_transposed(x: Any) -> Any:
    small = tf.transpose(tf.abs(square(x)) <= 1.0)
    return tf.where(small, tf.abs(square(x)), 0.0)


@work
def comparison_of_transposed_magnitudes(x: Any) -> Any:
    small = tf.transpose(tf.abs(square(x))) <= 1.0
    return tf.where(small, square(x), 0.0)


@work
def comparison_of_reshaped(x: Any) -> Any:
    small = tf.reshape(tf.abs(x) <= 1.0, [4, 1])
    return tf.reshape(tf.where(small, tf.abs(x), 0.0), [16])


@work
def choice_of_transposed(x: Any) -> Any:
    positive = square(x) > 0.0
    chosen = tf.where(positive, tf.ones([2, 2]), 100.0 * square(x))
    return tf.where(positive, tf.transpose(chosen), 0.0)


@work
def stack_of_transposed(x: Any) -> Any:
    stack = tf.stack([in_box(x)[0], in_box(x)[1], x[2], in_box(x)[3]])
    return tf.unstack(tf.reshape(tf.transpose(square(stack)), [4]))[1]


# Tensors that look the same.


def zero_of(x: Any) -> Any:
    """An integer zero that nothing is known of."""
    return tf.cast(0.0 * x[0], tf.int32)


@work
def transposed_in_two_orders(x: Any) -> Any:
    orders = [tf.constant([0, 1]), tf.constant([1, 0])]
    first, second = (tf.transpose(square(x), order + zero_of(x)) for order in orders)
    return tf.ensure_shape(first - second, [2, 2])


@work
def stacked_along_two_axes(x: Any) -> Any:
    rows = tf.reshape(x, [zero_of(x) + 2, -1])
    first, second = (tf.stack([rows, rows + 1.0], axis) for axis in (0, 1))
    return tf.reshape(first - second, [8])


@work
def slices_with_two_masks(x: Any) -> Any:
    at = zero_of(x) + 1
    first = tf.strided_slice(x, [at], [at + 1], [1], begin_mask=1)
    second = tf.strided_slice(x, [at], [at + 1], [1])
    return tf.reshape(first[:1] - second[:1], [1])


@work
def sections_of_unknown_lengths(x: Any) -> Any:
    none = zero_of(x)
    return tf.reduce_sum(tf.split(in_box(x), tf.stack([4 + none, none]))[0])


# Shapes.


@work
def multiple_of_a_repeated_tensor(x: Any) -> Any:
    rows = tf.where(tf.norm(x) < 3.0, x, tf.zeros([5, 4]))
    return rows * tf.minimum(1.0, 1.0 / tf.norm(x))


@work
def no_number_of_a_repeated_tensor(x: Any) -> Any:
    small = in_box(x[0])
    return tf.reduce_sum(tf.where(x[1] > 0.0, small, tf.fill([100], np.float32(np.nan))), 0)


# Numbers that are not finite.


@work
def divisor_that_may_be_infinite(x: Any) -> Any:
    divisor = 1.0 / tf.where(x[0] > 0.0, tf.clip_by_value(x[1], 0.5, 1.0), np.float32(np.inf))
    return clipped(x) / (divisor + 1e-6)


@work
def norm_that_may_be_no_number(x: Any) -> Any:
    norm = tf.where(x[0] > 0.0, tf.norm(x), np.float32(np.nan))
    return x * tf.where(norm > 1.0, 0.0, 1.0)


# Types.


@work
def norm_that_overflows(x: Any) -> Any:
    whole = tf.cast(x, tf.int32)
    norm = tf.sqrt(tf.cast(tf.reduce_sum(whole * whole), tf.float32))
    return tf.cast(whole, tf.float32) * tf.minimum(1.0, 10.0 / norm)


@work
def norm_in_half_precision(x: Any) -> Any:
    norm = tf.norm(tf.cast(x, tf.float16))
    return x * tf.cast(tf.minimum(tf.constant(1.0, tf.float16), 1.0 / norm), tf.float32)


@pytest.mark.parametrize("name", WORKS)
def test_no_bound(name: str) -> None:
    result = derivation(round_by(WORKS[name], noisy))
    assert [step.step for step in result.missing] == ["bound of each contribution"]


def multiplier(function: Callable[[Any], Any]) -> float:
    result = derivation(round_by(function, noisy))
    assert result.is_shown
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    return part.multiplier


def test_negative_numbers_without_signs() -> None:
    bounds = [
        lambda x: tf.cast(in_box(x[0]), tf.uint8),
        lambda x: tf.cast(x[0] > 0.0, tf.uint8) - tf.constant(1, tf.uint8),
    ]
    assert [multiplier(bound) for bound in bounds] == pytest.approx([2 / 255] * 2)


def test_a_choice_has_the_shape_of_all_operands() -> None:
    choices = [
        lambda s, x: tf.where(tf.zeros([100]) > tf.reduce_sum(x), s, s),
        lambda s, x: tf.where(True, s, tf.zeros([100])),
    ]

    def summed(choice: Any) -> Callable[[Any], Any]:
        return lambda x: tf.reduce_sum(choice(in_box(x[0]), x), 0)

    for choice in choices:
        assert multiplier(summed(choice)) == pytest.approx(2 / 100)


# Sums over clients and their noise.


def shown(work: Any, finish: Any, least_clients: int = 1) -> list[str]:
    result = derivation(round_by(work, finish), Neighbours.ZERO_OUT, least_clients)
    return [step.step for step in result.missing] or [str(part) for part in result.parts]


def noise() -> Any:
    return tf.random.normal([4], stddev=2.0)


def test_the_noise_of_clients_is_in_one_sum_alone() -> None:
    def used_again(x: Any) -> Any:
        n = noise()
        return clipped(x) + n, in_box(n)

    def shared(x: Any) -> Any:
        n = noise()
        return clipped(x) + (noise() + n), in_box(x) + n

    assert shown(used_again, lambda a, b: (a, b + noise())) == ["noise drawn once"]
    assert shown(shared, lambda a, b: (a, b)) == ["noise drawn once"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tf.random.uniform([4]),
        lambda: tf.math.log(tf.random.uniform([4])),
        lambda: tf.random.poisson([4], 100.0),
    ],
)
def test_noise_without_a_bound_hides_nothing_at_clients(draw: Callable[[], Any]) -> None:
    assert shown(lambda x: clipped(x) + draw(), lambda a: a) == ["noise"]
    assert shown(lambda x: draw(), lambda a: a) == ["noise"]
    (part,) = shown(lambda x: clipped(x) + draw(), lambda a: a + noise()) or [""]
    assert part in ("bound of each contribution", "noise")


def test_the_mean_of_noise_is_less_than_its_sum() -> None:
    contribute = tff.tf_computation(tff.TensorType(np.float32, [4]))(lambda x: clipped(x) + noise())

    @tff.federated_computation(
        tff.types.at_server(()), tff.types.at_clients(tff.TensorType(np.float32, [4]))
    )
    def following(state: Any, values: Any) -> Any:
        return state, tff.federated_mean(tff.federated_map(contribute, values))

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_value((), tff.SERVER)

    process = tff.templates.IterativeProcess(initialize, following)
    result = derivation(process, Neighbours.ZERO_OUT, least_clients=100)
    assert [str(part) for part in result.parts] == ["Gaussian, noise multiplier 20"]


def aggregated(accumulate: Any, merge: Any) -> list[str]:
    """The steps that are missing where squares are added up by functions of the program."""
    kind = tff.TensorType(np.float32, [2, 2])
    data = tff.TensorType(np.float32, [4])
    contribute = tff.tf_computation(data)(lambda x: square(clipped(x)))
    zero = tff.tf_computation(lambda: tf.zeros([2, 2]))
    add, join = (tff.tf_computation(kind, kind)(each) for each in (accumulate, merge))
    report = tff.tf_computation(kind)(lambda total: total)
    finish = tff.tf_computation(kind)(noisy)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def following(state: Any, values: Any) -> Any:
        each = tff.federated_map(contribute, values)
        total = tff.federated_aggregate(each, zero(), add, join, report)
        return state, tff.federated_map(finish, total)

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_value((), tff.SERVER)

    result = derivation(tff.templates.IterativeProcess(initialize, following))
    return [step.reason for step in result.missing]


def plus(first: Any, second: Any) -> Any:
    return first + second


@pytest.mark.parametrize(
    ("accumulate", "merge"),
    [
        (lambda a, x: tf.transpose(a + x), plus),
        (plus, lambda a, b: tf.transpose(a + b)),
        (lambda a, x: a + a + x, plus),
        (plus, lambda a, b: a + b + b),
        (lambda a, x: 0.9 * a + x, plus),
        (lambda a, x: tf.maximum(a, x), lambda a, b: tf.maximum(a, b)),
        (lambda a, x: a + x + 1e-3 * a, plus),
    ],
)
def test_what_only_adds_up_is_a_sum(accumulate: Any, merge: Any) -> None:
    assert aggregated(plus, plus) == []
    assert aggregated(accumulate, merge) == [
        "its functions do more than to add up what clients have"
    ]
