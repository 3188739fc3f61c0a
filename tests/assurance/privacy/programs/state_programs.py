"""Differentially private rounds in TensorFlow with more than one channel, and with a state."""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.programs.rounds import (
    CLIP,
    EXPECTED,
    NOISE,
    SIZE,
    VECTOR,
    process,
)
from tests.assurance.privacy.programs.tensorflow_programs import gaussian

FLOAT = tff.TensorType(np.float32)
COUNT_DEVIATION = 5.0
"""Of the noise of a count, of which each client changes the half of one."""

EXAMPLES = tff.SequenceType(VECTOR)


# A mean whose number of clients is released with noise of its own.


class Sums(NamedTuple):
    """Sums over clients."""

    value: Any
    count: Any


@tff.tf_computation(VECTOR)
def counted(x: Any) -> Any:
    return Sums(tf.clip_by_norm(x, CLIP), 1.0)


@tff.tf_computation(Sums(VECTOR, FLOAT))
def private_mean(sums: Any) -> Any:
    noisy = gaussian(NOISE * CLIP)(sums.value)
    count = gaussian(COUNT_DEVIATION)(sums.count)
    return noisy / tf.maximum(count, 1.0)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def next_mean(state: Any, data: Any) -> Any:
    sums = tff.federated_sum(tff.federated_map(counted, data))
    return state, tff.federated_map(private_mean, sums)


mean_private_denominator = process((), next_mean)


# A mean with clients' weights, of at most 1.


@tff.tf_computation(EXAMPLES)
def weighted(examples: Any) -> Any:
    """The mean of at most ten examples, weighted by how many there are."""
    total, count = examples.take(10).reduce(
        (tf.zeros([SIZE]), 0.0), lambda sums, x: (sums[0] + x, sums[1] + 1.0)
    )
    weight = tf.clip_by_value(count / 10.0, 0.0, 1.0)
    return Sums(weight * tf.clip_by_norm(total / tf.maximum(count, 1.0), CLIP), weight)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(EXAMPLES))
def next_weighted_mean(state: Any, data: Any) -> Any:
    sums = tff.federated_sum(tff.federated_map(weighted, data))
    return state, tff.federated_map(private_mean, sums)


mean_private_weights = process((), next_weighted_mean)


# Several channels: an update, a count, and a loss.


class Work(NamedTuple):
    """What a client sends in three channels."""

    update: Any
    above: Any
    loss: Any


@tff.tf_computation(VECTOR)
def three(x: Any) -> Any:
    return Work(
        update=tf.clip_by_norm(x, CLIP),
        above=tf.cast(tf.reduce_sum(x) > 0, tf.float32),
        loss=tf.clip_by_value(tf.reduce_mean(tf.square(x)), 0.0, 2.0),
    )


noisy_update = tff.tf_computation(gaussian(NOISE * CLIP), VECTOR)
noisy_count = tff.tf_computation(gaussian(COUNT_DEVIATION), np.float32)
noisy_loss = tff.tf_computation(gaussian(10.0), np.float32)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def next_channels(state: Any, data: Any) -> Any:
    work = tff.federated_map(three, data)
    output = collections.OrderedDict(
        update=tff.federated_map(noisy_update, tff.federated_sum(work.update)),
        above=tff.federated_map(noisy_count, tff.federated_sum(work.above)),
        loss=tff.federated_map(noisy_loss, tff.federated_sum(work.loss)),
    )
    return state, tff.federated_zip(output)


several_channels = process((), next_channels)


# The clip is adapted with a count that has its own noise.


class Clip(NamedTuple):
    """The bound of the next round."""

    bound: Any


class Adapted(NamedTuple):
    """A clipped value, and a half if it was below the bound, or else minus a half."""

    value: Any
    below: Any


@tff.tf_computation(VECTOR, FLOAT)
def adapted(x: Any, bound: Any) -> Any:
    below = tf.cast(tf.norm(x) <= bound, tf.float32) - 0.5
    return Adapted(tf.clip_by_norm(x, bound), below)


@tff.tf_computation(VECTOR, FLOAT)
def noise_of_bound(total: Any, bound: Any) -> Any:
    return total + bound * NOISE * tf.random.normal([SIZE])


def next_bound_with(deviation: float) -> Any:
    @tff.tf_computation(FLOAT, FLOAT)
    def next_bound(bound: Any, below: Any) -> Any:
        noisy = below + deviation * tf.random.normal([])
        share = tf.clip_by_value(noisy / EXPECTED + 0.5, 0.0, 1.0)
        return Clip(bound * tf.exp(-0.2 * (share - 0.5)))

    return next_bound


def adaptive(deviation: float) -> Any:
    next_bound = next_bound_with(deviation)

    @tff.federated_computation(tff.types.at_server(Clip(FLOAT)), tff.types.at_clients(VECTOR))
    def next_adaptive(state: Any, data: Any) -> Any:
        sent = tff.federated_map(adapted, (data, tff.federated_broadcast(state.bound)))
        following = tff.federated_map(next_bound, (state.bound, tff.federated_sum(sent.below)))
        total = tff.federated_sum(sent.value)
        return following, tff.federated_map(noise_of_bound, (total, state.bound))

    return process(Clip(np.float32(CLIP)), next_adaptive)


adaptive_clip = adaptive(COUNT_DEVIATION)
adaptive_clip_exact_count = adaptive(0.0)


# The scale of the noise is an element of the state, and so is the clip.


class Scales(NamedTuple):
    """A model, and how it is protected."""

    model: Any
    clip: Any
    deviation: Any


SCALES = Scales(VECTOR, FLOAT, FLOAT)


@tff.tf_computation(VECTOR, FLOAT, VECTOR)
def difference(x: Any, clip: Any, model: Any) -> Any:
    return tf.clip_by_norm(x - model, clip)


@tff.tf_computation(SCALES, VECTOR)
def step(state: Any, total: Any) -> Any:
    noisy = total + tf.random.normal([SIZE], stddev=state.deviation)
    return state._replace(model=state.model + noisy / EXPECTED)


@tff.federated_computation(tff.types.at_server(SCALES), tff.types.at_clients(VECTOR))
def next_model(state: Any, data: Any) -> Any:
    broadcast = tff.federated_broadcast(state)
    moved = tff.federated_map(difference, (data, broadcast.clip, broadcast.model))
    following = tff.federated_map(step, (state, tff.federated_sum(moved)))
    return following, following.model


FIRST = Scales(np.zeros(SIZE, np.float32), np.float32(CLIP), np.float32(NOISE * CLIP))
scale_in_state = process(FIRST, next_model)


@tff.tf_computation(VECTOR)
def noisy_center(total: Any) -> Any:
    return gaussian(NOISE * CLIP)(total) / EXPECTED


clip_vector = tff.tf_computation(lambda x: tf.clip_by_norm(x, CLIP), VECTOR)


# An aggregation of one's own that clips where it accumulates.


@tff.tf_computation
def nothing() -> Any:
    return tf.zeros([SIZE])


@tff.tf_computation(VECTOR, VECTOR)
def accumulate(total: Any, x: Any) -> Any:
    return total + tf.clip_by_norm(x, CLIP)


@tff.tf_computation(VECTOR, VECTOR)
def merge(first: Any, second: Any) -> Any:
    return first + second


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def next_aggregate(state: Any, data: Any) -> Any:
    return state, tff.federated_aggregate(data, nothing(), accumulate, merge, noisy_update)


aggregate_with_clip = process((), next_aggregate)


# Rounds that look private and are not: the mean changes by more with fewer clients.


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def next_mean_of_all(state: Any, data: Any) -> Any:
    mean = tff.federated_mean(tff.federated_map(clip_vector, data))
    return state, tff.federated_map(noisy_center, mean)


mean_exact_denominator = process((), next_mean_of_all)
