"""Models from Keras 3 and tf_keras."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.examples import columns_of, shape_of
from tffc.algorithms.functions import Arrays, BatchLosses, M, OpenModel, traced_model
from tffc.algorithms.keras_layers import check_layers, layers_of, replaced, replacements_of
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.user_code.source import call_theirs
from tffc.support.errors import (
    ContextError,
    LanguageTypeError,
    LanguageValueError,
    MissingElementError,
)

OF_ONE_SHAPE = frozenset(
    {
        "mean_squared_error",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "mean_squared_logarithmic_error",
        "binary_crossentropy",
        "categorical_crossentropy",
        "huber",
        "huber_loss",
        "log_cosh",
        "poisson",
        "kl_divergence",
        "hinge",
        "squared_hinge",
    }
)
"""The losses of Keras that compare each number of a label with one of the predictions."""


def keras_model(
    cls: type[M],
    source: Any,
    examples: Any,
    x: Any,
    y: str,
    loss: Any,
    metrics: Iterable[Any] | Mapping[str, Any],
) -> M:
    """Return the model of a Keras model; see `Model.from_keras`."""
    load_tensorflow()
    is_function = callable(source) and not hasattr(type(source), "trainable_weights")
    network: Any = call_theirs(source) if is_function else source
    keras = _keras_of(network)
    _check_built(network)
    check_layers(network)
    names = _column_names(x)
    columns = columns_of(examples, {*names, y})
    _check_inputs(network, x, columns)
    loss = getattr(network, "loss", None) if loss is None else loss
    losses = _loss_of(keras, loss)
    measures = _metrics_of(keras, metrics, loss)
    first = _named(network)
    trained = tuple(
        name
        for name, variable in first.items()
        if any(variable is other for other in network.trainable_variables)
    )

    def outcome_of(predictions: Any, batch: Arrays, penalties: list[Any]) -> BatchLosses:
        tf = load_tensorflow()
        labels = _like_predictions(tf, batch[y], predictions)
        # A loss of Keras is known by its method.
        if _name(getattr(losses, "__self__", losses)) in OF_ONE_SHAPE:
            _check_labels(y, labels.shape, predictions.shape)
        values = OrderedDict(
            (name, _for_each(tf, call_theirs(measure, labels, predictions), predictions))
            for name, measure in measures.items()
        )
        penalty = tf.add_n(penalties) if penalties else tf.constant(0.0)
        each = _for_each(tf, call_theirs(losses, labels, predictions), predictions)
        return BatchLosses(each, values, penalty)

    def inputs(batch: Arrays) -> Any:
        return _inputs(load_tensorflow(), network, x, batch)

    if hasattr(network, "stateless_call"):
        open = _open_stateless(network, first, inputs, outcome_of)
    else:
        open = _open_variables(source if is_function else None, network, first, inputs, outcome_of)
    values = OrderedDict((name, variable.numpy()) for name, variable in first.items())
    settle = None if hasattr(network, "stateless_call") else lambda: _rebuilt(network)
    try:
        return traced_model(cls, columns, values, trained, open, _as_list, settle)
    except ContextError as error:
        error.help = (
            "begin the model after the layers that hold what was made outside, and apply them to "
            "the data"
        )
        raise


def _as_list(weights: Arrays) -> list[Any]:
    return list(weights.values())


def _rebuilt(network: Any) -> Any:
    """Return a copy of a model of tf_keras.

    tf_keras changes the classes of its layers for whatever made one last: made in the graph of a
    computation, they do not work outside of it, until they are made outside again.
    """
    return _keras_of(network).models.clone_model(network)


def _open_stateless(
    network: Any,
    named: Arrays,
    inputs: Callable[[Arrays], Any],
    outcome_of: Callable[[Any, Arrays, list[Any]], BatchLosses],
) -> Callable[[], OpenModel]:
    """Return what opens a model of Keras 3, whose calls take all variables."""
    names = {id(variable): name for name, variable in named.items()}
    replacements = replacements_of(network)

    def losses(weights: Arrays, batch: Arrays, training: bool) -> BatchLosses:
        tf = load_tensorflow()
        still = [
            weights[names[id(variable)]]
            if id(variable) in names
            else _random(tf, variable, training)
            for variable in network.non_trainable_variables
        ]
        moved = [weights[names[id(variable)]] for variable in network.trainable_variables]
        with replaced(replacements):
            predictions, after, penalties = network.stateless_call(
                moved, still, inputs(batch), training=training, return_losses=True
            )
        variables = zip(network.non_trainable_variables, still, after, strict=True)
        changed = {
            names[id(variable)]: value
            for variable, before, value in variables
            if id(variable) in names and value is not before
        }
        return outcome_of(predictions, batch, penalties)._replace(changed=changed)

    return lambda: OpenModel(losses)


def _random(tf: Any, variable: Any, training: bool) -> Any:
    """Return a state for a generator of random numbers, new at every call of a training."""
    if not training:
        return tf.zeros(variable.shape, variable.dtype)
    drawn = tf.random.uniform(variable.shape, 0, 2**31 - 1, tf.int32)
    return tf.cast(drawn, variable.dtype)


def _open_variables(
    build: Callable[[], Any] | None,
    network: Any,
    named: Arrays,
    inputs: Callable[[Arrays], Any],
    outcome_of: Callable[[Any, Arrays, list[Any]], BatchLosses],
) -> Callable[[], OpenModel]:
    """Return what opens a model of tf_keras, whose variables a computation makes anew."""
    names = list(named)
    still = {id(variable) for variable in network.non_trainable_variables}
    kept = [name for name, variable in named.items() if id(variable) in still]

    def open() -> OpenModel:
        tf = load_tensorflow()
        copy = _rebuilt(network) if build is None else build()
        variables = dict(zip(names, copy.weights, strict=True))

        def losses(weights: Arrays, batch: Arrays, training: bool) -> BatchLosses:
            for name, variable in variables.items():
                variable.assign(weights[name])
            predictions = copy(inputs(batch), training=training)
            outcome = outcome_of(predictions, batch, copy.losses)
            changed = {name: tf.identity(variables[name]) for name in kept}
            return outcome._replace(changed=changed)

        def slopes(weights: Arrays, batch: Arrays) -> tuple[Arrays, BatchLosses]:
            with tf.GradientTape() as tape:
                outcome = losses(weights, batch, True)
                mean = tf.reduce_mean(outcome.losses) + outcome.penalty
            moved = {name: variable for name, variable in variables.items() if name not in kept}
            zero = tf.UnconnectedGradients.ZERO
            return tape.gradient(mean, moved, unconnected_gradients=zero), outcome

        return OpenModel(losses, slopes)

    return open


def _keras_of(network: Any) -> Any:
    """Return the package of a model: Keras 3 or tf_keras.

    Raises:
      LanguageTypeError: it is no model of Keras.
    """
    for package in ("keras", "tf_keras"):
        if any(each.__module__.startswith(f"{package}.") for each in type(network).__mro__):
            if hasattr(type(network), "trainable_weights"):
                return importlib.import_module(package)
    raise LanguageTypeError(
        "E714",
        f"{type(network).__name__!r} is no model of Keras",
        help="give a keras.Model, a tf_keras.Model, or a function that returns one",
    )


def _check_built(network: Any) -> None:
    if not network.built or not network.weights:
        raise LanguageValueError(
            "E706",
            f"the Keras model {network.name!r} is not built, so it has no weights yet",
            help="begin it with keras.Input(shape), or call model.build(shape) first",
        )


def _named(network: Any) -> Arrays:
    """Return the weights by names such as `hidden_kernel`, in the order of `model.weights`."""
    paths = [
        (getattr(weight, "path", None) or weight.name.partition(":")[0]).split("/")
        for weight in network.weights
    ]
    numbered = _numbered(network, [part for path in paths for part in path[:-1]])
    paths = [[*(numbered.get(part, part) for part in path[:-1]), path[-1]] for path in paths]
    short = ["_".join(path[-2:]) for path in paths]
    names = short if len(set(short)) == len(short) else ["_".join(path) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name}_{number}" for number, name in enumerate(names)]
    return OrderedDict(zip(names, network.weights, strict=True))


def _numbered(network: Any, parts: list[str]) -> dict[str, str]:
    """Return names for those parts of paths that Keras has numbered.

    Keras counts all layers of a process, so the same model has other names when it is made again.
    These count the layers of the model.
    """
    automatic: dict[str, str] = {}
    for layer in layers_of(network):
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", type(layer).__name__)
        # Bidirectional puts its own words before the name of a layer.
        named = rf"((?:forward_|backward_)?{re.escape(kind.lower())})(?:_\d+)?"
        if (automatically := re.fullmatch(named, layer.name)) is not None:
            automatic[layer.name] = automatically[1]
    counts: dict[str, int] = {}
    numbered: dict[str, str] = {}
    for part in parts:
        if part in automatic and part not in numbered:
            kind = automatic[part]
            count = counts[kind] = counts.get(kind, -1) + 1
            numbered[part] = f"{kind}_{count}" if count else kind
    return numbered


def _column_names(x: Any) -> list[str]:
    """Return the columns that `x` names.

    Raises:
      LanguageTypeError: it names none.
    """
    if isinstance(x, str):
        return [x]
    parts = x.values() if isinstance(x, Mapping) else x
    if not isinstance(parts, Iterable):
        raise LanguageTypeError(
            "E714",
            f"x={x!r} does not name a column of the examples",
            help='give the name of one, as x="pixels"; a list of columns of numbers is one vector',
        )
    return [name for part in parts for name in _column_names(part)]


def _check_inputs(network: Any, x: Any, columns: Mapping[str, tffc.TensorType]) -> None:
    """Check the shape of what a model with one input takes.

    Raises:
      LanguageTypeError: the columns have another.
      MissingElementError: the model has other inputs.
    """
    for part in x.values() if isinstance(x, Mapping) else (x,):
        if not isinstance(part, str):
            _check_numbers(_column_names(part), columns)
    inputs = getattr(network, "inputs", None)
    if isinstance(x, Mapping):
        known = [tensor.name for tensor in inputs or ()]
        if {*x} != {*known}:
            raise MissingElementError(
                "E441",
                f"the inputs of the model {network.name!r} are {known}, but x names {list(x)}",
                help="map the name of each input to its columns",
            )
    if isinstance(x, Mapping) or not inputs or len(inputs) != 1:
        return
    names = _column_names(x)
    shapes = {name: shape_of(columns[name]) for name in names}
    shape = shapes[names[0]]
    if not isinstance(x, str):
        widths = [shapes[name][-1] if shapes[name] else 1 for name in names]
        shape = [*shape[:-1], None if None in widths else sum(w for w in widths if w is not None)]
    taken = list(inputs[0].shape)[1:]
    shape = shape or [1] * (taken == [1])
    if len(taken) == len(shape) and all(
        None in (a, b) or a == b for a, b in zip(taken, shape, strict=True)
    ):
        return
    raise LanguageTypeError(
        "E101",
        f"the model {network.name!r} takes examples of the shape {taken}, but x={x!r} has {shape}",
        help="name other columns, or begin the model with keras.Input of that shape",
    )


def _check_numbers(names: list[str], columns: Mapping[str, tffc.TensorType]) -> None:
    """Check that columns that become one vector are numbers.

    Raises:
      LanguageTypeError: one is text.
    """
    for name in names:
        if columns[name].dtype == np.str_:
            raise LanguageTypeError(
                "E101",
                f"the column {name!r} is text, and x=[...] makes one vector of numbers",
                help="give the column a number for each category first, or make the model one "
                "of several inputs and give x={...} with a column for each",
            )


def _inputs(tf: Any, network: Any, x: Any, batch: Arrays) -> Any:
    """Return what a model takes of a batch, in the types of its inputs."""
    inputs = getattr(network, "inputs", None) or ()
    if isinstance(x, Mapping):
        taken = {tensor.name: tensor for tensor in inputs}
        return {name: _vector(tf, x[name], batch, taken[name]) for name in x}
    if len(inputs) == 1:
        return _vector(tf, x, batch, inputs[0])
    # As Keras does, which leaves whole numbers as they are.
    values = batch[x] if isinstance(x, str) else None
    if values is not None and not values.dtype.is_floating:
        return values
    return _joined(tf, x, batch, network.compute_dtype)


def _vector(tf: Any, x: Any, batch: Arrays, taken: Any) -> Any:
    """Return columns as an input of a model takes them; a number is a vector of one."""
    values = _joined(tf, x, batch, taken.dtype)
    return values[:, None] if values.shape.rank == 1 and len(taken.shape) == 2 else values


def _joined(tf: Any, x: Any, batch: Arrays, dtype: Any) -> Any:
    if isinstance(x, str):
        return _cast(tf, batch[x], dtype)
    parts = [_cast(tf, batch[name], dtype) for name in x]
    return tf.concat([part[:, None] if part.shape.rank == 1 else part for part in parts], axis=-1)


def _cast(tf: Any, values: Any, dtype: Any) -> Any:
    return values if values.dtype == tf.string else tf.cast(values, dtype)


def _like_predictions(tf: Any, labels: Any, predictions: Any) -> Any:
    """Return labels as a column if predictions are one, for losses would pair all with all."""
    shape = predictions.shape
    if shape.rank == 2 and shape[-1] == 1 and labels.shape.rank == 1:
        return labels[:, None]
    return labels


def _check_labels(y: str, labels: Any, predictions: Any) -> None:
    """Check that labels have the shape of predictions; others would be paired in odd ways.

    Raises:
      LanguageTypeError: they have another.
    """
    if not labels.is_compatible_with(predictions):
        shapes = [list(shape)[1:] for shape in (labels, predictions)]
        raise LanguageTypeError(
            "E101",
            f"the labels {y!r} have the shape {shapes[0]}, and the model's predictions {shapes[1]}",
            help="let the model end with as many numbers as a label has, or take another loss",
        )


def _for_each(tf: Any, values: Any, predictions: Any) -> Any:
    """Return one number for each example: the mean of the numbers of its parts.

    Parts that Keras masks do not count: those of a label to ignore, and of padding.
    """
    masks = [getattr(each, "_keras_mask", None) for each in (values, predictions)]
    values = tf.cast(values, tf.float32)
    rank = values.shape.rank
    if rank is None:
        return values
    weights = tf.ones_like(values)
    for mask in masks:
        if mask is not None and mask.shape.rank is not None and mask.shape.rank <= rank:
            added = [1] * (rank - mask.shape.rank)
            weights *= tf.reshape(tf.cast(mask, tf.float32), [*tf.unstack(tf.shape(mask)), *added])
    axes = [*range(1, rank)]
    if all(mask is None for mask in masks):
        return tf.reduce_mean(values, axes) if axes else values
    return tf.math.divide_no_nan(
        tf.reduce_sum(values * weights, axes), tf.reduce_sum(weights, axes)
    )


def _loss_of(keras: Any, loss: Any) -> Callable[[Any, Any], Any]:
    """Return a function of labels and predictions: the loss of each example.

    Raises:
      LanguageValueError: there is none.
    """
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    if isinstance(loss, keras.losses.Loss):
        return loss.call
    if callable(loss):
        return loss
    raise LanguageValueError(
        "E706",
        "the model has no loss" if loss is None else f"{loss!r} is not a loss",
        help="give loss=..., such as keras.losses.MeanSquaredError(), or compile the model with it",
    )


def _metrics_of(keras: Any, metrics: Any, loss: Any) -> OrderedDict[str, Callable[[Any, Any], Any]]:
    """Return the metrics by name.

    Raises:
      LanguageTypeError: one is neither "accuracy" nor a function.
    """
    if not isinstance(metrics, Mapping):
        metrics = {each if isinstance(each, str) else _name(each): each for each in metrics}
    functions: OrderedDict[str, Callable[[Any, Any], Any]] = OrderedDict()
    for name, metric in metrics.items():
        if metric == "accuracy":
            metric = _accuracy(bool(getattr(loss, "from_logits", False)))
        elif isinstance(metric, str):
            with contextlib.suppress(ValueError):  # of an unknown name, which is refused below
                metric = keras.losses.get(metric)
        if not callable(metric) or isinstance(metric, keras.metrics.Metric):
            raise LanguageTypeError(
                "E714",
                f"the metric {name!r} is {type(metric).__name__!r}, and no function",
                help='give "accuracy", or a function of labels and predictions with a value for '
                "each example, such as keras.metrics.sparse_categorical_accuracy",
            )
        functions[name] = metric
    return functions


def _name(metric: Any) -> str:
    return getattr(metric, "__name__", None) or getattr(metric, "name", "metric")


def _accuracy(from_logits: bool) -> Callable[[Any, Any], Any]:
    """Return the metric whether an answer is right."""

    def accuracy(labels: Any, predictions: Any) -> Any:
        tf = load_tensorflow()
        if predictions.shape[-1] == 1:
            guesses = predictions > (0.0 if from_logits else 0.5)
            right = guesses == (tf.cast(labels, tf.float32) > 0.5)
            return tf.cast(right, tf.float32)
        guesses = tf.argmax(predictions, axis=-1)
        if labels.shape.rank == predictions.shape.rank:
            labels = labels[..., 0] if labels.shape[-1] == 1 else tf.argmax(labels, axis=-1)
        return tf.cast(tf.cast(labels, tf.int64) == guesses, tf.float32)

    return accuracy
