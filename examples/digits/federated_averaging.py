"""Federated averaging on handwritten digits, in plain TensorFlow.

Sixty clients hold images that never leave them.  In each round the sampled clients train the
server's network on their own images for a few epochs and send back how far its weights moved; the
server moves its weights along the mean of these updates, weighted by the number of images, with
momentum.

    training      the process: makes the first state, and from one state and clients the next
    evaluation    loss and accuracy of a state's network on the clients' images, all held out
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

PIXELS = 64
HIDDEN = 48
DIGITS = 10

LOCAL_EPOCHS = 5
BATCH_SIZE = 10
LEARNING_RATE = 0.1
MOMENTUM = 0.6


class Model(NamedTuple):
    """A network with one hidden layer."""

    hidden_weights: Any
    hidden_bias: Any
    output_weights: Any
    output_bias: Any


class ServerState(NamedTuple):
    """What the server carries from round to round."""

    model: Model
    velocity: Model


MODEL = Model(
    hidden_weights=tff.TensorType(np.float32, [PIXELS, HIDDEN]),
    hidden_bias=tff.TensorType(np.float32, [HIDDEN]),
    output_weights=tff.TensorType(np.float32, [HIDDEN, DIGITS]),
    output_bias=tff.TensorType(np.float32, [DIGITS]),
)
STATE = ServerState(model=MODEL, velocity=MODEL)
IMAGES = tff.SequenceType(
    collections.OrderedDict(
        pixels=tff.TensorType(np.uint8, [PIXELS]), label=tff.TensorType(np.int32)
    )
)


def logits(model, pixels):
    """The network's scores for each digit, for a batch of images."""
    scaled = tf.cast(pixels, tf.float32) / 16.0
    hidden = tf.nn.relu(scaled @ model.hidden_weights + model.hidden_bias)
    return hidden @ model.output_weights + model.output_bias


def losses(model, batch):
    """The cross entropy of each image in a batch."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=batch["label"], logits=logits(model, batch["pixels"])
    )


def measure(model, images):
    """Mean loss and accuracy of the network on these images, and how many they are."""

    def add(totals, batch):
        guesses = tf.argmax(logits(model, batch["pixels"]), axis=1, output_type=tf.int32)
        right = tf.equal(guesses, batch["label"])
        return (
            totals[0] + tf.reduce_sum(losses(model, batch)),
            totals[1] + tf.reduce_sum(tf.cast(right, tf.float32)),
            totals[2] + tf.cast(tf.size(right), tf.float32),
        )

    loss, right, count = images.batch(BATCH_SIZE).reduce((0.0, 0.0, 0.0), add)
    return collections.OrderedDict(
        loss=tf.math.divide_no_nan(loss, count),
        accuracy=tf.math.divide_no_nan(right, count),
    ), count


@tff.tf_computation
def initial_state():
    def weights(seed, inputs, outputs):
        spread = tf.sqrt(2.0 / inputs)
        return tf.random.stateless_normal([inputs, outputs], seed=(0, seed), stddev=spread)

    model = Model(
        hidden_weights=weights(1, PIXELS, HIDDEN),
        hidden_bias=tf.zeros([HIDDEN]),
        output_weights=weights(2, HIDDEN, DIGITS),
        output_bias=tf.zeros([DIGITS]),
    )
    return ServerState(model, velocity=tf.nest.map_structure(tf.zeros_like, model))


@tff.tf_computation(MODEL, IMAGES)
def train(model, images):
    """How far a copy of the model moves when it trains on these images, and how it did before."""
    variables = tf.nest.map_structure(lambda w: tf.Variable(tf.zeros(w.shape)), model)

    @tf.function
    def descend(start, batches):
        tf.nest.map_structure(lambda v, w: v.assign(w), variables, start)
        for batch in batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(losses(variables, batch))
            gradients = tape.gradient(loss, variables)
            tf.nest.map_structure(
                lambda v, g: v.assign_sub(LEARNING_RATE * g), variables, gradients
            )
        return tf.nest.map_structure(lambda end, begin: end - begin, variables, start)

    metrics, count = measure(model, images)
    update = descend(model, images.repeat(LOCAL_EPOCHS).batch(BATCH_SIZE))
    return collections.OrderedDict(update=update, metrics=metrics, count=count)


@tff.tf_computation(STATE, MODEL)
def move(state, update):
    """The next state: the model moves along the velocity, which remembers earlier updates."""
    velocity = tf.nest.map_structure(lambda v, u: MOMENTUM * v + u, state.velocity, update)
    model = tf.nest.map_structure(lambda w, v: w + v, state.model, velocity)
    return ServerState(model, velocity)


@tff.federated_computation
def initialize():
    return tff.federated_eval(initial_state, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(IMAGES))
def train_one_round(state, images):
    model = tff.federated_broadcast(state.model)
    work = tff.federated_map(train, (model, images))
    update = tff.federated_mean(work.update, weight=work.count)
    metrics = tff.federated_mean(work.metrics, weight=work.count)
    return tff.federated_map(move, (state, update)), metrics


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)


@tff.tf_computation(MODEL, IMAGES)
def evaluate(model, images):
    metrics, count = measure(model, images)
    return collections.OrderedDict(metrics=metrics, count=count)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(IMAGES))
def evaluation(state, images):
    """Measures a state's network; the state goes through unchanged."""
    model = tff.federated_broadcast(state.model)
    measured = tff.federated_map(evaluate, (model, images))
    return state, tff.federated_mean(measured.metrics, weight=measured.count)
