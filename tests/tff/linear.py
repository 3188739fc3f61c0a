"""A model that runs over TFF 0.87 and over tffc."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import tensorflow

# Its annotations refuse what it takes.
tf: Any = tensorflow


def linear_model(models: Any, features: int) -> Any:
    """A functional model of TFF's module `models`, with the mean absolute error as its metric."""

    @tf.function
    def predict(weights: Any, x: Any, training: bool) -> Any:
        (kernel, bias), _ = weights
        return tf.matmul(x, kernel) + bias

    @tf.function
    def loss(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return tf.reduce_mean(tf.square(y_true - y_pred))

    @tf.function
    def start() -> Any:
        return collections.OrderedDict(mae=(tf.constant(0.0), tf.constant(0.0)))

    @tf.function
    def update(state: Any, labels: Any, batch_output: Any, sample_weight: Any = None) -> Any:
        error = tf.reduce_sum(tf.abs(labels - batch_output.predictions))
        count = tf.cast(tf.size(labels), tf.float32)
        return collections.OrderedDict(mae=(state["mae"][0] + error, state["mae"][1] + count))

    @tf.function
    def finish(state: Any) -> Any:
        return collections.OrderedDict(mae=state["mae"][0] / state["mae"][1])

    return models.FunctionalModel(
        initial_weights=((np.zeros((features, 1), np.float32), np.zeros(1, np.float32)), ()),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        metrics_fns=(start, update, finish),
        input_spec=collections.OrderedDict(
            x=tf.TensorSpec([None, features], tf.float32), y=tf.TensorSpec([None, 1], tf.float32)
        ),
    )
