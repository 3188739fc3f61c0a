"""Quantiles of what people have, with differential privacy for each person.

Each person has some durations in seconds.  The server looks for the durations below which a
quarter, a half and nine tenths lie, where each person counts the same however many it has.  In
each round a person says by how much its share of durations at or below each estimate differs from
the wanted share: a number between -1 and 1, whatever its durations are.  The server adds normal
noise to the sum, and moves each estimate by a factor that follows from it: down if too many lie
below, and up if too few do.

    search            the process: an estimate of each quantile
    evaluation        the mean of people's shares at or below each estimate; not private
    people, others    the clients: made-up durations
"""

import functools

import numpy as np
import tensorflow as tf

import tffc as tff

QUANTILES = (0.25, 0.5, 0.9)
FIRST, LOWEST, HIGHEST = 60.0, 1.0, 600.0

NOISE = 2.0
PEOPLE_PER_ROUND = 200.0
RATE = 1.0

PEOPLE = 2000
BATCH_SIZE = 64

SOME = tff.TensorType(np.float32, [len(QUANTILES)])
DURATIONS = tff.SequenceType(np.float32)


@tff.tf_computation
def first_estimates():
    return tf.fill([len(QUANTILES)], FIRST)


@tff.tf_computation(SOME, DURATIONS)
def shares(estimates, durations):
    """The shares of a person's durations at or below each estimate; zero without durations."""

    def add(totals, batch):
        below = tf.cast(batch[:, tf.newaxis] <= estimates[tf.newaxis, :], tf.float32)
        size = tf.cast(tf.size(batch), tf.float32)
        return totals[0] + tf.reduce_sum(below, axis=0), totals[1] + size

    below, total = durations.batch(BATCH_SIZE).reduce((tf.zeros([len(QUANTILES)]), 0.0), add)
    return below / tf.maximum(total, 1.0)


@tff.tf_computation(SOME)
def excess(share):
    """By how much shares exceed the wanted ones; the clipping makes the bound one of the graph."""
    return tf.clip_by_value(share, 0.0, 1.0) - tf.constant(QUANTILES)


@tff.tf_computation(SOME, SOME)
def move(estimates, total):
    """The next estimates.  The number of people is not asked for, so the expected one divides."""
    noisy = total + tf.random.normal([len(QUANTILES)], stddev=NOISE)
    moved = estimates * tf.exp(-RATE * noisy / PEOPLE_PER_ROUND)
    return tf.clip_by_value(moved, LOWEST, HIGHEST)


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_estimates, tff.SERVER)


@tff.federated_computation(tff.types.at_server(SOME), tff.types.at_clients(DURATIONS))
def next_estimates(estimates, durations):
    share = tff.federated_map(shares, (tff.federated_broadcast(estimates), durations))
    total = tff.federated_sum(tff.federated_map(excess, share))
    moved = tff.federated_map(move, (estimates, total))
    return moved, moved


search = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_estimates)


@tff.federated_computation(tff.types.at_server(SOME), tff.types.at_clients(DURATIONS))
def evaluation(estimates, durations):
    """The mean of people's shares at or below each estimate; the estimates go through unchanged."""
    share = tff.federated_map(shares, (tff.federated_broadcast(estimates), durations))
    return estimates, tff.federated_mean(share)


def durations_of(seed):
    """Few long durations, many short ones; some people's are longer than others'."""
    generator = np.random.default_rng(seed)

    def durations():
        habit = generator.normal(3.6, 0.5)
        drawn = generator.lognormal(habit, 0.7, generator.integers(5, 25))
        return np.minimum(drawn, HIGHEST).astype(np.float32)

    return {f"person_{number:04}": durations() for number in range(PEOPLE)}


people = functools.partial(durations_of, 5)
others = functools.partial(durations_of, 6)
