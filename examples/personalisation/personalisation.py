"""Clients that keep something of their own from round to round.

All clients share a model of how the time of day moves a temperature.  Each has an offset of its
own, which it keeps: it is the client's state.

    training      a round moves the shared weights by averaging, and each client's own offset
    evaluation    how wrong shared weights and own offsets are together
"""

import math
from collections import OrderedDict

import numpy as np
import tensorflow as tf

import tffc as tff

LEARNING_RATE, LOCAL_STEPS = 0.2, 5

WEIGHTS = tff.TensorType(np.float32, [2])
READINGS = OrderedDict(hour=(np.float32, [None]), degrees=(np.float32, [None]))
CLIENTS = tff.types.at_clients(READINGS), tff.types.at_clients(np.float32)


def errors(weights, readings, offset):
    """How far each reading is from what the model says, and the waves that the weights weigh."""
    angle = 2.0 * math.pi * readings["hour"] / 24.0
    waves = tf.stack([tf.sin(angle), tf.cos(angle)])
    return readings["degrees"] - offset - tf.linalg.matvec(waves, weights, transpose_a=True), waves


@tff.tf_computation(WEIGHTS, READINGS, np.float32)
def learn(weights, readings, offset):
    """How far the weights move on a client's readings, and the offset that fits them best."""
    start, (error, _) = weights, errors(weights, readings, offset)
    offset += tf.reduce_mean(error)
    for _ in range(LOCAL_STEPS):
        left, waves = errors(weights, readings, offset)
        weights += LEARNING_RATE * tf.reduce_mean(left * waves, axis=1)
    square = tf.reduce_mean(error**2)
    return OrderedDict(moved=weights - start, offset=offset, square=square)


@tff.tf_computation(np.float32)
def root(square):
    return tf.sqrt(square)


@tff.federated_computation
def initialize():
    return tff.federated_value(np.zeros(2, np.float32), tff.SERVER)


@tff.federated_computation(tff.types.at_server(WEIGHTS), *CLIENTS)
def next_round(weights, readings, offset):
    learned = tff.federated_map(learn, (tff.federated_broadcast(weights), readings, offset))
    error = tff.federated_map(root, tff.federated_mean(learned.square))
    return weights + tff.federated_mean(learned.moved), learned.offset, {"error": error}


@tff.federated_computation(tff.types.at_server(WEIGHTS), *CLIENTS)
def evaluation(weights, readings, offset):
    """Weights and offsets go through unchanged."""
    learned = tff.federated_map(learn, (tff.federated_broadcast(weights), readings, offset))
    error = tff.federated_map(root, tff.federated_mean(learned.square))
    return weights, offset, {"error": error}


training = tff.templates.IterativeProcess(initialize, next_round)
