"""Differentially private rounds in TensorFlow, each written as somebody would write it.

Each is a process named in `events.EVENTS`.  The state holds what rounds remember, the data of a
client is a `VECTOR` or a `PAIR`, and the output is what a round releases.
"""

import collections
import math
from typing import Any

import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.programs.rounds import (
    CLIP,
    EXPECTED,
    NOISE,
    PAIR,
    SIZE,
    VECTOR,
    process,
    summed,
)

DEVIATION = NOISE * CLIP
SCALE = 0.5
"""Of Laplace noise, for contributions of at most 1 in the sum of absolute values."""

SMALLEST = 1e-30


def gaussian(deviation: Any) -> Any:
    """A function that adds normal noise to each tensor of a structure."""

    def add(value: Any) -> Any:
        return tf.nest.map_structure(
            lambda x: x + tf.random.normal(x.shape, stddev=deviation), value
        )

    return add


def clipped_by_norm(x: Any) -> Any:
    return tf.clip_by_norm(x, CLIP)


# Ways to bound the length of what a client sends.

sum_clip_by_norm = summed(tff.tf_computation, VECTOR, clipped_by_norm, gaussian(DEVIATION))


def clipped_together(pair: Any) -> Any:
    clipped, _ = tf.clip_by_global_norm(list(pair.values()), CLIP)
    return collections.OrderedDict(zip(pair, clipped, strict=True))


def noisy_mean(pair: Any) -> Any:
    noisy = gaussian(DEVIATION)(pair)
    return tf.nest.map_structure(lambda x: x / EXPECTED, noisy)


mean_clip_by_global_norm = summed(tff.tf_computation, PAIR, clipped_together, noisy_mean)


def scaled_by_minimum(x: Any) -> Any:
    norm = tf.sqrt(tf.reduce_sum(tf.square(x)))
    return x * tf.minimum(1.0, CLIP / tf.maximum(norm, SMALLEST))


sum_minimum_formula = summed(tff.tf_computation, VECTOR, scaled_by_minimum, gaussian(DEVIATION))


def scaled_where_long(x: Any) -> Any:
    norm = tf.norm(x)
    return tf.where(norm > CLIP, x * (CLIP / norm), x)


sum_where_formula = summed(tff.tf_computation, VECTOR, scaled_where_long, gaussian(DEVIATION))


def divided_by_excess(x: Any) -> Any:
    return x / tf.maximum(1.0, tf.norm(x) / CLIP)


sum_divided_formula = summed(tff.tf_computation, VECTOR, divided_by_excess, gaussian(DEVIATION))


def scaled_in_a_branch(x: Any) -> Any:
    norm = tf.norm(x)
    return tf.cond(norm > CLIP, lambda: x * (CLIP / norm), lambda: x)


sum_clip_in_a_branch = summed(tff.tf_computation, VECTOR, scaled_in_a_branch, gaussian(DEVIATION))


def zeroed(x: Any) -> Any:
    return tf.where(tf.norm(x) <= CLIP, x, tf.zeros_like(x))


sum_zeroing = summed(tff.tf_computation, VECTOR, zeroed, gaussian(DEVIATION))


def zeroed_and_clipped(x: Any) -> Any:
    largest = tf.reduce_max(tf.abs(x))
    return clipped_by_norm(tf.where(largest > 10.0, tf.zeros_like(x), x))


sum_zeroing_and_clip = summed(tff.tf_computation, VECTOR, zeroed_and_clipped, gaussian(DEVIATION))


def clipped_each(pair: Any) -> Any:
    return collections.OrderedDict(
        kernel=tf.clip_by_norm(pair["kernel"], CLIP), bias=tf.clip_by_norm(pair["bias"], 1.0)
    )


def noise_for_each(pair: Any) -> Any:
    return collections.OrderedDict(
        kernel=gaussian(NOISE * CLIP)(pair["kernel"]), bias=gaussian(NOISE * 1.0)(pair["bias"])
    )


sum_clip_each_tensor = summed(tff.tf_computation, PAIR, clipped_each, noise_for_each)
sum_clip_each_one_scale = summed(tff.tf_computation, PAIR, clipped_each, gaussian(DEVIATION))


def clipped_to_a_box(x: Any) -> Any:
    return tf.clip_by_value(x, -1.0, 1.0)


sum_clip_by_value = summed(tff.tf_computation, VECTOR, clipped_to_a_box, gaussian(DEVIATION))


def squashed(x: Any) -> Any:
    return tf.tanh(x)


sum_tanh = summed(tff.tf_computation, VECTOR, squashed, gaussian(DEVIATION))


def one_hot(x: Any) -> Any:
    return tf.one_hot(tf.argmax(x), SIZE)


histogram_one_hot = summed(tff.tf_computation, VECTOR, one_hot, gaussian(NOISE))


# Laplace noise, for lengths by the sum of absolute values.


def clipped_by_sum(x: Any) -> Any:
    return x * tf.minimum(1.0, 1.0 / tf.maximum(tf.reduce_sum(tf.abs(x)), SMALLEST))


def laplace_by_inverse(x: Any) -> Any:
    u = tf.random.uniform(x.shape, minval=-0.5, maxval=0.5)
    return x - SCALE * tf.sign(u) * tf.math.log1p(-2.0 * tf.abs(u))


def laplace_of_exponentials(x: Any) -> Any:
    first, second = (
        -tf.math.log(tf.random.uniform(x.shape, minval=SMALLEST, maxval=1.0)) for _ in range(2)
    )
    return x + SCALE * (first - second)


sum_laplace_by_inverse = summed(tff.tf_computation, VECTOR, clipped_by_sum, laplace_by_inverse)
sum_laplace_of_exponentials = summed(
    tff.tf_computation, VECTOR, clipped_by_sum, laplace_of_exponentials
)
sum_laplace_in_a_box = summed(tff.tf_computation, VECTOR, clipped_to_a_box, laplace_by_inverse)


# Where noise is drawn, and from what.


def drawn_from_a_seed(x: Any) -> Any:
    seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    return x + DEVIATION * tf.random.stateless_normal(x.shape, seed)


sum_drawn_from_a_seed = summed(tff.tf_computation, VECTOR, clipped_by_norm, drawn_from_a_seed)


def noisy_contribution(x: Any) -> Any:
    """Hides a client from the server too."""
    return gaussian(DEVIATION)(clipped_by_norm(x))


sum_noise_at_clients = summed(tff.tf_computation, VECTOR, noisy_contribution)


def share_of_noise(x: Any) -> Any:
    """All clients of a round together draw the noise."""
    return gaussian(DEVIATION / math.sqrt(EXPECTED))(clipped_by_norm(x))


sum_shares_of_noise = summed(tff.tf_computation, VECTOR, share_of_noise)


@tff.tf_computation(VECTOR)
def rounded(x: Any) -> Any:
    """Hundredths of amounts, which rounding may make longer by half of one each."""
    return tf.cast(tf.round(clipped_by_norm(tf.nn.relu(x)) * 100.0), tf.int32)


@tff.tf_computation((np.int32, [SIZE]))
def noisy_units(total: Any) -> Any:
    return gaussian(DEVIATION)(tf.cast(total, tf.float32) / 100.0)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def next_secure(state: Any, data: Any) -> Any:
    total = tff.federated_secure_sum_bitwidth(tff.federated_map(rounded, data), 20)
    return state, tff.federated_map(noisy_units, total)


secure_sum_rounded = process((), next_secure)
