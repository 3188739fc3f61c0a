"""Models that algorithms train: of Keras, PyTorch and JAX, and of TensorFlow functions."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from tffc.algorithms.examples import columns_of
from tffc.algorithms.functions import (
    Arrays,
    BatchLosses,
    OpenModel,
    PureFunctions,
    outcome_of,
    traced_model,
)
from tffc.algorithms.jax_models import jax_model
from tffc.algorithms.keras_models import keras_model
from tffc.algorithms.torch_models import torch_model
from tffc.runtime.user_code.source import call_theirs, entry_point
from tffc.support.errors import LanguageTypeError

P = ParamSpec("P")
T = TypeVar("T")


class Model(PureFunctions):
    """What algorithms train: pure functions of weights, which have names.

    Make one with `from_keras`, `from_torch`, `from_jax` or `from_functions`.
    """

    @classmethod
    @entry_point
    def from_keras(
        cls,
        model: Any,
        examples: Any,
        *,
        x: Any = "x",
        y: str = "y",
        loss: Any = None,
        metrics: Iterable[Any] | Mapping[str, Any] = (),
    ) -> Model:
        """Return the model of a Keras 3 or tf_keras model, or of a function that builds one.

        `examples` says what columns clients' examples have: a mapping from names to types, or a
        data frame or a mapping of arrays with such columns.  `x` names the column that the model
        takes; a list of columns of numbers is one vector, and a mapping from the names of the
        model's inputs to columns is for models with several.  `y` names the column of labels.

        `loss` is a loss of Keras, its name, or a function of labels and predictions that returns
        the loss of each example; by default, that with which the model was compiled.  `metrics`
        are such functions, in a list or by name; "accuracy" stands for the share of right answers.

        The state of a training begins with the weights that the model has now.

        Raises:
          LanguageTypeError: this is no model of Keras, or its input is of another shape.
          LanguageValueError: the model has no weights yet, or no loss.
          MissingElementError: examples have no such column.
        """
        return keras_model(cls, model, examples, x, y, loss, metrics)

    @classmethod
    @entry_point
    def from_torch(
        cls,
        module: Any,
        examples: Any,
        *,
        x: Any = "x",
        y: str = "y",
        loss: Any = None,
        metrics: Iterable[Any] | Mapping[str, Any] = (),
        buffers: Mapping[str, Literal["averaged", "local", "frozen"]] | None = None,
        drop_remainder: bool = False,
    ) -> Model:
        """Return the model of a PyTorch module, or of a function that returns one.

        `examples` is as for `from_keras`; columns of 64 bits stay as they are.  `x` names the
        column that the module takes, in a list the columns of its arguments, and in a mapping
        those of its keyword arguments.  `y` names the column of labels.

        `loss` is a loss of torch.nn, or a function of what the module returns and the labels that
        returns the loss of each example; several numbers for an example count as their mean.
        `metrics` are such functions, in a list or by name; "accuracy" stands for the share of right
        answers.

        Parameters without requires_grad stay as they are, and no client sends them.  `buffers` has
        rules for buffers by name, as for `tff.torch.weights`: "averaged" ones become the mean of
        the clients', "local" ones begin each round with the values that the module has now, and
        "frozen" ones stay.

        Training calls the module in its mode of training, on batches of one size: the last batch is
        filled up with examples that do not count.  A module that normalizes by the mean of a batch
        needs `drop_remainder` instead, with which a client leaves out the examples behind its last
        full batch.  Dropout and other draws differ between clients and steps.

        The state of a training begins with the weights that the module has now.

        Raises:
          LanguageTypeError: this is no module, or its columns or its loss are of another kind.
          LanguageValueError: the module cannot be traced, has no loss, or needs `drop_remainder`.
          MissingElementError: examples have no such column.
        """
        return torch_model(
            cls, module, examples, x, y, loss, metrics, buffers, drop_remainder=drop_remainder
        )

    @classmethod
    @entry_point
    def from_jax(cls, first_weights: Any, loss: Callable[..., Any], examples: Any) -> Model:
        """Return a model in JAX.

        `first_weights` is a tree of arrays, or a function that returns one.  `loss` takes such a
        tree and one example, a mapping from the names of its columns to arrays; it returns the
        loss, or the loss and a mapping of metrics.  `examples` is as for `from_keras`; columns of
        64 bits become 32 bits wide for JAX.

        Raises:
          LanguageTypeError: these are no such functions.
        """
        return jax_model(cls, first_weights, loss, examples)

    @classmethod
    @entry_point
    def from_functions(
        cls,
        first_weights: Callable[[], Mapping[str, Any]] | Mapping[str, Any],
        loss: Callable[..., Any],
        examples: Any,
    ) -> Model:
        """Return a model of TensorFlow functions.

        `first_weights` maps names to arrays, or returns such a mapping.  `loss` takes a mapping of
        weights and a batch, which maps the names of columns to tensors with a row for each example;
        it returns the loss of each example, or these and a mapping of metrics of each example.
        `examples` is as for `from_keras`.

        Raises:
          LanguageTypeError: these are no such functions.
        """
        given = call_theirs(first_weights) if callable(first_weights) else first_weights
        if not isinstance(given, Mapping) or not given:
            raise LanguageTypeError(
                "E714",
                f"first_weights is {type(given).__name__!r}, not a mapping of arrays",
                help="give the weights by name, or a function that returns them",
            )
        first = OrderedDict((str(name), np.asarray(value)) for name, value in given.items())

        def losses(weights: Arrays, batch: Arrays, training: bool) -> BatchLosses:
            return outcome_of(call_theirs(loss, weights, batch))

        columns = columns_of(examples)
        return traced_model(
            cls, columns, first, tuple(first), lambda: OpenModel(losses), OrderedDict
        )


def algorithm(function: Callable[Concatenate[Model, P], T]) -> Callable[Concatenate[Model, P], T]:
    """Make a function of a model an entry point, which leaves the model as it was.

    Raises:
      LanguageTypeError: what it is called with is no model.
    """

    @functools.wraps(function)
    def built(model: Model, *args: P.args, **kwargs: P.kwargs) -> T:
        if not isinstance(model, Model):
            raise LanguageTypeError(
                "E714",
                f"the model is {type(model).__name__!r} and no tffc.algorithms.Model",
                help="make one with Model.from_keras, Model.from_torch, Model.from_jax or "
                "Model.from_functions",
            )
        try:
            return function(model, *args, **kwargs)
        finally:
            if model.settle is not None:
                model.settle()

    return entry_point(built)
