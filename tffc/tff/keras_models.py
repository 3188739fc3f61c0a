"""Models of Keras 3 as models of `tff.learning`, whose own code knows Keras 2 only.

They compute what TFF computes of the same model of Keras 2: its loss with the losses of its layers,
its metrics, and the means and counts that TFF adds to them.
"""

from __future__ import annotations

import collections
import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from tffc.frontend.hints import described
from tffc.frontend.type_conversions import type_to_tf_tensor_specs
from tffc.language.types import Type
from tffc.runtime.frameworks.tensorflow.load import Tensor, load_tensorflow
from tffc.runtime.user_code.exception_hints import USE_KERAS_2
from tffc.runtime.user_code.source import call_theirs, entry_point
from tffc.support.errors import LanguageValueError

MODELS = "tensorflow_federated.python.learning.models"

Keras: TypeAlias = Any
"""A model, loss or metric of Keras, which type checkers need not know."""

Finalizer: TypeAlias = Callable[[Any], Any]

WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Matches where a word of a class's name begins, but the first."""

COUNTS = ("num_examples", "num_batches")


def is_of_keras_3(part: object) -> bool:
    """Return whether a model, loss or metric is of Keras 3."""
    return any(
        hasattr(part, name) for name in ("stateless_call", "stateless_update_state", "dtype_policy")
    ) and any(kind.__module__.partition(".")[0] == "keras" for kind in type(part).__mro__)


def for_keras_3(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return TFF's function `from_keras_model`, extended to models of Keras 3."""

    @functools.wraps(theirs)
    @entry_point
    def from_keras_model(
        keras_model: Keras,
        loss: Keras,
        input_spec: Any,
        loss_weights: Sequence[float] | None = None,
        metrics: Sequence[Keras] | None = None,
    ) -> Any:
        if not is_of_keras_3(keras_model):
            _check_former(keras_model)
            return call_theirs(theirs, keras_model, loss, input_spec, loss_weights, metrics)
        check_model(keras_model)
        spec = tensor_specs(input_spec)
        build_for(keras_model, spec)
        losses: list[Keras] = [*loss] if isinstance(loss, list | tuple) else [loss]  # pyright: ignore[reportUnknownArgumentType]
        weights = [1.0] * len(losses) if loss_weights is None else list(loss_weights)
        if not all(map(callable, losses)) or len(weights) != len(losses):
            raise LanguageValueError(
                "E204",
                f"a model needs losses of Keras, and as many weights, not {losses} and {weights}",
                help="give loss=tf.keras.losses.MeanSquaredError() or the like",
            )
        return _model_class()(keras_model, spec, losses, weights, _metrics(metrics or ()))

    return from_keras_model


def refusing_keras_3(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of TFF's that takes a model of Keras 2, refusing one of Keras 3."""

    @functools.wraps(theirs)
    @entry_point
    def checked(keras_model: Keras, *args: Any, **kwargs: Any) -> Any:
        if is_of_keras_3(keras_model):
            raise LanguageValueError(
                "E204",
                f"{theirs.__name__} takes a model of Keras 2, and this is of Keras 3",
                help=USE_KERAS_2,
            )
        return call_theirs(theirs, keras_model, *args, **kwargs)

    return checked


def _check_former(model: Keras) -> None:
    """Check that a model that is not of Keras 3 is of the Keras that TFF's library knows.

    Raises:
      LanguageValueError: it is of Keras 2, and `tf.keras` is not.
    """
    is_former = any(kind.__module__.startswith("tf_keras.") for kind in type(model).__mro__)
    if is_former and os.environ.get("TF_USE_LEGACY_KERAS") not in ("1", "true", "True"):
        raise LanguageValueError(
            "E204",
            "the model is of Keras 2, and tf.keras is Keras 3",
            help="set the environment variable TF_USE_LEGACY_KERAS=1, so that both are Keras 2, or "
            "make the model from tf.keras",
        )


def check_model(model: Keras) -> None:
    """Check that a model of Keras 3 can be trained in a program.

    Raises:
      LanguageValueError: it computes with another framework, or is compiled.
    """
    keras = importlib.import_module("keras")
    backend = call_theirs(keras.backend.backend)
    if backend != "tensorflow":
        raise LanguageValueError(
            "E204",
            f"Keras computes with {backend}, and tff.learning with TensorFlow",
            help="set the environment variable KERAS_BACKEND=tensorflow",
        )
    if model.compiled:
        raise LanguageValueError(
            "E204",
            "the model of Keras is compiled, and tff.learning takes models that are not",
            help="leave out model.compile(...), and give its loss and metrics to from_keras_model",
        )


def tensor_specs(spec: Any) -> Any:
    """Return a specification of batches, which has two parts, as tensor specifications.

    Raises:
      LanguageValueError: it is not one of x and y.
    """
    if isinstance(spec, Type):
        return tensor_specs(type_to_tf_tensor_specs(spec))
    names: list[object] = list(spec)
    if len(names) != 2 or (is_named(spec) and set(names) != {"x", "y"}):
        shown = f"elements {names}" if is_named(spec) else f"{len(names)} elements"
        raise LanguageValueError(
            "E204",
            f"batches of {shown} are not pairs of what the model takes and what it should give",
            help="give input_spec two elements, named x and y if they are named",
        )
    return spec


def build_for(model: Keras, spec: Any) -> None:
    """Make the weights of a model that has none yet, for batches of this specification."""
    if not model.built:
        tf = load_tensorflow()
        some: Any = tf.nest.map_structure(_zeros, parts_of(spec)[0])
        call_theirs(model, some)


def _zeros(spec: Any) -> Tensor:
    return load_tensorflow().zeros([size or 1 for size in spec.shape], spec.dtype)


def _metrics(metrics: Sequence[Keras]) -> list[Keras]:
    """Return metrics of Keras 3, of which some may be functions or classes that make them."""
    all = [call_theirs(each) if _makes_one(each) else each for each in metrics]
    for metric in all:
        if not is_of_keras_3(metric):
            raise LanguageValueError(
                "E204",
                f"the model is of Keras 3, and {described(metric)} is no metric of it",
                help="give metrics=[tf.keras.metrics.MeanAbsoluteError()] or the like, of the same "
                "tf.keras as the model",
            )
    return all


def names_of(metrics: Sequence[Keras]) -> list[str]:
    """Return the names of the metrics of a model, the same whenever the model is made.

    Keras 3 numbers the metrics without a name in a whole process, and Keras 2 those of a graph.
    """
    counts = collections.Counter[str]()
    names: list[str] = []
    for metric in metrics:
        base = WORDS.sub("_", type(metric).__name__).lower()
        if re.fullmatch(rf"{base}(_\d+)?", metric.name) and _is_numbered(metric):
            names.append(f"{base}_{counts[base]}" if counts[base] else base)
            counts[base] += 1
        else:
            names.append(metric.name)
    return names


def _is_numbered(metric: Keras) -> bool:
    name = inspect.signature(type(metric).__init__).parameters.get("name")
    return name is None or name.default is None


def _makes_one(metric: object) -> bool:
    is_metric = hasattr(metric, "update_state") and not isinstance(metric, type)
    return callable(metric) and not is_metric


def variable_of(variable: Any) -> Tensor:
    """Return TensorFlow's variable behind one of Keras."""
    return getattr(variable, "_value", variable)


class KerasModel:
    """A model of Keras 3 with its loss and metrics: all of a model of `tff.learning`, but its
    base class, which is TFF's."""

    def __init__(
        self,
        model: Keras,
        spec: Any,
        losses: Sequence[Keras],
        weights: Sequence[float],
        metrics: Sequence[Keras],
    ) -> None:
        tf = load_tensorflow()
        self._model = model
        self._losses = losses
        self._weights = weights
        self._metrics = dict(zip(names_of(metrics), metrics, strict=True))
        self._loss = [tf.Variable(0.0, False, name=each) for each in ("loss_sum", "loss_count")]
        self._counts = {each: tf.Variable(0, False, name=each, dtype=tf.int64) for each in COUNTS}
        self.input_spec = spec

    @property
    def trainable_variables(self) -> list[Tensor]:
        return [variable_of(each) for each in self._model.trainable_weights]

    @property
    def non_trainable_variables(self) -> list[Tensor]:
        return [variable_of(each) for each in self._model.non_trainable_weights]

    @property
    def local_variables(self) -> list[Tensor]:
        metrics = self._metrics.values()
        of_metrics = [variable_of(each) for metric in metrics for each in metric.variables]
        return [*of_metrics, *self._loss, *self._counts.values()]

    def predict_on_batch(self, batch_input: Any, training: bool = True) -> Tensor:
        return self._model(batch_input, training=training)

    def forward_pass(self, batch_input: Any, training: bool = True) -> Any:
        tf = load_tensorflow()
        x, y = parts_of(batch_input)
        predictions = self._model(x, training=training)
        loss = self._compared(y, predictions)
        for metric in self._metrics.values():
            metric.update_state(y, predictions)
        number = tf.shape(tf.nest.flatten(predictions)[0])[0]
        weight = tf.cast(number, tf.float32)
        for variable, more in zip(self._loss, (loss * weight, weight), strict=True):
            variable.assign_add(more)
        for variable, more in zip(self._counts.values(), (number, 1), strict=True):
            variable.assign_add(tf.cast(more, tf.int64))
        of_layers = [tf.cast(each, tf.float32) for each in self._model.losses]
        output = importlib.import_module(MODELS).BatchOutput
        return output(tf.add_n([loss, *of_layers]), predictions, number)

    def _compared(self, y: Any, predictions: Any) -> Tensor:
        """Return the loss, without those of layers."""
        tf = load_tensorflow()
        one = len(self._losses) == 1
        wanted, got = ([each] if one else tf.nest.flatten(each) for each in (y, predictions))
        parts = zip(self._losses, self._weights, wanted, got, strict=True)
        return tf.add_n([weight * tf.cast(loss(a, b), tf.float32) for loss, weight, a, b in parts])

    def report_local_unfinalized_metrics(self) -> collections.OrderedDict[str, list[Tensor]]:
        variables: dict[str, Sequence[Any]] = {
            **{name: metric.variables for name, metric in self._metrics.items()},
            "loss": self._loss,
            **{name: [variable] for name, variable in self._counts.items()},
        }
        return collections.OrderedDict(
            (name, [variable_of(each).read_value() for each in group])
            for name, group in variables.items()
        )

    def metric_finalizers(self) -> collections.OrderedDict[str, Finalizer]:
        finalizers: dict[str, Finalizer] = {
            **{name: metric.stateless_result for name, metric in self._metrics.items()},
            "loss": _quotient,
            **dict.fromkeys(self._counts, _only),
        }
        function = load_tensorflow().function
        return collections.OrderedDict((name, function(f)) for name, f in finalizers.items())

    def reset_metrics(self) -> None:
        for variable in self.local_variables:
            variable.assign(load_tensorflow().zeros_like(variable))


def is_named(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a container has names for what is in it."""
    return isinstance(value, Mapping)


def parts_of(batch: Any) -> tuple[Any, Any]:
    """Return what a model takes of a batch, and what it should give."""
    return (batch["x"], batch["y"]) if is_named(batch) else (batch[0], batch[1])


def _quotient(values: Any) -> Tensor:
    return load_tensorflow().math.divide_no_nan(values[0], values[1])


def _only(values: Any) -> Tensor:
    return values[0]


@functools.cache
def _model_class() -> Any:
    """Return the class of models of Keras 3, which derives from a class of TFF's library."""
    function = load_tensorflow().function
    base = importlib.import_module(MODELS).VariableModel
    in_graphs = ("predict_on_batch", "forward_pass", "report_local_unfinalized_metrics")
    methods = {name: function(getattr(KerasModel, name)) for name in (*in_graphs, "reset_metrics")}
    return type("KerasModel", (KerasModel, base), {**methods, "input_spec": None})
