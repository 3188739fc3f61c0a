"""How hot is it?  Sensors answer without giving their readings away.

Each client is a sensor that holds a sequence of readings in degrees.  The server's state is the
threshold, which a round gives back as it was.

    tffc compile examples/temperature/temperature.py:share_over_threshold \\
        --form mapreduce --out build/share
    tffc run build/share --data examples/temperature/sensors --rounds 1
"""

import collections

import numpy as np
import tensorflow as tf

import tffc as tff

DEGREES = tff.TensorType(np.float32)
READINGS = tff.SequenceType(DEGREES)


@tff.tf_computation
def default_threshold():
    return tf.constant(25.0)


@tff.federated_computation
def initialize():
    return tff.federated_eval(default_threshold, tff.SERVER)


@tff.tf_computation(READINGS, DEGREES)
def is_over(readings, threshold):
    """1.0 where the mean of a sensor's readings is over the threshold, and 0.0 elsewhere."""
    total, count = readings.reduce(
        (0.0, 0.0), lambda state, degrees: (state[0] + degrees, state[1] + 1.0)
    )
    return tf.cast(tf.math.divide_no_nan(total, count) > threshold, tf.float32)


@tff.federated_computation(tff.types.at_server(DEGREES), tff.types.at_clients(READINGS))
def count_over_threshold(threshold, readings):
    """The share of the sensors whose mean reading is over the threshold."""
    everywhere = tff.federated_broadcast(threshold)
    over = tff.federated_map(is_over, (readings, everywhere))
    return threshold, tff.federated_mean(over)


@tff.tf_computation(READINGS)
def summarise(readings):
    """A sensor's mean reading and how many readings it is the mean of."""
    total, count = readings.reduce(
        (0.0, 0.0), lambda state, degrees: (state[0] + degrees, state[1] + 1.0)
    )
    return collections.OrderedDict(mean=tf.math.divide_no_nan(total, count), count=count)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(READINGS))
def mean_temperature(state, readings):
    """The mean of all readings: the sensors' means, each with the weight of its count."""
    summaries = tff.federated_map(summarise, readings)
    return state, tff.federated_mean(summaries.mean, weight=summaries.count)


share_over_threshold = tff.templates.IterativeProcess(
    initialize_fn=initialize, next_fn=count_over_threshold
)
