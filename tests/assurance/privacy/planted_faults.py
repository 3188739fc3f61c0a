"""Faults that are planted in the private rounds of `planted_rounds`.

A fault either leaves no bound at all, or makes the bound of a contribution or the noise worse: then
`share` is the largest share of the multiplier of the correct round that may be claimed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.assurance.privacy.planted_rounds import (
    BASES,
    SCALE,
    Base,
    Client,
    Server,
    Steps,
    Tensors,
    normal,
    tf,
    total_norm,
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


def everywhere(base: Base) -> bool:
    return True


def of_floats(base: Base) -> bool:
    return base.dtype == np.float32


def of_several(base: Base) -> bool:
    return len(base.shapes) > 1


def of_normal_noise(base: Base) -> bool:
    return base.noise is normal and not base.at_clients


def with_server_noise(base: Base) -> bool:
    return not base.at_clients


def with_real_noise(base: Base) -> bool:
    return of_floats(base) and not base.at_clients


# What clients do.

CLIENTS: dict[str, tuple[Client, Callable[[Base], bool]]] = {}


def client(fits: Callable[[Base], bool] = everywhere) -> Callable[[Client], Client]:
    """Return a decorator that enters a fault of clients; it gets the values, and returns what
    takes the place of clipped ones, or of clipped ones with noise."""

    def enter(function: Client) -> Client:
        CLIENTS[function.__name__] = function, fits
        return function

    return enter


def typed(base: Base, values: Tensors) -> Tensors:
    """Return values with the type and the clients' noise of a round."""
    whole = [tf.cast(value, base.dtype) for value in values]
    return [each + base.noise(each.shape) for each in whole] if base.at_clients else whole


def clipped(base: Base, bound: Any, values: Tensors) -> Tensors:
    return [tf.cast(value, tf.float32) for value in base.clip(bound, values)]


@client()
def no_clip(base: Base, bound: Any, values: Tensors) -> Tensors:
    return typed(base, values)


@client()
def clip_of_a_copy(base: Base, bound: Any, values: Tensors) -> Tensors:
    copies = [tf.identity(value) for value in values]
    base.clip(bound, copies)
    return typed(base, values)


@client(of_several)
def last_tensor_not_clipped(base: Base, bound: Any, values: Tensors) -> Tensors:
    return typed(base, [*clipped(base, bound, values)[:-1], values[-1]])


@client(of_several)
def norm_of_the_first_tensor(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm(values[:1]))
    return typed(base, [value * factor for value in values])


@client()
def norm_of_half(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm([value[:2] for value in values]))
    return typed(base, [value * factor for value in values[:1]] + values[1:])


@client()
def norm_of_what_is_clipped(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm(clipped(base, bound, values)))
    return typed(base, [value * factor for value in values])


@client()
def norm_of_shifted_values(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm([value - 0.5 for value in values]))
    return typed(base, [value * factor for value in values])


@client()
def norm_of_ranked_values(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm([tf.nn.softmax(value) for value in values]))
    return typed(base, [value * factor for value in values])


@client()
def times_the_norm(base: Base, bound: Any, values: Tensors) -> Tensors:
    norm = total_norm(values)
    return typed(base, [value * norm for value in clipped(base, bound, values)])


@client()
def times_an_exponential(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.exp(tf.reduce_max(values[0]))
    return typed(base, [value * factor for value in clipped(base, bound, values)])


@client()
def divided_by_a_value(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(tf.abs(tf.reduce_sum(values[0])), 1.0)
    return typed(base, [value / factor for value in clipped(base, bound, values)])


@client()
def a_little_of_the_values(base: Base, bound: Any, values: Tensors) -> Tensors:
    parts = zip(clipped(base, bound, values), values, strict=True)
    return typed(base, [one + 1e-3 * other for one, other in parts])


@client()
def residue_of_the_clip(base: Base, bound: Any, values: Tensors) -> Tensors:
    parts = zip(clipped(base, bound, values), values, strict=True)
    return typed(base, [other - one for one, other in parts])


@client()
def largest_for_least(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.maximum(1.0, bound / total_norm(values))
    return typed(base, [value * factor for value in values])


@client()
def branches_swapped(base: Base, bound: Any, values: Tensors) -> Tensors:
    norm = total_norm(values)
    return typed(base, [tf.where(norm > bound, v, v * bound / norm) for v in values])


@client()
def clip_by_another_condition(base: Base, bound: Any, values: Tensors) -> Tensors:
    flag, pairs = values[0] > 0, zip(clipped(base, bound, values), values, strict=True)
    return typed(base, [tf.where(tf.reduce_any(flag), one, other) for one, other in pairs])


@client()
def clip_in_one_branch(base: Base, bound: Any, values: Tensors) -> Tensors:
    chosen = tf.cond(
        tf.reduce_sum(values[0]) > 0,
        lambda: clipped(base, bound, values),
        lambda: [tf.identity(v) for v in values],
    )
    return typed(base, chosen)


@client()
def clip_unless_not_a_number(base: Base, bound: Any, values: Tensors) -> Tensors:
    flag = tf.math.is_nan(tf.reduce_sum(values[0]))
    pairs = zip(clipped(base, bound, values), values, strict=True)
    return typed(base, [tf.where(flag, other, one) for one, other in pairs])


@client()
def clip_by_what_may_be_no_number(base: Base, bound: Any, values: Tensors) -> Tensors:
    norm = tf.where(tf.reduce_sum(values[0]) > 0, total_norm(values), np.float32(np.nan))
    return typed(base, [v * tf.where(norm > bound, bound / norm, 1.0) for v in values])


@client()
def clip_by_what_may_be_infinite(base: Base, bound: Any, values: Tensors) -> Tensors:
    least = tf.where(tf.reduce_sum(values[0]) > 0, total_norm(values), np.float32(np.inf))
    factor = 1.0 / (bound / least + 1e-3)
    return typed(base, [v * factor for v in clipped(base, bound, values)])


@client()
def threshold_of_the_client(base: Base, bound: Any, values: Tensors) -> Tensors:
    threshold = tf.reduce_max(tf.abs(values[0]))
    return typed(base, clipped(base, threshold, values))


@client()
def threshold_at_least_a_value(base: Base, bound: Any, values: Tensors) -> Tensors:
    threshold = tf.maximum(bound, tf.reduce_mean(values[0]))
    return typed(base, clipped(base, threshold, values))


@client()
def sum_without_squares(base: Base, bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / tf.reduce_sum(values[0]))
    return typed(base, [value * factor for value in values])


@client()
def norm_in_integers(base: Base, bound: Any, values: Tensors) -> Tensors:
    whole = [tf.cast(value, tf.int32) for value in values]
    squares = tf.add_n([tf.reduce_sum(value * value) for value in whole])
    factor = tf.minimum(1.0, bound / tf.sqrt(tf.cast(squares, tf.float32)))
    return typed(base, [tf.cast(value, tf.float32) * factor for value in whole])


@client()
def norm_in_half_precision(base: Base, bound: Any, values: Tensors) -> Tensors:
    norm = total_norm([tf.cast(value, tf.bfloat16) for value in values])
    factor = tf.minimum(1.0, bound / tf.cast(norm, tf.float32))
    return typed(base, [value * factor for value in values])


@client()
def mask_in_another_order(base: Base, bound: Any, values: Tensors) -> Tensors:
    square = tf.reshape(tf.concat([tf.reshape(v, [-1]) for v in values], 0)[:4], [2, 2])
    small = tf.transpose(tf.abs(square) <= bound)
    kept = tf.where(small, square, tf.zeros_like(square))
    flat = tf.concat([tf.reshape(kept, [-1]), tf.zeros([8])], 0)
    return typed(base, [tf.reshape(flat[: np.prod(v.shape)], v.shape) for v in values])


@client()
def element_by_element_of_others(base: Base, bound: Any, values: Tensors) -> Tensors:
    factors = [tf.minimum(1.0, bound / tf.reverse(tf.abs(v), [0])) for v in values]
    return typed(base, [v * f for v, f in zip(values, factors, strict=True)])


@client()
def gathered_twice(base: Base, bound: Any, values: Tensors) -> Tensors:
    parts = [tf.reshape(v, [-1]) for v in clipped(base, bound, values)]
    places = [tf.argmax(v) + tf.zeros(v.shape, tf.int64) for v in parts]
    twice = [tf.gather(v, at) * 2.0**20 for v, at in zip(parts, places, strict=True)]
    return typed(base, [tf.reshape(v, o.shape) for v, o in zip(twice, values, strict=True)])


@client()
def running_sums(base: Base, bound: Any, values: Tensors) -> Tensors:
    return typed(base, [tf.cumsum(v) for v in clipped(base, bound, values)])


@client()
def rounded_up(base: Base, bound: Any, values: Tensors) -> Tensors:
    return typed(base, [tf.math.ceil(v * 8.0) for v in clipped(base, bound, values)])


@client()
def doubled_in_a_loop(base: Base, bound: Any, values: Tensors) -> Tensors:
    times = tf.cast(tf.reduce_sum(values[0]), tf.int32)

    def twice(value: Any) -> Any:
        return tf.while_loop(
            lambda n, v: n < times, lambda n, v: (n + 1, v * 2.0), (tf.constant(0), value)
        )[1]

    return typed(base, [twice(v) for v in clipped(base, bound, values)])


@client()
def values_in_a_variable(base: Base, bound: Any, values: Tensors) -> Tensors:
    variables = [tf.Variable(tf.zeros(v.shape)) for v in values]
    for variable, value, small in zip(variables, values, clipped(base, bound, values), strict=True):
        variable.assign(small)
        variable.assign_add(value)
    return typed(base, [variable.read_value() for variable in variables])


@client()
def values_in_an_array(base: Base, bound: Any, values: Tensors) -> Tensors:
    arrays = [tf.TensorArray(tf.float32, 2, element_shape=v.shape) for v in values]
    smalls = clipped(base, bound, values)
    written = [a.write(0, s).write(1, v) for a, s, v in zip(arrays, smalls, values, strict=True)]
    return typed(base, [array.read(1) for array in written])


@client()
def values_through_python(base: Base, bound: Any, values: Tensors) -> Tensors:
    smalls = clipped(base, bound, values)
    passed = [tf.numpy_function(lambda v: v, [v], tf.float32) for v in smalls]
    return typed(base, [tf.ensure_shape(p, v.shape) for p, v in zip(passed, values, strict=True)])


@client()
def clip_after_the_noise(base: Base, bound: Any, values: Tensors) -> Tensors:
    noisy = [value + tf.random.normal(value.shape) for value in values]
    parts = zip(clipped(base, bound, noisy), values, strict=True)
    return typed(base, [one + 0.1 * other for one, other in parts])


@client()
def power_of_what_is_clipped(base: Base, bound: Any, values: Tensors) -> Tensors:
    return typed(base, [tf.pow(v, -1.0) for v in clipped(base, bound, values)])


@client()
def product_with_another(base: Base, bound: Any, values: Tensors) -> Tensors:
    pairs = zip(clipped(base, bound, values), values, strict=True)
    return typed(base, [one * other for one, other in pairs])


@client()
def scattered_over(base: Base, bound: Any, values: Tensors) -> Tensors:
    flat = [tf.reshape(v, [-1]) for v in clipped(base, bound, values)]
    first = [tf.reshape(v, [-1])[:1] for v in values]
    new = [tf.tensor_scatter_nd_add(f, [[0]], v) for f, v in zip(flat, first, strict=True)]
    return typed(base, [tf.reshape(n, v.shape) for n, v in zip(new, values, strict=True)])


# What the server does.

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
    with tf.control_dependencies([tf.io.write_file("sums", tf.strings.as_string(t[0]))]):
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
    with tf.control_dependencies([tf.print(list(state["kept"])[0])]):
        return [tf.identity(t) for t in sums], base.noisy(sums)


@whole_server(of_normal_noise)
def scale_of_a_kept_sum(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    scale = tf.norm(list(state["kept"])[0])
    return list(sums), [t + scale * base.noise(t.shape) for t in sums]


@whole_server(of_normal_noise)
def scale_that_is_not_known(base: Base, state: Any, sums: Tensors) -> tuple[Tensors, Tensors]:
    scale = list(state["kept"])[0][..., :1]
    kept = [tf.zeros_like(t) + base.noise(t.shape) for t in sums]
    scale = tf.reshape(scale, [-1])[0]
    return kept, [t + scale * base.noise(t.shape) for t in sums]


# What is released beside the sums.

EXTRAS: dict[str, Callable[[Tensors], Any]] = {
    "count": lambda values: tf.constant(1.0),
    "weight": lambda values: tf.clip_by_value(values[0][0], 0.0, 1.0) if False else tf.constant(2),
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
    kept = Steps(server=lambda base, state, sums: (sums, base.noisy(sums)), sends_kept=True)
    yield Fault("sum kept and broadcast", kept, HIDING, with_server_noise)
    yield from WORSE


def planted() -> Iterator[tuple[Base, Fault]]:
    """Yield all pairs of a private round and a fault that can be planted in it."""
    for fault in faults():
        for base in BASES:
            if fault.fits(base):
                yield base, fault
