"""Federated averaging of a Keras model, on handwritten digits.

The model is made by `make_model` as any Keras model is.  What goes between server and clients is
the struct of its weights, by name and in the order of `model.weights`, so a trained state goes back
into a model with `model.set_weights`.

    training      the process: the model's first weights, and from weights and clients the next
    evaluation    loss and accuracy of a state's model on held-out clients' images
"""

import collections
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tffc as tff

PIXELS = 64
DIGITS = 10

LOCAL_EPOCHS = 3
BATCH_SIZE = 10
LEARNING_RATE = 0.1

IMAGES = tff.SequenceType(
    collections.OrderedDict(
        pixels=tff.TensorType(np.uint8, [PIXELS]), label=tff.TensorType(np.int32)
    )
)


def make_model() -> Any:
    """The network: scores for each digit of a batch of images."""
    return keras.Sequential(
        [
            keras.Input([PIXELS]),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Dense(32, activation="relu", name="hidden"),
            keras.layers.Dense(DIGITS, name="scores"),
        ]
    )


def names_and_weights(model):
    """The model's weights by names such as `hidden_kernel`."""
    return collections.OrderedDict(("_".join(w.path.split("/")[-2:]), w) for w in model.weights)


WEIGHTS = collections.OrderedDict(
    (name, tff.TensorType(np.dtype(w.dtype), w.shape))
    for name, w in names_and_weights(make_model()).items()
)

loss_of: Any = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


@tff.tf_computation
def first_weights():
    return collections.OrderedDict(
        (name, tf.convert_to_tensor(w)) for name, w in names_and_weights(make_model()).items()
    )


@tff.tf_computation(WEIGHTS, IMAGES)
def train(weights, images):
    """How far the model moves when it trains on a client's images, and how many these are."""
    # Variables, and so models and optimizers, are made out here; the loop is in a tf.function.
    model = make_model()
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    @tf.function
    def descend(weights, batches):
        for variable, value in zip(model.weights, weights.values(), strict=True):
            variable.assign(value)
        for batch in batches:
            with tf.GradientTape() as tape:
                losses = loss_of(batch["label"], model(batch["pixels"], training=True))
                loss = tf.reduce_mean(losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
        return [w - start for w, start in zip(model.weights, weights.values(), strict=True)]

    moved = descend(weights, images.repeat(LOCAL_EPOCHS).batch(BATCH_SIZE))
    count = images.reduce(0.0, lambda count, _: count + 1.0)
    return collections.OrderedDict(
        update=collections.OrderedDict(zip(weights, moved, strict=True)), count=count
    )


@tff.tf_computation(WEIGHTS, WEIGHTS)
def add(weights, update):
    return tf.nest.map_structure(tf.add, weights, update)


@tff.tf_computation(WEIGHTS, IMAGES)
def measure(weights, images):
    """Mean loss and accuracy on a client's images, and how many these are."""
    model = make_model()

    @tf.function
    def count_right(weights, batches):
        for variable, value in zip(model.weights, weights.values(), strict=True):
            variable.assign(value)
        loss: Any = 0.0
        right: Any = 0.0
        count: Any = 0.0
        for batch in batches:
            scores = model(batch["pixels"], training=False)
            guesses = tf.argmax(scores, axis=1, output_type=tf.int32)
            loss += tf.reduce_sum(loss_of(batch["label"], scores))
            right += tf.reduce_sum(tf.cast(guesses == batch["label"], tf.float32))
            count += tf.cast(tf.size(guesses), tf.float32)
        return loss, right, count

    loss, right, count = count_right(weights, images.batch(BATCH_SIZE))
    metrics = collections.OrderedDict(loss=loss / count, accuracy=right / count)
    return collections.OrderedDict(metrics=metrics, count=count)


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_weights, tff.SERVER)


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(IMAGES))
def train_one_round(weights, images):
    everywhere = tff.federated_broadcast(weights)
    before = tff.federated_map(measure, (everywhere, images))
    work = tff.federated_map(train, (everywhere, images))
    update = tff.federated_mean(work.update, weight=work.count)
    metrics = tff.federated_mean(before.metrics, weight=before.count)
    return tff.federated_map(add, (weights, update)), metrics


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(IMAGES))
def evaluation(weights, images):
    """Measures a state's model; the state goes through unchanged."""
    measured = tff.federated_map(measure, (tff.federated_broadcast(weights), images))
    return weights, tff.federated_mean(measured.metrics, weight=measured.count)


@tff.tf_computation(WEIGHTS, tff.TensorType(np.uint8, [None, PIXELS]))
def predict(weights, pixels):
    """The digit that the model sees in each image; `tffc export` writes it with a trained state."""
    scores, _ = make_model().stateless_call(list(weights.values()), [], pixels)
    return collections.OrderedDict(digit=tf.argmax(scores, axis=1, output_type=tf.int32))
