"""Clients that keep something of their own from round to round.

All clients share a model of how the time of day moves a temperature; each one has an offset of its
own, which never leaves it.  A round of the language keeps state at the server only, so a client's
own state is part of its data: it goes in with the readings, and a second computation gives it back.

    training      the process at the server: the shared weights, by averaging; it reads the offsets
    adapting      what each client does afterwards: its next offset, and how wrong it was
    evaluation    how wrong shared weights and own offsets are together, on later readings

`train.py` beside this file alternates the two, and keeps the offsets where the readings are.
"""

import collections

import numpy as np
import tensorflow as tf

import tffc as tff

HOURS = 24.0
LEARNING_RATE = 0.2
LOCAL_STEPS = 5

WEIGHTS = tff.TensorType(np.float32, [2])
READINGS = collections.OrderedDict(
    hour=tff.TensorType(np.float32, [None]), degrees=tff.TensorType(np.float32, [None])
)
CLIENT = collections.OrderedDict(readings=READINGS, offset=tff.TensorType(np.float32))


def errors(weights, client):
    """How far each of a client's readings is from what the model says."""
    angle = 2.0 * np.pi * client["readings"]["hour"] / HOURS
    wave = weights[0] * tf.sin(angle) + weights[1] * tf.cos(angle)
    return client["readings"]["degrees"] - client["offset"] - wave, angle


@tff.tf_computation
def first_weights():
    return tf.zeros([2])


@tff.tf_computation(WEIGHTS, CLIENT)
def train(weights, client):
    """How far the shared weights move on this client's readings, its own offset held still."""
    start = weights
    for _ in range(LOCAL_STEPS):
        error, angle = errors(weights, client)
        slopes = tf.stack(
            [tf.reduce_mean(error * tf.sin(angle)), tf.reduce_mean(error * tf.cos(angle))]
        )
        weights += LEARNING_RATE * slopes
    return weights - start


@tff.tf_computation(WEIGHTS, CLIENT)
def adapt(weights, client):
    """The offset that fits this client best, given the shared weights, and its error before."""
    error, _ = errors(weights, client)
    return collections.OrderedDict(
        offset=client["offset"] + tf.reduce_mean(error), error=tf.sqrt(tf.reduce_mean(error**2))
    )


@tff.tf_computation(WEIGHTS, CLIENT)
def measure(weights, client):
    error, _ = errors(weights, client)
    return collections.OrderedDict(
        squares=tf.reduce_sum(error**2), count=tf.cast(tf.size(error), tf.float32)
    )


@tff.tf_computation(WEIGHTS, WEIGHTS)
def add(weights, moved):
    return weights + moved


@tff.tf_computation(np.float32, np.float32)
def root_mean(squares, count):
    return tf.sqrt(squares / count)


def measured(weights, clients):
    """The root of the mean squared error over all clients' readings."""
    each = tff.federated_map(measure, (tff.federated_broadcast(weights), clients))
    return tff.federated_map(
        root_mean, (tff.federated_sum(each.squares), tff.federated_sum(each.count))
    )


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_weights, tff.SERVER)


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(CLIENT))
def train_one_round(weights, clients):
    moved = tff.federated_map(train, (tff.federated_broadcast(weights), clients))
    error = tff.federated_zip(collections.OrderedDict(error=measured(weights, clients)))
    return tff.federated_map(add, (weights, tff.federated_mean(moved))), error


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(CLIENT))
def adapting(weights, clients):
    """What every client has afterwards; nothing of it goes to the server."""
    return tff.federated_map(adapt, (tff.federated_broadcast(weights), clients))


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(CLIENT))
def evaluation(weights, clients):
    """Measures weights together with the clients' offsets; they go through unchanged."""
    error = tff.federated_zip(collections.OrderedDict(error=measured(weights, clients)))
    return weights, error
