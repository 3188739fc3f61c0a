"""Arguments that builders of `tff.learning.algorithms` took in older releases."""

from __future__ import annotations

import collections
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tff.linear import linear_model
from tests.tff.wheel import needs_wheel, programs
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError
from tffc.tff.former_arguments import DIFFERENT, optimizer_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

GRADIENTS = np.random.default_rng(0).normal(size=(6, 3)) * [[1], [0.1], [1e-4], [0], [2], [0.5]]
FIRST = np.array([1.0, -2.0, 0.5], np.float32)


def library() -> Any:
    return programs().tff.learning


def keras(kind: str) -> Any:
    """The optimizers of Keras 3, of Keras 2, or those that Keras 2 calls legacy."""
    name = "keras" if kind == "keras" else "tf_keras"
    package = pytest.importorskip(name, reason="an optional package")
    return package.optimizers.legacy if kind == "legacy" else package.optimizers


def trained_by_keras(optimizer: Any, kind: str) -> Any:
    tf = load_tensorflow()
    variable = importlib.import_module("keras").Variable if kind == "keras" else tf.Variable
    weights = variable(FIRST)
    for gradient in GRADIENTS.astype(np.float32):
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
    return weights.numpy()


def trained(optimizer: Any) -> Any:
    tf = load_tensorflow()
    weights = tf.constant(FIRST)
    state = optimizer.initialize(tf.TensorSpec([3], tf.float32))
    for gradient in GRADIENTS.astype(np.float32):
        state, weights = optimizer.next(state, weights, tf.constant(gradient))
    return weights.numpy()


OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"learning_rate": 0.3, "momentum": 0.9}),
    ("Adam", {}),
    ("Adam", {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3}),
    ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": 1e-3}),
    ("RMSprop", {"learning_rate": 0.1, "rho": 0.7}),
]


@pytest.mark.parametrize("kind", ["keras", "tf_keras", "legacy"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_what_takes_the_place_of_an_optimizer_of_keras_computes_the_same(
    kind: str, name: str, options: dict[str, float]
) -> None:
    library()
    if (name, kind == "legacy") in DIFFERENT:
        pytest.skip("TFF has no equal")
    optimizer = getattr(keras(kind), name)(**options)
    found = trained(optimizer_of(lambda: optimizer, "client_optimizer_fn"))
    np.testing.assert_allclose(found, trained_by_keras(optimizer, kind), atol=2e-6)


def made(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(keras("keras"), name)(**options)


TAKES = "; TFF 0.87 takes those of tff.learning.optimizers"
NEAREST = "nearest is base_optimizer=tff.learning.optimizers"


@pytest.mark.parametrize(
    ("value", "message", "help"),
    [
        (
            made("RMSprop", learning_rate=0.02),
            f"an optimizer of Keras, RMSprop, which adds epsilon elsewhere than TFF's{TAKES}",
            f"{NEAREST}.build_rmsprop(learning_rate=0.02, epsilon=1e-07, decay=0.9)",
        ),
        (
            made("SGD", learning_rate=0.1, momentum=0.9, nesterov=True, clipnorm=1.0),
            f"an optimizer of Keras, SGD with clipnorm, nesterov{TAKES}",
            f"{NEAREST}.build_sgdm(learning_rate=0.1, momentum=0.9)",
        ),
        (
            made("Adam", weight_decay=0.1),
            f"an optimizer of Keras, Adam with weight_decay{TAKES}",
            f"{NEAREST}.build_adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07)",
        ),
        (
            made("AdamW", learning_rate=0.1, weight_decay=0.1),
            f"an optimizer of Keras, AdamW, which decays weights otherwise than TFF's{TAKES}",
            f"{NEAREST}.build_adamw(learning_rate=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-07, "
            "weight_decay=0.1)",
        ),
        (
            made("Nadam"),
            f"an optimizer of Keras, Nadam, which has no equal in TFF{TAKES}",
            "give one of tff.learning.optimizers",
        ),
        (
            lambda: made("SGD", learning_rate=keras("keras").schedules.CosineDecay(0.1, 9))(),
            f"an optimizer of Keras, SGD with a schedule of learning rates{TAKES}",
            "give one of tff.learning.optimizers",
        ),
    ],
)
def test_an_optimizer_of_keras_without_an_equal(
    value: Callable[[], Any], message: str, help: str
) -> None:
    library()
    with pytest.raises(LanguageTypeError) as refused:
        optimizer_of(value, "base_optimizer")
    error = refused.value
    assert (error.code, error.message, error.help) == ("E739", f"base_optimizer is {message}", help)


def averaging(**options: Any) -> Any:
    return library().algorithms.build_weighted_fed_avg(linear_model(library().models, 1), **options)


def trained_weights(process: Any) -> list[Any]:
    batch = collections.OrderedDict(x=np.ones((2, 1), np.float32), y=np.ones((2, 1), np.float32))
    state = process.initialize()
    for _ in range(2):
        state = process.next(state, [[batch], [batch, batch]]).state
    return process.get_model_weights(state).trainable


def test_a_program_of_an_older_release() -> None:
    with pytest.warns(DeprecationWarning, match=r"now an optimizer of TFF|no effect") as caught:
        old = averaging(
            client_optimizer_fn=lambda: keras("keras").SGD(0.02),
            server_optimizer_fn=made("SGD", learning_rate=1.0, momentum=0.9),
            use_experimental_simulation_loop=True,
        )
    assert {(str(each.message), each.filename) for each in caught} >= {
        (message, __file__)
        for message in (
            "use_experimental_simulation_loop has no effect any more",
            "client_optimizer_fn is now an optimizer of TFF: "
            "tff.learning.optimizers.build_sgdm(learning_rate=0.02)",
            "server_optimizer_fn is now an optimizer of TFF: "
            "tff.learning.optimizers.build_sgdm(learning_rate=1.0, momentum=0.9)",
        )
    }
    optimizers = library().optimizers
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        new = averaging(
            client_optimizer_fn=lambda: optimizers.build_sgdm(0.02),
            server_optimizer_fn=optimizers.build_sgdm(1.0, 0.9),
        )
    for one, other in zip(trained_weights(old), trained_weights(new), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message", "help"),
    [
        (
            {"client_optimizer_fn": "sgd"},
            "client_optimizer_fn must be an optimizer of tff.learning.optimizers, not an object of "
            "class 'str'",
            "give client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1) or the like",
        ),
        (
            {"client_optimizer_fn": made("SGD"), "model_update_aggregation_factory": None},
            "TFF 0.87's build_weighted_fed_avg has no model_update_aggregation_factory, which "
            "older releases had",
            "give model_aggregator",
        ),
    ],
)
def test_arguments_without_an_equal(options: dict[str, Any], message: str, help: str) -> None:
    with pytest.raises(LanguageTypeError) as refused:
        averaging(**options)
    error = refused.value
    assert (error.code, error.message, error.help) == ("E739", message, help)
    assert error.span is not None
    assert error.span.file == __file__


def test_a_schedule_takes_optimizers_of_tff() -> None:
    build = library().algorithms.build_weighted_fed_avg_with_optimizer_schedule
    model = linear_model(library().models, 1)
    with pytest.raises(LanguageTypeError, match="must make an optimizer of tff") as refused:
        build(model, lambda _: 0.1, lambda rate: keras("keras").SGD(rate))
    assert refused.value.help == (
        "give client_optimizer_fn=lambda rate: tff.learning.optimizers.build_sgdm(rate)"
    )
    build(model, lambda _: 0.1, lambda rate: library().optimizers.build_sgdm(rate))
