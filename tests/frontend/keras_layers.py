"""Computations with the layers, optimizers and initializers of Keras 3 and Keras 2.

tffc loads this as a user's module; run as a script, it does that and writes them as bytes to the
file that it is given.  A second argument runs each of them, which shows that its graph is sound.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import tffc as tff

ROWS, IMAGES = (np.float32, [2, 6]), (np.float32, [2, 8, 8, 3])
SERIES, TOKENS = (np.float32, [2, 5, 4]), (np.int32, [2, 5])

Layers = list[Callable[[Any], Any]]
USUAL: dict[str, tuple[Any, Layers]] = {
    "rows": (
        ROWS,
        [
            lambda k: k.Dense(3),
            lambda k: k.Dropout(0.5),
            lambda k: k.BatchNormalization(),
            lambda k: k.LayerNormalization(),
        ],
    ),
    "images": (IMAGES, [lambda k: k.Conv2D(2, 3), lambda k: k.Flatten(), lambda k: k.Dense(2)]),
    "series": (SERIES, [lambda k: k.LSTM(3, return_sequences=True), lambda k: k.GRU(3)]),
    "tokens": (TOKENS, [lambda k: k.Embedding(7, 4), lambda k: Attention(k)]),
}
MORE: dict[str, tuple[Any, Layers]] = {
    "noise": (ROWS, [lambda k: k.GaussianNoise(0.5), lambda k: k.GaussianDropout(0.5)]),
    "groups": (ROWS, [lambda k: k.GroupNormalization(2)]),
    "convolutions": (
        IMAGES,
        [
            lambda k: k.DepthwiseConv2D(3),
            lambda k: k.SeparableConv2D(2, 3),
            lambda k: k.Conv2DTranspose(2, 3),
            lambda k: k.MaxPooling2D(),
        ],
    ),
    "augmented": (IMAGES, [lambda k: k.RandomFlip(), lambda k: k.RandomRotation(0.1)]),
    "simple": (SERIES, [lambda k: k.SimpleRNN(3)]),
    "both ways": (
        SERIES,
        [lambda k: k.Bidirectional(k.LSTM(3, dropout=0.2, recurrent_dropout=0.2))],
    ),
}
OPTIMIZERS = ["SGD", "Adam", "Adagrad", "RMSprop"]
MORE_OPTIMIZERS = ["Adadelta", "Adafactor", "Adamax", "AdamW", "Ftrl", "Lion", "Nadam"]
INITIALIZERS = [
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "LecunNormal",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
]


class Attention:
    """Attention of a sequence to itself, as a layer of one input."""

    def __init__(self, layers: Any) -> None:
        self._layer = layers.MultiHeadAttention(2, 3, dropout=0.1)

    def __call__(self, x: Any, **options: Any) -> Any:
        return self._layer(x, x, **options)

    @property
    def weights(self) -> list[Any]:
        return self._layer.weights


def applied(library: Any, spec: Any, layers: Layers) -> Any:
    def apply(x: Any) -> Any:
        weights = []
        for make in layers:
            layer = make(library.layers)
            x = layer(x) if "Flatten" in type(layer).__name__ else called(layer, x)
            weights += map(tf.convert_to_tensor, layer.weights)
        return [x, *weights]

    return tff.tf_computation(apply, spec)


def called(layer: Any, x: Any) -> Any:
    """The layer's output when it trains, where that makes a difference."""
    takes = getattr(layer, "_call_has_training_arg", None) or isinstance(layer, Attention)
    return layer(x, training=True) if takes else layer(x)


def trained(library: Any, name: str) -> Any:
    def train(x: Any) -> Any:
        model = library.Sequential([library.layers.Dense(3), library.layers.Dense(1)])
        optimizer = getattr(library.optimizers, name)(0.1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return [loss, *map(tf.convert_to_tensor, model.weights)]

    return tff.tf_computation(train, ROWS)


def initialized(library: Any, name: str) -> Any:
    return tff.tf_computation(
        lambda: tf.convert_to_tensor(getattr(library.initializers, name)()((3, 3)))
    )


def computations(library: Any, everything: bool) -> dict[str, Any]:
    models = USUAL | MORE if everything else USUAL
    optimizers = OPTIMIZERS + MORE_OPTIMIZERS if everything else OPTIMIZERS
    found = {name: applied(library, *model) for name, model in models.items()}
    found |= {name: trained(library, name) for name in optimizers}
    if everything:
        found |= {name: initialized(library, name) for name in INITIALIZERS}
    return {f"{library.__name__} {name}": computation for name, computation in found.items()}


def run(computation: Any) -> None:
    """Runs a computation on ones."""
    parameter = computation.type_signature.parameter
    if parameter is None:
        computation()
    else:
        computation(np.ones(parameter.shape, parameter.element_type.dtype))


if __name__ == "__main__":
    from tffc.language.wire import to_bytes
    from tffc.runtime.user_code.modules import import_source

    written = import_source(__file__).ALL
    for each in written.values() if sys.argv[2:] else ():
        run(each)
    with open(sys.argv[1], "wb") as out:
        pickle.dump({name: to_bytes(each.node) for name, each in written.items()}, out)
else:
    ALL = {
        name: computation
        for library in (keras, tf_keras)
        for name, computation in computations(
            library, os.environ.get("KERAS_LAYERS") == "all"
        ).items()
    }
