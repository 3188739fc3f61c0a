"""Clients that keep something of their own from round to round.

All clients share a model of how the time of day moves a temperature.  Each has an offset of its
own, which it keeps: it is the client's state.

    training      a round moves the shared weights by averaging, and each client's own offset
    evaluation    how wrong shared weights and own offsets are together
"""

import collections
import math

import tensorflow as tf

import tffc as tff

LEARNING_RATE, LOCAL_STEPS = 0.2, 5

WEIGHTS = tff.TensorType(tf.float32, [2])
NUMBERS = tff.TensorType(tf.float32, [None])
READINGS = collections.OrderedDict(hour=NUMBERS, degrees=NUMBERS)
CLIENTS = tff.types.at_clients(READINGS), tff.types.at_clients(tf.float32)


def errors(weights, readings, offset):
    """How far each reading is from what the model says, and the waves that the weights weigh."""
    angle = 2.0 * math.pi * readings["hour"] / 24.0
    waves = tf.stack([tf.sin(angle), tf.cos(angle)])
    return readings["degrees"] - offset - tf.linalg.matvec(waves, weights, transpose_a=True), waves


@tff.tf_computation(WEIGHTS, READINGS, tf.float32)
def learn(weights, readings, offset):
    """How far the weights move on a client's readings, and the offset that fits them best."""
    start, (error, _) = weights, errors(weights, readings, offset)
    offset += tf.reduce_mean(error)
    for _ in range(LOCAL_STEPS):
        left, waves = errors(weights, readings, offset)
        weights += LEARNING_RATE * tf.reduce_mean(left * waves, axis=1)
    square = tf.reduce_mean(error**2)
    return collections.OrderedDict(moved=weights - start, offset=offset, square=square)


@tff.tf_computation(tf.float32)
def root(square):
    return tf.sqrt(square)


@tff.tf_computation
def first_weights():
    return tf.zeros([2])


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_weights, tff.SERVER)


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
