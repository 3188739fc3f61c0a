"""Faults in what the clients of the private rounds of `planted_rounds` do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.assurance.privacy.planted_rounds import (
    Base,
    Client,
    Tensors,
    everywhere,
    of_several,
    tf,
    total_norm,
)

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
    zeroed = tf.where(small, square, tf.zeros_like(square))
    flat = tf.concat([tf.reshape(zeroed, [-1]), tf.zeros([8])], 0)
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
