"""Faults in what the server of the private rounds of `planted_rounds` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.assurance.privacy.planted_rounds import (
    SCALE,
    Base,
    Server,
    Tensors,
    of_normal_noise,
    of_several,
    tf,
    with_real_noise,
    with_server_noise,
)

SERVERS: dict[str, tuple[Server, Callable[[Base], bool]]] = {}


def server(fits: Callable[[Base], bool] = with_server_noise) -> Callable[[Any], Any]:
    """Return a decorator that enters a fault of the server; it gets a sum and its noise, and
    returns what takes the place of the noisy sum."""

    def enter(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def whole(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
            return list(state["kept"]), [function(t, base.noise(t.shape)) for t in sums]

        SERVERS[function.__name__] = whole, fits
        return function

    return enter


def whole_server(fits: Callable[[Base], bool] = with_server_noise) -> Callable[[Server], Server]:
    """Return a decorator that enters a fault of the server for all sums."""

    def enter(function: Server) -> Server:
        SERVERS[function.__name__] = function, fits
        return function

    return enter


@server()
def no_noise(t: Any, n: Any) -> Any:
    return t


@server()
def noise_times_zero(t: Any, n: Any) -> Any:
    return t + n * tf.cast(0, n.dtype)


@server()
def noise_minus_itself(t: Any, n: Any) -> Any:
    return t + (n - n)


@server()
def noise_taken_away(t: Any, n: Any) -> Any:
    return (t + n) - n


@server()
def noise_not_chosen(t: Any, n: Any) -> Any:
    return tf.where(tf.zeros(t.shape) > 1.0, t + n, t)


@server()
def noise_where_positive(t: Any, n: Any) -> Any:
    return tf.where(t > 0, t + n, t)


@server()
def noise_beside_the_sum(t: Any, n: Any) -> Any:
    return tf.stack([t, n])


@server()
def sum_beside_the_noisy_sum(t: Any, n: Any) -> Any:
    return tf.stack([t + n, t])


@server()
def largest_beside_the_noisy_sum(t: Any, n: Any) -> Any:
    return tf.concat([tf.reshape(t + n, [-1]), [tf.reduce_max(t)]], 0)


@server()
def noise_beside_the_noisy_sum(t: Any, n: Any) -> Any:
    return tf.stack([t + n, n])


@server()
def noise_overwritten(t: Any, n: Any) -> Any:
    flat = tf.reshape(t + n, [-1])
    rest = tf.range(flat.shape[0])[:, tf.newaxis]
    return tf.tensor_scatter_nd_update(flat, rest, tf.reshape(t, [-1]))


@server()
def first_element_overwritten(t: Any, n: Any) -> Any:
    flat, sums = tf.reshape(t + n, [-1]), tf.reshape(t, [-1])
    return tf.concat([sums[:1], flat[1:]], 0)


@server()
def one_noise_for_all_elements(t: Any, n: Any) -> Any:
    return t + tf.reshape(n, [-1])[0]


@server()
def noise_of_a_row_for_all(t: Any, n: Any) -> Any:
    return t + tf.broadcast_to(n[:1], t.shape)


@server()
def noise_of_two_elements_repeated(t: Any, n: Any) -> Any:
    few = tf.tile(tf.reshape(n, [-1])[:2], [8])
    return t + tf.reshape(few[: int(np.prod(t.shape))], t.shape)


@server()
def gathered_noise(t: Any, n: Any) -> Any:
    flat = tf.reshape(n, [-1])
    return t + tf.reshape(tf.gather(flat, tf.zeros(flat.shape, tf.int32)), t.shape)


@server()
def sorted_noise(t: Any, n: Any) -> Any:
    return t + tf.sort(n)


@server()
def running_noise(t: Any, n: Any) -> Any:
    return t + tf.cumsum(n) - n


@server()
def noise_without_sign(t: Any, n: Any) -> Any:
    return t + tf.abs(n)


@server()
def clipped_noise(t: Any, n: Any) -> Any:
    return t + tf.clip_by_value(n, tf.cast(-1, n.dtype), tf.cast(1, n.dtype))


@server()
def noise_above_zero(t: Any, n: Any) -> Any:
    return t + tf.maximum(n, tf.zeros_like(n))


@server()
def squared_noise(t: Any, n: Any) -> Any:
    return t + n * n


@server()
def sign_of_the_noise(t: Any, n: Any) -> Any:
    return t + tf.sign(n)


@server(with_real_noise)
def rounded_noise(t: Any, n: Any) -> Any:
    return t + tf.round(n / 100.0)


@server()
def noise_for_some_elements(t: Any, n: Any) -> Any:
    flat = tf.reshape(n, [-1])
    mask = tf.one_hot(0, flat.shape[0], dtype=n.dtype)
    return t + tf.reshape(flat * mask, t.shape)


@server(with_real_noise)
def noise_in_proportion_to_the_sum(t: Any, n: Any) -> Any:
    return t + tf.abs(t) * n


@server(with_real_noise)
def noise_in_proportion_to_the_norm(t: Any, n: Any) -> Any:
    return t + n * tf.norm(t)


@server(with_real_noise)
def noise_that_falls_with_the_sum(t: Any, n: Any) -> Any:
    return t + n * tf.exp(-tf.reduce_sum(t))


@server(with_real_noise)
def noise_divided_by_the_sum(t: Any, n: Any) -> Any:
    return t + n / tf.maximum(tf.abs(t), 1.0)


@server(with_real_noise)
def half_of_the_sum_without_noise(t: Any, n: Any) -> Any:
    return 0.5 * (t + n) + 0.5 * t


@server(with_real_noise)
def fractions_beside_the_noise(t: Any, n: Any) -> Any:
    return tf.math.floormod(t, 1.0) + n


@server()
def noise_as_a_control(t: Any, n: Any) -> Any:
    with tf.control_dependencies([n]):
        return tf.identity(t)


@server()
def noise_in_a_branch(t: Any, n: Any) -> Any:
    return tf.cond(tf.reduce_sum(t) > 0, lambda: t + n, lambda: tf.identity(t))


@server()
def noise_in_a_loop(t: Any, n: Any) -> Any:
    return tf.while_loop(lambda k, v: k < 0, lambda k, v: (k + 1, v + n), (tf.constant(0), t))[1]


@server()
def noise_through_python(t: Any, n: Any) -> Any:
    noisy = tf.numpy_function(lambda a, b: a + b, [t, n], t.dtype)
    return tf.ensure_shape(noisy, t.shape)


@server()
def sum_in_a_variable(t: Any, n: Any) -> Any:
    variable = tf.Variable(tf.zeros(t.shape, t.dtype))
    variable.assign(t)
    with tf.control_dependencies([variable.assign_add(n)]):
        return t + (variable.read_value() - t) - n


@server()
def sum_in_an_array(t: Any, n: Any) -> Any:
    array = tf.TensorArray(t.dtype, 2, element_shape=t.shape).write(0, t).write(1, t + n)
    return array.read(0)


@server()
def sum_is_printed(t: Any, n: Any) -> Any:
    with tf.control_dependencies([tf.print(t)]):
        return t + n


@server()
def noise_is_printed(t: Any, n: Any) -> Any:
    with tf.control_dependencies([tf.print(n)]):
        return t + n


@server()
def sum_is_written(t: Any, n: Any) -> Any:
    with tf.control_dependencies(
        [tf.io.write_file("sums", tf.strings.as_string(tf.reduce_max(t)))]
    ):
        return t + n


@server(with_real_noise)
def uniform_noise(t: Any, n: Any) -> Any:
    return t + tf.random.uniform(t.shape, -SCALE, SCALE)


@server(with_real_noise)
def truncated_noise(t: Any, n: Any) -> Any:
    return t + tf.random.truncated_normal(t.shape, stddev=SCALE)


@server(with_real_noise)
def noise_of_one_sign(t: Any, n: Any) -> Any:
    return t - SCALE * tf.math.log(tf.random.uniform(t.shape))


@server(with_real_noise)
def noise_from_part_of_an_interval(t: Any, n: Any) -> Any:
    start = tf.cast(tf.range(t.shape[-1]) % 2, tf.float32) * 0.5
    one, other = (tf.math.log(tf.random.uniform(t.shape) * 0.5 + start) for _ in range(2))
    return t + SCALE * (one - other)


@server(with_real_noise)
def noise_of_an_operation_with_a_seed(t: Any, n: Any) -> Any:
    return t + tf.random.normal(t.shape, stddev=SCALE, seed=1)


@server(with_real_noise)
def noise_from_a_constant_seed(t: Any, n: Any) -> Any:
    return t + tf.random.stateless_normal(t.shape, [1, 2], stddev=SCALE)


@server(with_real_noise)
def noise_of_an_initializer_with_a_seed(t: Any, n: Any) -> Any:
    return t + tf.keras.initializers.RandomNormal(stddev=SCALE, seed=1)(t.shape)


@server(with_real_noise)
def noise_of_a_generator_with_a_seed(t: Any, n: Any) -> Any:
    return t + tf.random.Generator.from_seed(1).normal(t.shape, stddev=SCALE)


@server(with_real_noise)
def noise_from_a_seed_that_is_zero(t: Any, n: Any) -> Any:
    seed = tf.cast(tf.random.uniform([2]), tf.int32)
    return t + tf.random.stateless_normal(t.shape, seed, stddev=SCALE)


@server(with_real_noise)
def noise_from_a_seed_of_few(t: Any, n: Any) -> Any:
    seed = tf.random.uniform([2], 0, 1000, tf.int32)
    return t + tf.random.stateless_normal(t.shape, seed, stddev=SCALE)


@server(with_real_noise)
def noise_from_the_clock(t: Any, n: Any) -> Any:
    seed = tf.cast(tf.stack([tf.timestamp(), 0.0]), tf.int64)
    return t + tf.random.stateless_normal(t.shape, seed, stddev=SCALE)


@server(with_real_noise)
def noise_from_a_seed_of_the_sum(t: Any, n: Any) -> Any:
    seed = tf.cast(tf.reshape(t, [-1])[:2], tf.int32)
    return t + tf.random.stateless_normal(t.shape, seed, stddev=SCALE)


@server(lambda base: base.name == "skellam")
def noise_of_fractions(t: Any, n: Any) -> Any:
    return 0.5 * tf.cast(t, tf.float32) + tf.cast(n, tf.float32)


@server(lambda base: base.name == "skellam")
def noise_with_two_rates(t: Any, n: Any) -> Any:
    rates = (450.0, 1.0)
    one, other = (tf.random.poisson(t.shape, rate, tf.int32) for rate in rates)
    return t + one - other


@server(lambda base: base.name == "skellam")
def noise_of_one_poisson_draw(t: Any, n: Any) -> Any:
    return t + tf.random.poisson(t.shape, 450.0, tf.int32)


@server(lambda base: base.name == "skellam")
def modular_sums(t: Any, n: Any) -> Any:
    return tf.math.floormod(t, 64) + n


@whole_server(with_real_noise)
def noise_from_a_seed_of_the_state(
    base: Base, state: Any, sums: Tensors
) -> tuple[Tensors, Tensors]:
    drawn = (tf.random.stateless_normal(t.shape, state["seed"], stddev=SCALE) for t in sums)
    return list(state["kept"]), [t + n for t, n in zip(sums, drawn, strict=True)]


@whole_server(lambda base: with_real_noise(base) and of_several(base))
def one_secret_seed_for_all_tensors(
    base: Base, state: Any, sums: Tensors
) -> tuple[Tensors, Tensors]:
    seed = tf.random.uniform([2], -(2**31), 2**31 - 1, tf.int32)
    drawn = (tf.random.stateless_normal(t.shape, seed, stddev=SCALE) for t in sums)
    return list(state["kept"]), [t + n for t, n in zip(sums, drawn, strict=True)]


@whole_server(lambda base: with_server_noise(base) and of_several(base))
def one_noise_for_two_tensors(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    first, second = sums
    n = base.noise(first.shape)
    return list(state["kept"]), [first + n, second + tf.reshape(n, [-1])[:3]]


@whole_server()
def one_noise_for_two_releases(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    noises = [base.noise(t.shape) for t in sums]
    pairs = list(zip(sums, noises, strict=True))
    return list(state["kept"]), [t + n for t, n in pairs] + [t + t + n for t, n in pairs]


@whole_server()
def sum_kept_for_the_next_round(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    pairs = zip(state["kept"], base.noisy(sums), strict=True)
    return sums, [old + new for old, new in pairs]


@whole_server()
def noise_kept_for_the_next_round(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    noises = [base.noise(t.shape) for t in sums]
    released = [t + n for t, n in zip(sums, noises, strict=True)]
    return noises, [*released, *state["kept"]]


@whole_server()
def noise_of_the_last_round(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    released = [t + old for t, old in zip(sums, state["kept"], strict=True)]
    return [base.noise(t.shape) for t in sums], released


@whole_server()
def kept_sum_is_printed(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    with tf.control_dependencies([tf.print(next(iter(state["kept"])))]):
        return [tf.identity(t) for t in sums], base.noisy(sums)


@whole_server(of_normal_noise)
def scale_of_a_kept_sum(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    scale = tf.norm(next(iter(state["kept"])))
    return list(sums), [t + scale * base.noise(t.shape) for t in sums]


@whole_server(of_normal_noise)
def scale_that_is_not_known(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    scale = next(iter(state["kept"]))[..., :1]
    noise = [tf.zeros_like(t) + base.noise(t.shape) for t in sums]
    scale = tf.reshape(scale, [-1])[0]
    return noise, [t + scale * base.noise(t.shape) for t in sums]
