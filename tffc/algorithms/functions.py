"""Pure functions of weights: what any model is to the algorithms."""

from __future__ import annotations

import dataclasses
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

import tffc
from tffc.algorithms.examples import shape_of
from tffc.language.values.misfits import describe
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.guards import is_mapping, is_path
from tffc.support.printable import counted

Arrays: TypeAlias = OrderedDict[str, Any]
"""Arrays or tensors by name."""

M = TypeVar("M", bound="PureFunctions")

TOTALS = ("examples", "loss")
"""What every model reports, so that no metric may be called so."""


class BatchLosses(NamedTuple):
    """What a model says of a batch: a loss and metrics for each example of it, a penalty of the
    weights that is part of what training makes small, and new values of weights that training
    changes without gradients."""

    losses: Any
    metrics: Arrays
    penalty: Any = 0.0
    changed: Mapping[str, Any] = {}


class Losses(Protocol):
    """The pure function of a model."""

    def __call__(self, weights: Arrays, batch: Arrays, training: bool) -> BatchLosses: ...


class Slopes(Protocol):
    """The gradients of the mean loss of a batch by the weights that are trained."""

    def __call__(self, weights: Arrays, batch: Arrays) -> tuple[Arrays, BatchLosses]: ...


class OpenModel(NamedTuple):
    """A model inside of a computation; without `slopes`, the framework derives them."""

    losses: Losses
    slopes: Slopes | None = None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PureFunctions:
    """Pure functions of weights, which have names.

    examples    the types of the columns of an example
    weights     the types of the weights
    trained     the names of those that gradients move
    changed     the names of others that training changes, such as moving averages
    metrics     the names of the metrics
    local       first values of what training changes at a client within a round, and never sends
    frozen      values that neither training nor the server changes, kept once as a resource
    draws       whether training draws random numbers from a key that it is given
    drop_remainder
                whether training leaves out the examples behind a client's last full batch
    """

    examples: OrderedDict[str, tffc.TensorType]
    weights: OrderedDict[str, tffc.TensorType]
    trained: tuple[str, ...]
    changed: tuple[str, ...]
    metrics: tuple[str, ...]
    framework: Literal["tensorflow", "jax", "torch"]
    first_weights: Arrays
    open: Callable[[], OpenModel]
    restore: Callable[[Arrays], Any]
    settle: Callable[[], Any] | None = None
    local: Arrays = dataclasses.field(default_factory=OrderedDict[str, Any])
    frozen: Arrays = dataclasses.field(default_factory=OrderedDict[str, Any])
    draws: bool = False
    drop_remainder: bool = False

    def __repr__(self) -> str:
        arrays = self.first_weights.values()
        numbers = sum(np.asarray(array).size for array in arrays)
        metrics = ", ".join(("loss", *self.metrics))
        return (
            f"<model of {counted(len(self.weights), 'weight')} with {numbers:,} numbers, "
            f"of examples with {', '.join(self.examples)}; {metrics}>"
        )

    @entry_point
    def weights_of(self, state: Any) -> Any:
        """Return the weights in a state of a training, as the model has them.

        `state` is a state, a run or one of its rounds.  The weights of a Keras model are a list
        for its method `set_weights`, and those of a PyTorch module a mapping for its method
        `load_state_dict`; those of a model in JAX are a tree, and those of TensorFlow functions a
        mapping.

        Raises:
          LanguageTypeError: it is no state.
          LanguageValueError: the state is not of this model.
        """
        held = getattr(state, "state", state)
        if not is_mapping(held):
            help = "give the state of a run, run.state, or the run itself"
            if is_path(state):
                help += f"; tffc.load_state({os.fspath(state)!r}) reads a saved one"
            message = f"{describe(state)} is no state of a training"
            raise LanguageTypeError("E711", message, help=help)
        weights = held.get("model")
        names = list(weights) if is_mapping(weights) else []
        missing = [name for name in self.weights if name not in names]
        if not is_mapping(weights) or missing:
            own = f"it has {', '.join(map(repr, names))}" if names else "it has no weights"
            raise LanguageValueError(
                "E711",
                f"the state has no weights {missing[0]!r}, which the model has",
                notes=(own, f"the model has {', '.join(map(repr, self.weights))}"),
                help="give a state of the training of this model; a model of Keras that is built "
                "again in one session may name its weights anew",
            )
        arrays = ((name, np.asarray(weights[name])) for name in self.weights)
        return self.restore(OrderedDict(arrays))


def outcome_of(returned: Any) -> BatchLosses:
    """Return what a user's loss returned: losses, or losses and metrics."""
    losses, metrics = returned if isinstance(returned, tuple) else (returned, {})
    return BatchLosses(losses, OrderedDict(metrics))


def types_of(arrays: Mapping[str, Any]) -> OrderedDict[str, tffc.TensorType]:
    """Return the types of arrays."""
    return OrderedDict(
        (name, tffc.TensorType(array.dtype.type, array.shape)) for name, array in arrays.items()
    )


def batch_type(examples: Mapping[str, tffc.TensorType]) -> OrderedDict[str, tffc.TensorType]:
    """Return the types of the columns of a batch of any size."""
    return OrderedDict(
        (name, tffc.TensorType(type.dtype, [None, *shape_of(type)]))
        for name, type in examples.items()
    )


def traced_model(
    cls: type[M],
    examples: OrderedDict[str, tffc.TensorType],
    first_weights: Arrays,
    trained: tuple[str, ...],
    open: Callable[[], OpenModel],
    restore: Callable[[Arrays], Any],
    settle: Callable[[], Any] | None = None,
) -> M:
    """Return a model in TensorFlow after it has been tried on a batch, which shows its metrics.

    Raises:
      LanguageTypeError: it does not have a number for each example.
    """
    tf = load_tensorflow()
    weights = types_of(first_weights)
    names: list[str] = []
    changed: dict[str, None] = {}

    def trial(weights: Arrays, batch: Arrays) -> Any:
        outcome = open().losses(weights, batch, False)
        check_numbers("loss", outcome.losses, tf.TensorShape([None]))
        for name, values in outcome.metrics.items():
            check_numbers(name, values, tf.TensorShape([None]))
        names.extend(outcome.metrics)
        changed.update(dict.fromkeys(open().losses(weights, batch, True).changed))
        return outcome.losses

    try:
        tffc.tf_computation(trial, weights, batch_type(examples))
    finally:
        if settle is not None:
            settle()
    metrics = tuple(names)
    check_metrics(metrics)
    return cls(
        examples,
        weights,
        trained,
        tuple(name for name in weights if name in changed),
        metrics,
        "tensorflow",
        first_weights,
        open,
        restore,
        settle,
    )


def check_metrics(names: tuple[str, ...]) -> None:
    """Check that no metric is called like what every model reports.

    Raises:
      LanguageValueError: one is.
    """
    for name in names:
        if name in TOTALS:
            raise LanguageValueError(
                "E706",
                f"a metric is called {name!r}, as what every round reports",
                help="give the metric another name",
            )


def check_numbers(name: str, values: Any, shape: Any) -> None:
    """Check that a loss or a metric has one number for each example.

    Raises:
      LanguageTypeError: its shape is another.
    """
    held = getattr(values, "shape", None)
    if held is None or len(held) != len(shape):
        raise LanguageTypeError(
            "E454",
            f"the model's {name} has the shape {held} for a batch, not a number for each example",
            help="return a value for each example, without a mean or a sum over the batch",
        )
