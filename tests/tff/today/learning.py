"""Programs of the learning library of today's TFF, with models of Keras 3 and a model of functions.

Each is built by a function, and trains the same linear model on the same clients.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import federated_language  # pyright: ignore[reportMissingImports]  # tffc under its name
import keras
import numpy as np
import tensorflow
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # tffc under its name

from tests.tff.linear import linear_model
from tests.tff.today import reference as numpy_of

# Its annotations refuse what it takes.
tf: Any = tensorflow

FEATURES = 2
KERNEL = np.array([[1.5], [-0.5]], np.float32)
SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, FEATURES], tf.float32), y=tf.TensorSpec([None, 1], tf.float32)
)


def client(batches: Sequence[int], start: int) -> numpy_of.Client:
    """Batches of these sizes of examples near a plane."""
    made = []
    for count in batches:
        positions = np.arange(start, start + count * FEATURES, dtype=np.float32)
        x = np.sin(positions).reshape(count, FEATURES)
        y = x @ KERNEL + 0.25 + 0.1 * np.cos(7 * x[:, :1])
        made.append((x, y.astype(np.float32)))
        start += 3 * count
    return made


CLIENTS = (client([2, 2, 1], 0), client([3], 7), client([1, 1], 20))
ROUNDS = (CLIENTS, CLIENTS[:2], CLIENTS)


def given_to_tff(clients: Sequence[numpy_of.Client]) -> list[Any]:
    return [[collections.OrderedDict(x=x, y=y) for x, y in each] for each in clients]


@dataclasses.dataclass(frozen=True)
class Trained:
    """A learning process, and what computes in NumPy what it trains."""

    process: Any
    expected: Any


def keras_network() -> Any:
    return keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(1, kernel_initializer="zeros", bias_initializer="zeros"),
        ]
    )


def variable_model() -> Any:
    return tff.learning.models.from_keras_model(
        keras_network(),
        loss=keras.losses.MeanSquaredError(),
        input_spec=SPEC,
        metrics=[keras.metrics.MeanAbsoluteError()],
    )


def functional_model() -> Any:
    return tff.learning.models.functional_model_from_keras(
        keras_network(),
        loss_fn=keras.losses.MeanSquaredError(),
        input_spec=SPEC,
        metrics_constructor=collections.OrderedDict(mae=keras.metrics.MeanAbsoluteError),
    )


def model_of_functions() -> Any:
    return linear_model(tff.learning.models, FEATURES)


MODELS: dict[str, Callable[[], Any]] = {
    "keras": lambda: variable_model,
    "functional_keras": functional_model,
    "functions": model_of_functions,
}
"""What builders take as a model."""

_optimizers = tff.learning.optimizers

SGD = numpy_of.sgd(0.1), lambda: _optimizers.build_sgdm(0.1)
ONE = numpy_of.sgd(1.0), lambda: _optimizers.build_sgdm(1.0)
MOMENTUM = numpy_of.sgd(0.1, 0.9), lambda: _optimizers.build_sgdm(0.1, 0.9)

SERVERS = {
    "momentum": (numpy_of.sgd(0.5, 0.9), lambda: _optimizers.build_sgdm(0.5, 0.9)),
    "nesterov": (
        numpy_of.sgd(0.5, 0.9, nesterov=True),
        lambda: _optimizers.build_sgdm(0.5, 0.9, nesterov=True),
    ),
    "adam": (numpy_of.adam(0.1), lambda: _optimizers.build_adam(0.1)),
    "adamw": (
        numpy_of.adam(0.1, decay=0.01),
        lambda: _optimizers.build_adamw(0.1, weight_decay=0.01),
    ),
    "adagrad": (numpy_of.adagrad(0.1), lambda: _optimizers.build_adagrad(0.1)),
    "rmsprop": (numpy_of.rmsprop(0.1), lambda: _optimizers.build_rmsprop(0.1)),
    "yogi": (numpy_of.adam(0.1, is_yogi=True), lambda: _optimizers.build_yogi(0.1)),
}
"""Optimizers by name, in NumPy and in TFF."""

Table = dict[str, Callable[[], Trained]]


def trained() -> Table:
    """All programs that train, by name."""
    algorithms = tff.learning.algorithms
    table: Table = {}
    for kind, model in MODELS.items():
        table[f"fed_avg of {kind}"] = lambda model=model: Trained(
            algorithms.build_weighted_fed_avg(model(), SGD[1](), ONE[1]()),
            numpy_of.Averaging(SGD[0], ONE[0]),
        )
        table[f"unweighted fed_avg of {kind}"] = lambda model=model: Trained(
            algorithms.build_unweighted_fed_avg(model(), SGD[1](), ONE[1]()),
            numpy_of.Averaging(SGD[0], ONE[0], is_weighted=False),
        )
        table[f"fed_avg by a schedule of {kind}"] = lambda model=model: Trained(
            algorithms.build_weighted_fed_avg_with_optimizer_schedule(
                model(), lambda number: 0.1, _optimizers.build_sgdm, ONE[1]()
            ),
            numpy_of.Averaging(SGD[0], ONE[0]),
        )
        table[f"fed_prox of {kind}"] = lambda model=model: Trained(
            algorithms.build_weighted_fed_prox(model(), 0.5, SGD[1](), ONE[1]()),
            numpy_of.Averaging(SGD[0], ONE[0], proximal=0.5),
        )
        table[f"unweighted fed_prox of {kind}"] = lambda model=model: Trained(
            algorithms.build_unweighted_fed_prox(model(), 0.5, SGD[1](), ONE[1]()),
            numpy_of.Averaging(SGD[0], ONE[0], is_weighted=False, proximal=0.5),
        )
        table[f"fed_sgd of {kind}"] = lambda model=model: Trained(
            algorithms.build_fed_sgd(model(), SGD[1]()), numpy_of.GradientDescent(SGD[0])
        )
        table[f"mime_lite of {kind}"] = lambda model=model: Trained(
            algorithms.build_weighted_mime_lite(model(), MOMENTUM[1](), ONE[1]()),
            numpy_of.MimeLite(MOMENTUM[0], ONE[0]),
        )
        table[f"unweighted mime_lite of {kind}"] = lambda model=model: Trained(
            algorithms.build_unweighted_mime_lite(model(), MOMENTUM[1](), ONE[1]()),
            numpy_of.MimeLite(MOMENTUM[0], ONE[0], is_weighted=False),
        )
        table[f"mime_lite by a schedule of {kind}"] = lambda model=model: Trained(
            algorithms.build_mime_lite_with_optimizer_schedule(
                model(), lambda number: 0.1, _optimizers.build_sgdm(0.1, 0.9), ONE[1]()
            ),
            numpy_of.MimeLite(MOMENTUM[0], ONE[0]),
        )
    for name, (expected, build) in SERVERS.items():
        table[f"fed_avg with {name} at the server"] = lambda e=expected, b=build: Trained(
            algorithms.build_weighted_fed_avg(functional_model(), SGD[1](), b()),
            numpy_of.Averaging(SGD[0], e),
        )
        table[f"fed_avg with {name} at the clients"] = lambda e=expected, b=build: Trained(
            algorithms.build_weighted_fed_avg(functional_model(), b(), ONE[1]()),
            numpy_of.Averaging(e, ONE[0]),
        )
    return table


def adafactor_steps() -> list[np.ndarray]:
    """Two steps, without a process: the finalizer of TFF refuses this optimizer's state."""
    optimizer = _optimizers.build_adafactor(0.1, relative_step=False)
    kind = federated_language.TensorType(np.float32, [FEATURES, 1])

    @tff.tensorflow.computation(kind, kind)
    def steps(weights: Any, gradient: Any) -> Any:
        state = optimizer.initialize(tf.TensorSpec([FEATURES, 1], tf.float32))
        state, first = optimizer.next(state, weights, gradient)
        return first, optimizer.next(state, first, 2 * gradient)[1]

    return [np.asarray(each) for each in steps(KERNEL, 3 * KERNEL)]


def first_parameters() -> numpy_of.Parameters:
    return [np.zeros((FEATURES, 1)), np.zeros(1)]


def parameters_after(process: Any) -> list[np.ndarray]:
    """The weights of a learning process after all rounds."""
    state = process.initialize()
    for clients in ROUNDS:
        state = process.next(state, given_to_tff(clients)).state
    weights = process.get_model_weights(state).trainable
    return [np.asarray(each) for each in weights]
