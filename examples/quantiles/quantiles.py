"""Quantiles of what clients hold, by secure sums alone.

Each client has some durations in seconds.  The server looks for the durations below which a
quarter, a half and nine tenths of all lie, by bisection: in each round the clients say how many of
theirs are at most the middle of each interval, and the server keeps the half that holds the
quantile.  What leaves a client are counts in a secure sum, so the server learns the totals only.

    search        the process: an interval for each quantile, half as long after every round
    evaluation    the share of held-out durations at or below each estimate
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

QUANTILES = (0.25, 0.5, 0.9)
LOWEST, HIGHEST = 0.0, 600.0
MOST_PER_CLIENT = 1000
BATCH_SIZE = 64


class Intervals(NamedTuple):
    """For each quantile, between which durations it lies."""

    lower: Any
    upper: Any


SOME = tff.TensorType(np.float32, [len(QUANTILES)])
STATE = Intervals(lower=SOME, upper=SOME)
DURATIONS = tff.SequenceType(np.float32)
COUNTS = collections.OrderedDict(
    below=tff.TensorType(np.int32, [len(QUANTILES)]), total=tff.TensorType(np.int32)
)


def middle(intervals):
    return (intervals.lower + intervals.upper) / 2.0


@tff.tf_computation
def widest():
    return Intervals(
        lower=tf.fill([len(QUANTILES)], LOWEST), upper=tf.fill([len(QUANTILES)], HIGHEST)
    )


@tff.tf_computation(STATE)
def estimate(intervals):
    return middle(intervals)


@tff.tf_computation(SOME, DURATIONS)
def count(limits, durations):
    """How many of a client's durations are at most each limit, and how many there are."""

    def add(totals, batch):
        below = tf.cast(batch[:, tf.newaxis] <= limits[tf.newaxis, :], tf.int32)
        return totals[0] + tf.reduce_sum(below, axis=0), totals[1] + tf.size(batch)

    kept = durations.take(MOST_PER_CLIENT).batch(BATCH_SIZE)
    below, total = kept.reduce((tf.zeros([len(QUANTILES)], tf.int32), 0), add)
    return collections.OrderedDict(below=below, total=total)


@tff.tf_computation(STATE, COUNTS)
def halve(intervals, counts):
    """The halves that hold the quantiles."""
    share = tf.cast(counts["below"], tf.float32) / tf.cast(
        tf.maximum(counts["total"], 1), tf.float32
    )
    at_most = share >= tf.constant(QUANTILES)
    return Intervals(
        lower=tf.where(at_most, intervals.lower, middle(intervals)),
        upper=tf.where(at_most, middle(intervals), intervals.upper),
    )


@tff.tf_computation(COUNTS)
def shares(counts):
    total = tf.cast(tf.maximum(counts["total"], 1), tf.float32)
    return tf.cast(counts["below"], tf.float32) / total


@tff.federated_computation
def initialize():
    return tff.federated_eval(widest, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(DURATIONS))
def next_intervals(intervals, durations):
    limits = tff.federated_broadcast(tff.federated_map(estimate, intervals))
    counts = tff.federated_map(count, (limits, durations))
    totals = tff.federated_secure_sum(counts, MOST_PER_CLIENT)
    halved = tff.federated_map(halve, (intervals, totals))
    return halved, tff.federated_map(estimate, halved)


search = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_intervals)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(DURATIONS))
def evaluation(intervals, durations):
    """The share of the durations at or below each estimate; the intervals go through unchanged."""
    limits = tff.federated_broadcast(tff.federated_map(estimate, intervals))
    counts = tff.federated_map(count, (limits, durations))
    totals = tff.federated_secure_sum(counts, MOST_PER_CLIENT)
    return intervals, tff.federated_map(shares, totals)
