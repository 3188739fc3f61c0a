"""Federated k-means: clusters of points that stay with the clients that hold them.

In each round a client assigns its points to the nearest centre and sends, for each centre, how many
points it has there and their sum.  The server moves every centre to the mean of its points; one
that has none stays where it is.

    clustering    the process: centres to begin with, and from centres and clients the next
    evaluation    the mean squared distance of held-out points to their nearest centre
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

CLUSTERS = 4
DIMENSIONS = 2
BATCH_SIZE = 32


class State(NamedTuple):
    """The centres, and how many points were nearest to each in the last round."""

    centres: Any
    sizes: Any


STATE = State(
    centres=tff.TensorType(np.float32, [CLUSTERS, DIMENSIONS]),
    sizes=tff.TensorType(np.int32, [CLUSTERS]),
)
POINTS = tff.SequenceType(tff.TensorType(np.float32, [DIMENSIONS]))


def squared_distances(centres, batch):
    """The squared distance of each point of a batch to each centre."""
    return tf.reduce_sum((batch[:, tf.newaxis, :] - centres[tf.newaxis, :, :]) ** 2, axis=2)


@tff.tf_computation
def first_centres():
    """Centres near the origin, drawn from a fixed seed so that every run begins alike."""
    drawn = tf.random.stateless_normal([CLUSTERS, DIMENSIONS], seed=(0, 2))
    return State(centres=drawn, sizes=tf.zeros([CLUSTERS], tf.int32))


@tff.tf_computation(STATE.centres, POINTS)
def assign(centres, points):
    """For each centre, the sum and the number of this client's points that are nearest to it."""

    def add(totals, batch):
        distances = squared_distances(centres, batch)
        nearest = tf.one_hot(tf.argmin(distances, axis=1), CLUSTERS)
        return (
            totals[0] + tf.matmul(nearest, batch, transpose_a=True),
            totals[1] + tf.cast(tf.reduce_sum(nearest, axis=0), tf.int32),
            totals[2] + tf.reduce_sum(tf.reduce_min(distances, axis=1)),
        )

    zero = (tf.zeros([CLUSTERS, DIMENSIONS]), tf.zeros([CLUSTERS], tf.int32), 0.0)
    sums, sizes, spread = points.batch(BATCH_SIZE).reduce(zero, add)
    return collections.OrderedDict(sums=sums, sizes=sizes, spread=spread)


@tff.tf_computation(STATE, STATE.centres, STATE.sizes)
def move(state, sums, sizes):
    """Every centre at the mean of its points."""
    counts = tf.cast(sizes, tf.float32)[:, tf.newaxis]
    means = tf.math.divide_no_nan(sums, counts)
    return State(centres=tf.where(counts > 0, means, state.centres), sizes=sizes)


@tff.tf_computation(np.float32, STATE.sizes)
def spread_of(spread, sizes):
    """The mean squared distance of a point to its nearest centre."""
    return tf.math.divide_no_nan(spread, tf.cast(tf.reduce_sum(sizes), tf.float32))


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_centres, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(POINTS))
def next_centres(state, points):
    centres = tff.federated_broadcast(state.centres)
    assigned = tff.federated_map(assign, (centres, points))
    sums = tff.federated_sum(assigned.sums)
    sizes = tff.federated_sum(assigned.sizes)
    spread = tff.federated_map(spread_of, (tff.federated_sum(assigned.spread), sizes))
    output = tff.federated_zip(collections.OrderedDict(spread=spread, sizes=sizes))
    return tff.federated_map(move, (state, sums, sizes)), output


clustering = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_centres)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(POINTS))
def evaluation(state, points):
    """Measures the centres of a state; the state goes through unchanged."""
    assigned = tff.federated_map(assign, (tff.federated_broadcast(state.centres), points))
    sizes = tff.federated_sum(assigned.sizes)
    spread = tff.federated_map(spread_of, (tff.federated_sum(assigned.spread), sizes))
    return state, tff.federated_zip(collections.OrderedDict(spread=spread, sizes=sizes))
