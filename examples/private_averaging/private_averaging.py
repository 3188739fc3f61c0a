"""Federated averaging with clipped updates and noise, on handwritten digits.

As in DP-FedAvg, every client's update is scaled down to a norm of at most `CLIP`, the updates of a
round are added up, and the server adds normal noise with a standard deviation of `NOISE * CLIP`
before it divides by the number of clients that a round is expected to have.  The share of clients
whose updates were scaled is made in the same way, from a count with noise of its own.

So all that a round puts out is private, and `tffc audit --privacy` shows how much, from the graphs
of this program, for a number of rounds and a way to choose clients.  That holds for those who see
what the server puts out, not for the server itself.

    training      the process: the first model, and from a model and clients the next
    evaluation    loss and accuracy of a state's model on held-out clients' images; not private
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

PIXELS = 64
DIGITS = 10

CLIP = 0.6
NOISE = 1.0
COUNT_NOISE = 4.0
CLIENTS_PER_ROUND = 30.0

LOCAL_EPOCHS = 2
BATCH_SIZE = 10
LEARNING_RATE = 0.2


class Model(NamedTuple):
    """A linear classifier."""

    weights: Any
    bias: Any


MODEL = Model(
    weights=tff.TensorType(np.float32, [PIXELS, DIGITS]), bias=tff.TensorType(np.float32, [DIGITS])
)
IMAGES = tff.SequenceType(
    collections.OrderedDict(
        pixels=tff.TensorType(np.uint8, [PIXELS]), label=tff.TensorType(np.int32)
    )
)


def logits(model, pixels):
    return tf.cast(pixels, tf.float32) / 16.0 @ model.weights + model.bias


def losses(model, batch):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=batch["label"], logits=logits(model, batch["pixels"])
    )


@tff.tf_computation
def first_model():
    return Model(weights=tf.zeros([PIXELS, DIGITS]), bias=tf.zeros([DIGITS]))


@tff.tf_computation(MODEL, IMAGES)
def clipped_update(model, images):
    """How far the model moves on a client's images, scaled to a norm of at most CLIP, and 1 if it
    had to be scaled."""

    def descend(trained, batch):
        with tf.GradientTape() as tape:
            tape.watch(trained)
            loss = tf.reduce_mean(losses(Model(*trained), batch))
        gradients = tape.gradient(loss, trained)
        return tuple(w - LEARNING_RATE * g for w, g in zip(trained, gradients, strict=True))

    trained = images.repeat(LOCAL_EPOCHS).batch(BATCH_SIZE).reduce(tuple(model), descend)
    moved = [end - begin for end, begin in zip(trained, model, strict=True)]
    clipped, norm = tf.clip_by_global_norm(moved, CLIP)
    return collections.OrderedDict(update=Model(*clipped), scaled=tf.cast(norm > CLIP, tf.float32))


@tff.tf_computation(MODEL, MODEL)
def noisy_step(model, total):
    """The next model.  The noise is drawn once in a round, whoever takes part."""

    def step(weights, added):
        noise = tf.random.normal(tf.shape(added), stddev=NOISE * CLIP)
        return weights + (added + noise) / CLIENTS_PER_ROUND

    return tf.nest.map_structure(step, model, total)


@tff.tf_computation(np.float32)
def noisy_share(count):
    """The share of the clients that a round is expected to have; with noise, any number."""
    return (count + tf.random.normal([], stddev=COUNT_NOISE)) / CLIENTS_PER_ROUND


@tff.tf_computation(MODEL, IMAGES)
def measure(model, images):
    """Mean loss and accuracy on a client's images, and how many these are."""

    def add(totals, batch):
        guesses = tf.argmax(logits(model, batch["pixels"]), axis=1, output_type=tf.int32)
        right = tf.cast(tf.equal(guesses, batch["label"]), tf.float32)
        sums = (tf.reduce_sum(losses(model, batch)), tf.reduce_sum(right))
        return (
            totals[0] + sums[0],
            totals[1] + sums[1],
            totals[2] + tf.cast(tf.size(right), tf.float32),
        )

    loss, right, count = images.batch(BATCH_SIZE).reduce((0.0, 0.0, 0.0), add)
    metrics = collections.OrderedDict(loss=loss / count, accuracy=right / count)
    return collections.OrderedDict(metrics=metrics, count=count)


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_model, tff.SERVER)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def train_one_round(model, images):
    work = tff.federated_map(clipped_update, (tff.federated_broadcast(model), images))
    next_model = tff.federated_map(noisy_step, (model, tff.federated_sum(work.update)))
    share_clipped = tff.federated_map(noisy_share, tff.federated_sum(work.scaled))
    output = collections.OrderedDict(share_clipped=share_clipped)
    return next_model, tff.federated_zip(output)


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def evaluation(model, images):
    """Measures a model; it goes through unchanged."""
    measured = tff.federated_map(measure, (tff.federated_broadcast(model), images))
    return model, tff.federated_mean(measured.metrics, weight=measured.count)
