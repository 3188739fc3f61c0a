"""One round of federated averaging of a network with one hidden layer, and clients' data for it."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import numpy as np

FEATURES, HIDDEN, CLASSES = 64, 64, 10
EPOCHS, BATCH, RATE = 2, 16, 0.1
NAMES = ("w1", "b1", "w2", "b2")
SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))


def first_weights() -> list[np.ndarray]:
    """Return the weights before the first round."""
    random = np.random.RandomState(0)
    return [
        random.normal(0, 0.1, shape).astype(np.float32)
        if len(shape) == 2
        else np.zeros(shape, np.float32)
        for shape in SHAPES
    ]


def client_data(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield 10 to 59 examples and their classes for each client."""
    random = np.random.RandomState(0)
    for _ in range(count):
        size = random.randint(10, 60)
        features = random.normal(size=(size, FEATURES)).astype(np.float32)
        yield features, random.randint(0, CLASSES, size).astype(np.int32)


def build(tff: Any) -> Any:
    """Return the round, `(<weights@SERVER,{<x,y>*}@CLIENTS> ->
    <weights@SERVER,float32@SERVER>)`."""
    tensors = [tff.TensorType(np.float32, shape) for shape in SHAPES]
    model = tff.StructType(list(zip(NAMES, tensors, strict=True)))
    example = tff.StructType(
        [("x", tff.TensorType(np.float32, [FEATURES])), ("y", tff.TensorType(np.int32, []))]
    )
    examples = tff.SequenceType(example)

    @tff.tensorflow.computation(model, examples)
    def work(weights: Any, data: Any) -> Any:
        return train([getattr(weights, name) for name in NAMES], data)

    @tff.tensorflow.computation(model, model)
    def update(weights: Any, delta: Any) -> Any:
        return collections.OrderedDict((n, getattr(weights, n) + getattr(delta, n)) for n in NAMES)

    @tff.federated_computation(
        tff.FederatedType(model, tff.SERVER), tff.FederatedType(examples, tff.CLIENTS)
    )
    def each_round(state: Any, data: Any) -> Any:
        trained = tff.federated_map(work, (tff.federated_broadcast(state), data))
        mean = tff.federated_mean(trained.delta, weight=trained.count)
        loss = tff.federated_mean(trained.loss, weight=trained.count)
        return tff.federated_map(update, (state, mean)), loss

    return each_round


def train(weights: list[Any], data: Any) -> Any:
    """Return the change of the weights, the number of examples and the mean loss of one client."""
    import tensorflow as tf

    def step(state: Any, batch: Any) -> Any:
        *current, loss, count = state
        with tf.GradientTape() as tape:
            tape.watch(current)
            w1, b1, w2, b2 = current
            logits = tf.nn.relu(batch["x"] @ w1 + b1) @ w2 + b2
            each = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"], logits=logits)
            )
        gradients = tape.gradient(each, current)
        size = tf.cast(tf.shape(batch["y"])[0], tf.float32)
        moved = [w - RATE * g for w, g in zip(current, gradients, strict=True)]
        return (*moved, loss + each * size, count + size)

    zero = tf.constant(0.0)
    *trained, loss, count = data.repeat(EPOCHS).batch(BATCH).reduce((*weights, zero, zero), step)
    delta = collections.OrderedDict(
        (n, t - w) for n, t, w in zip(NAMES, trained, weights, strict=True)
    )
    return collections.OrderedDict(delta=delta, count=count, loss=loss / tf.maximum(count, 1.0))
