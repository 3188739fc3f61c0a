"""Models of Keras and JAX, against training with their own optimizers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tffc
from tests.algorithms import lines
from tffc.support.errors import LanguageValueError

algorithms = tffc.algorithms
SIZES = (6, 3, 8)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    random = np.random.default_rng(5)
    frame = pd.DataFrame(random.normal(size=(sum(SIZES), 2)), columns=["age", "dose"])
    frame["clinic"] = np.repeat(np.arange(len(SIZES)), SIZES)
    frame["ill"] = (frame.age > frame.dose).astype(int)
    return frame


def network(library: Any) -> Any:
    layers = library.layers
    return library.Sequential(
        [
            library.Input([2]),
            layers.Dense(4, "tanh", kernel_regularizer=library.regularizers.L2(0.1)),
            layers.BatchNormalization(),
            layers.Dense(3),
        ]
    )


def trained_alone(
    model: Any, library: Any, weights: list[Any], client: pd.DataFrame
) -> tuple[list[Any], float, float]:
    """A client's weights after two epochs, and the sums of losses and right answers."""
    model.set_weights(weights)
    optimizer = library.optimizers.SGD(0.2)
    of = library.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    loss, right = 0.0, 0.0
    for _ in range(2):
        for start in range(0, len(client), 4):
            rows = client[start : start + 4]
            with tf.GradientTape() as tape:
                scores = model(np.array(rows[["age", "dose"]], np.float32), training=True)
                each = of(np.array(rows.ill), scores)
                mean = tf.reduce_mean(each) + tf.add_n(model.losses)
            moved = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(mean, moved), moved, strict=True))
            loss += float(tf.reduce_sum(each))
            right += float(np.sum(np.argmax(scores, 1) == rows.ill))
    return model.get_weights(), loss, right


@pytest.mark.parametrize("name", ["keras", "tf_keras"])
@pytest.mark.parametrize("is_function", [False, True], ids=["model", "function"])
def test_a_keras_model_is_trained_as_by_keras(
    name: str, is_function: bool, visits: pd.DataFrame
) -> None:
    library: Any = pytest.importorskip(name, reason="an optional package")
    own: Any = network(library)
    model = algorithms.Model.from_keras(
        (lambda: own if name == "keras" else network(library)) if is_function else own,
        visits,
        x=["age", "dose"],
        y="ill",
        loss=library.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    training = algorithms.federated_averaging(model, 0.2, epochs=2, batch_size=4)
    bundle = tffc.compile(training, "mapreduce")
    clinics = tffc.data.clients(visits, by="clinic")
    weights = model.weights_of(training.initialize())
    run = tffc.run(bundle, clinics, 1).finish()

    alone = [trained_alone(own, library, weights, rows) for _, rows in visits.groupby("clinic")]
    expected = [
        np.average(layers, 0, SIZES) for layers in zip(*(w for w, _, _ in alone), strict=True)
    ]
    own.set_weights(model.weights_of(run.state))
    for found, value in zip(own.get_weights(), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
    count = 2 * sum(SIZES)
    np.testing.assert_allclose(run.output["loss"], sum(loss for _, loss, _ in alone) / count, 1e-4)
    np.testing.assert_allclose(run.output["accuracy"], sum(r for _, _, r in alone) / count)
    assert bundle.prove(training).is_proved


@pytest.mark.parametrize("name", ["keras", "tf_keras"])
def test_a_model_made_again_has_weights_of_the_same_names(name: str, visits: pd.DataFrame) -> None:
    library: Any = pytest.importorskip(name, reason="an optional package")
    first, second = (
        list(
            algorithms.Model.from_keras(
                library.Sequential(
                    [library.Input([2]), network(library), library.layers.Dense(1, name="last_2")]
                ),
                visits,
                x=["age", "dose"],
                y="ill",
                loss="mse",
            ).weights
        )
        for _ in range(2)
    )
    assert first == second
    assert first[0] == "dense_kernel"
    assert first[-1] == "last_2_bias"
    assert "dense_1_kernel" in first
    assert "batch_normalization_gamma" in first


def test_a_model_of_tf_keras_that_is_not_built_is_refused(visits: pd.DataFrame) -> None:
    library: Any = pytest.importorskip("tf_keras", reason="an optional package")
    unbuilt = library.Sequential([library.layers.Dense(1)])
    with pytest.raises(LanguageValueError, match="is not built, so it has no weights yet"):
        algorithms.Model.from_keras(unbuilt, visits, x="age", y="ill", loss="mse")


def test_keras_bundles_are_verified(visits: pd.DataFrame) -> None:
    model = algorithms.Model.from_keras(
        network(keras), visits, x=["age", "dose"], y="ill", loss="sparse_categorical_crossentropy"
    )
    training = algorithms.federated_averaging(model, 0.2, batch_size=4)
    clinics = tffc.data.clients(visits, by="clinic")
    tffc.compile(training, "mapreduce").verify(data=clinics)


def test_several_inputs_one_output_and_the_loss_of_a_compiled_model(visits: pd.DataFrame) -> None:
    inputs = {name: keras.Input([1], name=name) for name in ("age", "dose")}
    joined = keras.layers.Concatenate()(list(inputs.values()))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(joined))
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True))
    ours = algorithms.Model.from_keras(
        model, visits, x={"age": ["age"], "dose": ["dose"]}, y="ill", metrics=["accuracy"]
    )
    training = algorithms.federated_averaging(ours, 0.1)
    evaluation = algorithms.federated_evaluation(ours, training)
    clinics = tffc.data.clients(visits, by="clinic")
    state = training.initialize()
    output = next(tffc.run(evaluation, clinics, 1, state=state)).output
    logits = (visits.age + visits.dose).to_numpy()
    loss = np.log1p(np.exp(-np.where(visits.ill, logits, -logits))).mean()
    np.testing.assert_allclose(output["loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(output["accuracy"], np.mean((logits > 0) == visits.ill), rtol=1e-6)


def test_dropout_draws_anew_at_every_step() -> None:
    drop = keras.Sequential(
        [keras.Input([20]), keras.layers.Dropout(0.5), keras.layers.Dense(1, use_bias=False)]
    )
    columns = {"x": (np.float32, [20]), "y": np.float32}
    model = algorithms.Model.from_keras(drop, columns, loss="mse")
    training = algorithms.federated_averaging(model, 0.1, batch_size=1)
    data = [[{"x": np.ones([20], np.float32), "y": np.float32(1)}]] * 2
    start = training.initialize()
    kernels = [next(iter(training.next(start, data)[0]["model"].values())) for _ in range(2)]
    assert not np.array_equal(*kernels)


def losses_in_jax(weights: Any, point: Any) -> Any:
    import jax.numpy as jnp

    slope, height = weights["line"]
    error = point["x"] @ slope + height - point["y"]
    return error**2, {"distance": jnp.abs(error)}


ALGORITHMS: dict[str, Callable[[Any], Any]] = {
    "fedprox": lambda model: algorithms.fedprox(
        model, algorithms.SGD(0.1, 0.5), 0.5, epochs=2, batch_size=3
    ),
    "adam": lambda model: algorithms.federated_averaging(
        model, algorithms.Adam(0.1), batch_size=4, server_optimizer=algorithms.Yogi(0.1)
    ),
}


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_model_in_jax_is_trained_as_in_tensorflow(name: str) -> None:
    tree = {"line": (lines.FIRST["slope"], lines.FIRST["height"])}
    model = algorithms.Model.from_jax(lambda: tree, losses_in_jax, lines.COLUMNS)
    data = lines.clients(*lines.SIZES)
    training = ALGORITHMS[name](model)
    bundle = tffc.compile(training, "mapreduce")
    assert bundle.prove(training).is_proved
    bundle.verify()
    run = tffc.run(bundle, data, 2).finish()
    other = tffc.run(ALGORITHMS[name](lines.line()), data, 2).finish()
    slope, height = model.weights_of(run.state)["line"]
    assert model.weights_of(run)["line"] == model.weights_of(run.last)["line"] == (slope, height)
    lines.check(other.state, {"slope": slope, "height": height})
    for metric, value in other.output.items():
        np.testing.assert_allclose(run.output[metric], value, rtol=1e-4)
    measured = [
        next(
            tffc.run(algorithms.personalised_evaluation(m, t, 0.1), data, 1, state=r.state)
        ).output["after"]["loss"]
        for m, t, r in (
            (model, training, run),
            (lines.line(), ALGORITHMS[name](lines.line()), other),
        )
    ]
    np.testing.assert_allclose(*measured, rtol=1e-4)
