"""Federated averaging on handwritten digits, in JAX alone.

A client takes a step of gradient descent for each of its images, in the order in which it holds
them, and the server takes the mean of the clients' networks, each with the weight of its images.
JAX computes for exact shapes, so a sequence of images is gone through by operators of the language.

    training      the process: makes the first state, and from one state and clients the next
    evaluation    loss and accuracy of a state's network on the clients' images, all held out
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tffc as tff

PIXELS, HIDDEN, DIGITS = 64, 32, 10
LEARNING_RATE = 0.05


class Model(NamedTuple):
    """A network with one hidden layer."""

    hidden: Any
    hidden_bias: Any
    output: Any
    output_bias: Any


class Image(NamedTuple):
    """The brightness of each pixel, from 0 to 16, and which digit the image shows."""

    label: Any
    pixels: Any


class Totals(NamedTuple):
    """Sums over images."""

    loss: Any
    correct: Any
    images: Any


class Work(NamedTuple):
    """A client's network while it trains, and how the network before each step did."""

    model: Any
    totals: Any


MODEL = Model(
    hidden=tff.TensorType(np.float32, [PIXELS, HIDDEN]),
    hidden_bias=tff.TensorType(np.float32, [HIDDEN]),
    output=tff.TensorType(np.float32, [HIDDEN, DIGITS]),
    output_bias=tff.TensorType(np.float32, [DIGITS]),
)
IMAGE = Image(
    label=tff.TensorType(np.int32),
    pixels=tff.TensorType(np.uint8, [PIXELS]),
)
TOTALS = Totals(*[tff.TensorType(np.float32)] * 3)
WORK = Work(MODEL, TOTALS)
IMAGES = tff.SequenceType(IMAGE)


def loss(model, image):
    """The loss of a network on one image, and whether it is right about it."""
    hidden = jax.nn.relu(image.pixels / 16.0 @ model.hidden + model.hidden_bias)
    logits = hidden @ model.output + model.output_bias
    right = jnp.argmax(logits) == image.label
    return -jax.nn.log_softmax(logits)[image.label], right.astype(jnp.float32)


@tff.jax.computation
def first_model():
    """Small weights, drawn from a fixed key so that every run begins alike."""
    keys = jax.random.split(jax.random.key(1))
    return Model(
        hidden=jax.random.normal(keys[0], (PIXELS, HIDDEN)) * (2 / PIXELS) ** 0.5,
        hidden_bias=jnp.zeros(HIDDEN),
        output=jax.random.normal(keys[1], (HIDDEN, DIGITS)) * (1 / HIDDEN) ** 0.5,
        output_bias=jnp.zeros(DIGITS),
    )


@tff.jax.computation(MODEL)
def start(model):
    return Work(model, Totals(*[jnp.zeros(())] * 3))


@tff.jax.computation(WORK, IMAGE)
def step(work, image):
    """One step of gradient descent on one image."""
    (value, right), slope = jax.value_and_grad(loss, has_aux=True)(work.model, image)
    moved = jax.tree.map(lambda w, s: w - LEARNING_RATE * s, work.model, slope)
    return Work(moved, jax.tree.map(jnp.add, work.totals, Totals(value, right, 1.0)))


@tff.jax.computation(WORK, IMAGE)
def measure(work, image):
    """What the network says of one image, without a step."""
    found = Totals(*loss(work.model, image), 1.0)
    return Work(work.model, jax.tree.map(jnp.add, work.totals, found))


@tff.jax.computation(TOTALS)
def summary(totals):
    return {"loss": totals.loss / totals.images, "accuracy": totals.correct / totals.images}


@tff.federated_computation(MODEL, IMAGES)
def train(model, images):
    return tff.sequence_reduce(images, start(model), step)


@tff.federated_computation(MODEL, IMAGES)
def test(model, images):
    return tff.sequence_reduce(images, start(model), measure)


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_model, tff.SERVER)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def next_model(model, images):
    work = tff.federated_map(train, (tff.federated_broadcast(model), images))
    totals = tff.federated_sum(work.totals)
    mean = tff.federated_mean(work.model, weight=work.totals.images)
    return mean, tff.federated_map(summary, totals)


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_model)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def evaluation(model, images):
    """Measures the network of a state; the state goes through unchanged."""
    work = tff.federated_map(test, (tff.federated_broadcast(model), images))
    return model, tff.federated_map(summary, tff.federated_sum(work.totals))
