"""Programs that join what is shown apart, and that are not private as they would be without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.derivations import NOTHING, VECTOR, derivation, nothing, round_by
from tests.assurance.privacy.test_correlated_noise import normal, of, process_of, state
from tests.assurance.privacy.test_remainders import CLIENTS, noise, rounded
from tffc.assurance.privacy.accounting import Gaussian
from tffc.assurance.privacy.question import Neighbours
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()


# Noise that is followed from round to round is at nodes, and in loops are others of their names.


def looped(name: str, is_noisy: bool) -> Callable[[Any, Any], Any]:
    def finish(s: Any, total: Any) -> Any:
        drawn = normal()
        whole = total + tf.identity(drawn - 0.5 * s["noise"], name="noise")

        def body(i: Any, t: Any) -> Any:
            return i + 1, t + tf.identity(tf.zeros([4]), name=name)

        _, out = tf.while_loop(
            lambda i, t: i < 1, body, (tf.constant(0), whole if is_noisy else total)
        )
        return state(drawn, memory=whole), out

    return finish


@pytest.mark.parametrize("name", ["noise", "other"])
def test_loop_with_node_of_the_name_of_noise(name: str) -> None:
    assert not of(process_of(looped(name, False))).is_shown
    assert of(process_of(looped(name, True))).is_shown


# Remainders of sums of remainders.


def wrapped_twice(modulus: int) -> Any:
    each = tff.tf_computation(VECTOR)(lambda x: tf.math.floormod(rounded(x) + noise(0.01), 1000))
    last = tff.tf_computation(each.type_signature.result)(lambda t: tf.math.floormod(t, 1000))

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(state: Any, values: Any) -> Any:
        sent = tff.federated_map(each, values)
        total = tff.backends.mapreduce.federated_secure_modular_sum(sent, modulus)
        return state, tff.federated_map(last, total)

    return tff.templates.IterativeProcess(nothing, next_round)


def test_sum_modulo_another_number() -> None:
    def is_shown(modulus: int) -> bool:
        return derivation(wrapped_twice(modulus), Neighbours.ZERO_OUT, CLIENTS).is_shown

    assert is_shown(1000)
    assert not is_shown(50250)  # By how many of these the sum is less tells who wrapped around.


# Numbers from one seed.


def integers(low: int | None, high: int | None = 2**62) -> Any:
    return tf.random.stateless_uniform([], [1, 2], low, high, tf.int64)


DIFFERENT = {
    "operations": lambda: tf.cast(integers(None, None) - integers(0), tf.float32),
    "ranges": lambda: tf.cast(integers(0) - integers(-5), tf.float32),
}


@pytest.mark.parametrize("numbers", DIFFERENT.values(), ids=list(DIFFERENT))
def test_different_numbers_of_a_seed(numbers: Callable[[], Any]) -> None:
    def work(x: Any) -> Any:
        return tf.clip_by_norm(x, 3.0) * (1.0 + numbers())

    def finish(total: Any) -> Any:
        return total + 6.0 * tf.random.normal([4])

    assert float(numbers()) != 0.0
    result = derivation(round_by(work, finish))
    if result.is_shown:
        (part,) = result.parts
        assert isinstance(part, Gaussian)
        assert part.multiplier < 1.0


# Laplace's noise, of the sign and the magnitude of one draw.


SIGNED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "magnitude": (lambda u: tf.math.log1p(-2.0 * tf.abs(u)), True),
    "draw": (lambda u: tf.math.log(u + 0.5), False),
    "draw from the other end": (lambda u: tf.math.log1p(-(u + 0.5)), False),
}


@pytest.mark.parametrize(("of_draw", "is_shown"), SIGNED.values(), ids=list(SIGNED))
def test_sign_and_exponential_numbers_of_a_draw(
    of_draw: Callable[[Any], Any], is_shown: bool
) -> None:
    def finish(total: Any) -> Any:
        u = tf.random.uniform([4]) - 0.5
        return total + 20.0 * tf.sign(u) * of_draw(u)

    clipped = round_by(lambda x: tf.clip_by_value(x, -1.0, 1.0), finish)
    assert derivation(clipped).is_shown is is_shown


def test_magnitude_of_a_magnitude() -> None:
    def finish(total: Any) -> Any:
        magnitude = tf.abs(tf.random.uniform([4]) - 0.5)
        sign = tf.sign(magnitude - 0.25)
        return total + 20.0 * sign * tf.math.log1p(-2.0 * magnitude)

    assert not derivation(round_by(lambda x: tf.clip_by_value(x, -1.0, 1.0), finish)).is_shown


# Tensors whose elements are smaller than those of others: two of them may be far from each other,
# though those others are not.


def replaced(work: Callable[[Any], Any]) -> float:
    """By how much a client that is replaced changes a sum."""
    deviation = 6.0

    def finish(total: Any) -> Any:
        return total + deviation * tf.random.normal(total.shape)

    result = derivation(round_by(work, finish), Neighbours.REPLACE)
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    return deviation / part.multiplier


def far(x: Any) -> Any:
    return tf.clip_by_norm(x, 3.0) + 100.0


def with_constant(x: Any) -> Any:
    return tf.concat([tf.clip_by_norm(x, 3.0)[:2], tf.constant([100.0, 100.0])], 0)


SMALLER: dict[str, tuple[Callable[[Any], Any], float]] = {
    "signs": (lambda x: far(x) * tf.sin(1e3 * x), 2 * 200.0),
    "choice": (lambda x: tf.where(x > 0.0, far(x), 0.0), 200.0),
    "rounded": (lambda x: tf.round(far(x)) * tf.sin(1e3 * x), 2 * 200.0),
    "constant part": (lambda x: with_constant(x) * tf.sin(1e3 * x), 2 * 141.0),
}


@pytest.mark.parametrize(("work", "apart"), SMALLER.values(), ids=list(SMALLER))
def test_smaller_elements_are_apart(work: Callable[[Any], Any], apart: float) -> None:
    assert replaced(work) >= apart
    assert replaced(far) == pytest.approx(6.0)


# Parts of a vector that begin at one place, and have other lengths.


@pytest.mark.parametrize("length", [2, 1])
def test_parts_of_other_lengths(length: int) -> None:
    @tff.jax.computation(VECTOR)
    def work(x: Any) -> Any:
        start = (jnp.argmax(x),)
        two, other = (jax.lax.dynamic_slice(x, start, (n,)) for n in (2, length))
        scaled = x * jnp.minimum(1.0, 3.0 / jnp.linalg.norm(x))
        return scaled * (1.0 + (jnp.sum(two) - jnp.sum(other)))

    last = tff.tf_computation(VECTOR)(lambda total: total + 6.0 * tf.random.normal([4]))

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(memory: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(work, values))
        return memory, tff.federated_map(last, total)

    process = tff.templates.IterativeProcess(nothing, next_round)
    assert derivation(process).is_shown is (length == 2)


# What is public may be added to noise, which is then not around zero.


SHIFTED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "neither": (lambda u: tf.sign(u) * tf.math.log1p(-2.0 * tf.abs(u)), True),
    "both": (lambda u: tf.sign(u) * tf.math.log1p(-2.0 * tf.abs(u)) + 7.0, True),
    "sign": (lambda u: (tf.sign(u) + 1.0) * tf.math.log1p(-2.0 * tf.abs(u)), False),
    "magnitude": (lambda u: tf.sign(u) * (tf.math.log1p(-2.0 * tf.abs(u)) - 7.0), False),
}


@pytest.mark.parametrize(("of_draw", "is_shown"), SHIFTED.values(), ids=list(SHIFTED))
def test_shifted_parts_of_noise(of_draw: Callable[[Any], Any], is_shown: bool) -> None:
    def finish(total: Any) -> Any:
        return total + 20.0 * of_draw(tf.random.uniform([4]) - 0.5)

    clipped = round_by(lambda x: tf.clip_by_value(x, -1.0, 1.0), finish)
    assert derivation(clipped).is_shown is is_shown


@pytest.mark.parametrize("has_data", [True, False])
def test_client_adds_shifted_noise(has_data: bool) -> None:
    def is_shown(shift: float, neighbours: Neighbours) -> bool:
        def work(x: Any) -> Any:
            drawn = 6.0 * (tf.random.normal([4]) + shift)
            return tf.clip_by_norm(x, 3.0) + drawn if has_data else drawn

        return derivation(round_by(work, lambda total: total), neighbours).is_shown

    assert is_shown(0.0, Neighbours.ZERO_OUT)
    assert not is_shown(100.0, Neighbours.ZERO_OUT)
    assert is_shown(100.0, Neighbours.REPLACE)


# Digits that TensorFlow lost, in integers that JAX makes wider.


@pytest.mark.parametrize("is_wider", [False, True])
def test_wider_multiples_of_quotients(is_wider: bool) -> None:
    def work(x: Any) -> Any:
        whole = rounded(x) + noise(1 / CLIENTS)
        return whole, tf.cast(tf.floor(tf.cast(whole, tf.float64) * (1 / 3000)), tf.int32) * 3000

    whole = tff.TensorType(np.int32, [4])
    pair = tff.tf_computation(VECTOR)(work)
    with jax.enable_x64(True):
        kind = jnp.int64 if is_wider else jnp.int32
        rest = tff.jax.computation(whole, whole)(lambda s, q: s.astype(kind) - q.astype(kind))
    last = tff.tf_computation(rest.type_signature.result)(lambda t: tf.math.floormod(t, 3000))

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(memory: Any, values: Any) -> Any:
        both = tff.federated_map(pair, values)
        total = tff.federated_sum(tff.federated_map(rest, (both[0], both[1])))
        return memory, tff.federated_map(last, total)

    process = tff.templates.IterativeProcess(nothing, next_round)
    assert derivation(process, Neighbours.ZERO_OUT, CLIENTS).is_shown is not is_wider
