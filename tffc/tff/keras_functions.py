"""Models and metrics of Keras 3 as functions of their weights and state, for `tff.learning`."""

from __future__ import annotations

import collections
import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

from tffc.runtime.frameworks.tensorflow.load import Tensor, load_tensorflow
from tffc.runtime.user_code.source import call_theirs, entry_point
from tffc.support.errors import LanguageValueError
from tffc.tff.keras_models import (
    MODELS,
    Keras,
    build_for,
    check_model,
    is_named,
    is_of_keras_3,
    tensor_specs,
    variable_of,
)

METRICS = "tensorflow_federated.python.learning.metrics"

State: TypeAlias = Any
"""The variables of metrics: those of one, or those of several by their names."""


def functional_for_keras_3(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return TFF's function `functional_model_from_keras`, extended to models of Keras 3."""

    @functools.wraps(theirs)
    @entry_point
    def functional_model_from_keras(
        keras_model: Keras,
        loss_fn: Keras,
        input_spec: Any,
        metrics_constructor: Any = None,
    ) -> Any:
        tf = load_tensorflow()
        with tf.init_scope():
            is_model = hasattr(keras_model, "trainable_weights")
            model = keras_model if is_model else call_theirs(keras_model)
            if not is_of_keras_3(model):
                return call_theirs(theirs, keras_model, loss_fn, input_spec, metrics_constructor)
            check_model(model)
            if model.non_trainable_variables:
                paths = (each.path.split("/")[-2:] for each in model.non_trainable_variables)
                names = ", ".join(map("/".join, paths))
                raise LanguageValueError(
                    "E204",
                    f"a functional model must have trainable weights only, and this has {names}",
                    help="leave out layers such as BatchNormalization and Dropout, or use "
                    "tff.learning.models.from_keras_model",
                )
            build_for(model, tensor_specs(input_spec))
            weights = tuple(variable_of(each).numpy() for each in model.trainable_weights)

        @tf.function(autograph=False)
        def predict(model_weights: Any, x: Any, training: bool = True) -> Any:
            trainable, _ = model_weights
            return model.stateless_call(list(trainable), [], x, training=training)[0]

        @tf.function(autograph=False)
        def loss(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
            return loss_fn(y_true, y_pred, sample_weight)

        library = importlib.import_module(METRICS)
        metrics = library.create_functional_metric_fns(metrics_constructor or no_metrics)
        return importlib.import_module(MODELS).FunctionalModel(
            initial_weights=(weights, ()),
            predict_on_batch_fn=predict,
            loss_fn=loss,
            metrics_fns=metrics,
            input_spec=tensor_specs(input_spec),
        )

    return functional_model_from_keras


def no_metrics() -> collections.OrderedDict[str, Keras]:
    """Return no metrics."""
    return collections.OrderedDict()


def metrics_for_keras_3(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return TFF's function `create_functional_metric_fns`, extended to metrics of Keras 3."""

    @functools.wraps(theirs)
    @entry_point
    def create_functional_metric_fns(metrics_constructor: Any) -> Any:
        tf = load_tensorflow()
        with tf.init_scope():
            metrics = _constructed(metrics_constructor)
            parts: list[Keras] = list(metrics.values()) if is_named(metrics) else [metrics]
            if not all(map(is_of_keras_3, parts)):
                return call_theirs(theirs, metrics_constructor)
            first: list[list[Any]] = [
                [variable_of(each).numpy() for each in part.variables] for part in parts
            ]

        def packed(values: list[Any]) -> Any:
            if is_named(metrics):
                return collections.OrderedDict(zip(metrics, values, strict=True))
            return values[0]

        def of_parts(state: State) -> list[Any]:
            return [state[name] for name in metrics] if is_named(metrics) else [state]

        @tf.function(autograph=False)
        def initialize() -> State:
            return packed([tuple(tf.constant(value) for value in values) for values in first])

        @tf.function(autograph=False)
        def update(
            state: State, labels: Any, batch_output: Any, sample_weight: Any = None
        ) -> State:
            predictions = batch_output.predictions
            weight = {} if sample_weight is None else {"sample_weight": sample_weight}
            pairs = zip(parts, of_parts(state), strict=True)
            return packed(
                [
                    tuple(part.stateless_update_state(list(values), labels, predictions, **weight))
                    for part, values in pairs
                ]
            )

        @tf.function(autograph=False)
        def finalize(state: State) -> Any:
            pairs = zip(parts, of_parts(state), strict=True)
            return packed([part.stateless_result(list(values)) for part, values in pairs])

        return initialize, update, finalize

    return create_functional_metric_fns


def _constructed(constructor: Any) -> Any:
    """Return the metric, or the metrics by name, that a constructor makes."""
    if is_named(constructor):
        return collections.OrderedDict(
            (name, call_theirs(each)) for name, each in constructor.items()
        )
    return call_theirs(constructor)
