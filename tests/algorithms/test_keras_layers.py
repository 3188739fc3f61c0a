"""Layers of Keras 3 that hold tables, constants and masks, against Keras itself."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tffc
from tffc.support.errors import ContextError, LanguageTypeError, LanguageValueError

keras: Any = importlib.import_module("keras")
algorithms = tffc.algorithms
LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

pytestmark = pytest.mark.slow


def evaluated(network: Any, examples: Any, **columns: Any) -> dict[str, float]:
    """What a round measures of a model that no client has trained."""
    model = algorithms.Model.from_keras(network, examples, **columns)
    training = algorithms.federated_averaging(model, 0.1)
    measure = algorithms.federated_evaluation(model, training)
    output = next(tffc.run(measure, {"a": examples}, 1, state=training.initialize())).output
    return {name: float(value) for name, value in output.items()}


@pytest.mark.parametrize("adapts", [False, True], ids=["vocabulary", "adapted"])
def test_texts_are_looked_up_and_embedded(adapts: bool) -> None:
    texts = np.array(["good film", "bad film", "good", "bad thing"] * 3, object)
    words = ["good", "bad", "film"]
    layers = keras.layers
    lookup = layers.TextVectorization(
        vocabulary=None if adapts else words, output_sequence_length=3
    )
    if adapts:
        lookup.adapt(texts)
    network = keras.Sequential(
        [
            keras.Input((), dtype="string"),
            lookup,
            layers.Embedding(8, 4),
            layers.GlobalAveragePooling1D(),
            layers.Dense(2),
        ]
    )
    rows = {"text": texts, "label": np.array([1, 0, 1, 0] * 3, np.int32)}
    model = algorithms.Model.from_keras(network, rows, x="text", y="label", loss=LOGITS)
    training = algorithms.federated_averaging(model, 0.5, batch_size=4)
    bundle = tffc.compile(training, "mapreduce")
    assert bundle.prove(training).is_proved
    run = tffc.run(bundle, [rows], 2).finish()
    predicted = network(texts)
    optimizer = keras.optimizers.SGD(0.5)
    network.compile(optimizer, LOGITS)
    network.fit(texts, rows["label"], batch_size=4, epochs=2, shuffle=False, verbose=0)
    for ours, theirs in zip(model.weights_of(run.state), network.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert not np.allclose(predicted, network(texts))


@pytest.mark.parametrize("mode", ["multi_hot", "count", "tf_idf"])
def test_texts_become_vectors(mode: str) -> None:
    texts = np.array(["good film", "bad film film", "good", ""], object)
    lookup = keras.layers.TextVectorization(output_mode=mode, standardize=tf.strings.lower)
    lookup.adapt(texts)
    network = keras.Sequential([keras.Input((), dtype="string"), lookup, keras.layers.Dense(2)])
    labels = np.array([1, 0, 1, 0], np.int32)
    measured = evaluated(network, {"x": texts, "y": labels}, loss=LOGITS)
    assert measured["loss"] == pytest.approx(float(LOGITS(labels, network(texts))), rel=1e-5)


class Halved(keras.layers.StringLookup):
    """A layer whose configuration does not say all of it."""

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) // 2


@pytest.mark.parametrize(
    "lookup",
    [
        keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot"),
        keras.layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=3, output_mode="one_hot"),
        keras.layers.IntegerLookup(vocabulary=[3, 70], output_mode="one_hot"),
        Halved(vocabulary=["a", "b", "c"]),
    ],
    ids=["one hot", "hashed", "numbers", "subclass"],
)
def test_what_is_looked_up(lookup: Any) -> None:
    is_number = isinstance(lookup, keras.layers.IntegerLookup)
    values = np.array([3, 70, 5, 8]) if is_number else np.array(["a", "b", "c", "dd"], object)
    kind = "int64" if is_number else "string"
    after = [keras.layers.Embedding(4, 3)] if isinstance(lookup, Halved) else []
    network = keras.Sequential([keras.Input((), dtype=kind), lookup, *after, keras.layers.Dense(2)])
    labels = np.array([1, 0, 1, 0], np.int32)
    measured = evaluated(network, {"x": values, "y": labels}, loss=LOGITS)
    assert measured["loss"] == pytest.approx(float(LOGITS(labels, network(values))), rel=1e-5)


def test_whole_numbers_stay_whole_in_a_model_without_inputs() -> None:
    class Ids(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.find = keras.layers.IntegerLookup(vocabulary=[16777216, 16777217])
            self.embed, self.end = keras.layers.Embedding(4, 2), keras.layers.Dense(2)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.end(self.embed(self.find(x)))

    network = Ids()
    values, labels = np.array([16777216, 16777217, 5]), np.array([0, 1, 1], np.int32)
    scores = network(values)
    measured = evaluated(network, {"x": values, "y": labels}, loss=LOGITS)
    assert measured["loss"] == pytest.approx(float(LOGITS(labels, scores)), rel=1e-5)


def test_layers_that_assign_trained_weights_are_refused() -> None:
    layer = keras.layers.SpectralNormalization(keras.layers.Dense(2), name="bounded")
    network = keras.Sequential([keras.Input([3]), layer])
    with pytest.raises(LanguageValueError, match="the layer 'bounded' assigns weights while"):
        algorithms.Model.from_keras(network, {"x": (np.float32, [3]), "y": np.int32}, loss=LOGITS)


def test_something_else_from_outside_has_help() -> None:
    class Outside(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.holder = [tf.constant(2.0)]

        def call(self, x: Any) -> Any:
            return x * self.holder[0]

    network = keras.Sequential([keras.Input([3]), Outside(), keras.layers.Dense(2)])
    with pytest.raises(ContextError) as caught:
        algorithms.Model.from_keras(network, {"x": (np.float32, [3]), "y": np.int32}, loss=LOGITS)
    assert "apply them to the data" in str(caught.value.help)


def test_inputs_are_normalised() -> None:
    rows = {
        "x": np.random.default_rng(0).normal(5, 2, (20, 3)).astype(np.float32),
        "y": np.zeros(20, np.int32),
    }
    adapted = keras.layers.Normalization()
    adapted.adapt(rows["x"])
    for layer in (adapted, keras.layers.Normalization(mean=[5.0] * 3, variance=[4.0] * 3)):
        network = keras.Sequential([keras.Input([3]), layer, keras.layers.Dense(2)])
        measured = evaluated(network, rows, loss=LOGITS)
        assert measured["loss"] == pytest.approx(float(LOGITS(rows["y"], network(rows["x"]))))
        # The layer is as it was.
        assert network(rows["x"]).shape == (20, 2)


def test_what_is_masked_does_not_count() -> None:
    random = np.random.default_rng(0)
    steps = random.normal(size=(8, 5, 4)).astype(np.float32)
    steps[:, 2:] = 0
    labels = random.integers(0, 2, (8, 5)).astype(np.int32)
    layers = keras.layers
    network = keras.Sequential(
        [
            keras.Input((5, 4)),
            layers.Masking(),
            layers.LSTM(3, return_sequences=True),
            layers.Dense(2),
        ]
    )
    measured = evaluated(network, {"x": steps, "y": labels}, loss=LOGITS, metrics=["accuracy"])
    network.compile(loss=LOGITS, weighted_metrics=["accuracy"])
    loss, accuracy = network.evaluate(steps, labels, verbose=0)
    assert (measured["loss"], measured["accuracy"]) == pytest.approx((loss, accuracy), rel=1e-5)


def test_labels_to_ignore_do_not_count() -> None:
    steps = np.random.default_rng(0).normal(size=(6, 4, 3)).astype(np.float32)
    labels = np.array([[1, 0, 0, 2]] * 6, np.int32)
    ignoring = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    network = keras.Sequential([keras.Input((4, 3)), keras.layers.Dense(3)])
    measured = evaluated(network, {"x": steps, "y": labels}, loss=ignoring, metrics=[])
    assert measured["loss"] == pytest.approx(float(ignoring(labels, network(steps))), rel=1e-5)


def test_frozen_weights_are_not_sent_back() -> None:
    base = keras.Sequential([keras.Input([3]), keras.layers.Dense(50)])
    base.trainable = False
    network = keras.Sequential([keras.Input([3]), base, keras.layers.Dense(2)])
    rows = {"x": np.ones((4, 3), np.float32), "y": np.zeros(4, np.int32)}
    model = algorithms.Model.from_keras(network, rows, loss=LOGITS)
    assert model.changed == ()
    training = algorithms.federated_averaging(model, 0.1)
    update, _ = tffc.audit(training).audit.channels
    assert str(update.type) == "<dense_1_kernel=float32[50,2],dense_1_bias=float32[2]>"
    run = tffc.run(training, [rows], 1).finish()
    before, after = network.get_weights(), model.weights_of(run.state)
    assert [np.array_equal(*pair) for pair in zip(before, after, strict=True)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_model_made_again_has_weights_of_the_same_names() -> None:
    names: list[list[str]] = []
    for _ in range(2):
        inputs = keras.Input((8, 8, 3))
        image = keras.layers.Conv2D(4, 3)(inputs)
        image = keras.layers.Conv2D(4, 3)(image)
        hidden = keras.layers.Bidirectional(keras.layers.LSTM(3))(
            keras.layers.Reshape((16, 4))(image)
        )
        network = keras.Model(inputs, keras.layers.Dense(2)(hidden))
        columns = {"x": (np.float32, [8, 8, 3]), "y": np.int32}
        names.append(list(algorithms.Model.from_keras(network, columns, loss=LOGITS).weights))
        keras.layers.Conv2D(1, 1)
    assert names[0] == names[1]


def test_a_frame_with_arrays_and_texts_says_its_columns() -> None:
    frame = pd.DataFrame(
        {
            "window": [np.zeros((6, 1), np.float32)] * 4,
            "label": [0, 1, 0, 1],
            "note": ["a", "b", None, "c"],
        }
    )
    network = keras.Sequential([keras.Input((6, 1)), keras.layers.GRU(3), keras.layers.Dense(2)])
    model = algorithms.Model.from_keras(network, frame, x="window", y="label", loss=LOGITS)
    assert str(tffc.to_type(model.examples)) == "<window=float32[6,1],label=int64>"
    assert repr(model) == (
        "<model of 5 weights with 62 numbers, of examples with window, label; loss>"
    )


def test_a_number_is_a_vector_of_one() -> None:
    network = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    rows = {"x": np.array([1, 2, 3], np.float32), "y": np.array([1, 0, 2], np.float32)}
    measured = evaluated(network, rows, loss="mse", metrics=["mae"])
    errors = network(rows["x"][:, None]).numpy()[:, 0] - rows["y"]
    assert measured["loss"] == pytest.approx(np.mean(errors**2), rel=1e-5)
    assert measured["mae"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", keras.losses.MeanAbsoluteError()], ids=["name", "loss"])
def test_labels_of_another_shape(loss: Any) -> None:
    network = keras.Sequential([keras.Input([2]), keras.layers.Dense(6)])
    with pytest.raises(LanguageTypeError) as caught:
        algorithms.Model.from_keras(network, {"x": (np.float32, [2]), "y": np.float32}, loss=loss)
    assert caught.value.message == (
        "the labels 'y' have the shape [], and the model's predictions [6]"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": 0}, "x=0 does not name a column of the examples"),
        ({"x": ["age", "town"]}, "the column 'town' is text, and x=[...] makes one vector"),
        ({"x": ["age", "day"]}, "the column 'day' of examples has no type: tensors of datetime64"),
        ({"x": ["age", "few"]}, "the cells of the column 'few' of examples have several shapes"),
    ],
)
def test_columns_that_a_model_does_not_take(columns: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame(
        {
            "age": [1.0, 2.0],
            "town": ["a", "b"],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "few": [[1.0], [1.0, 2.0]],
            "y": [0, 1],
        }
    )
    network = keras.Sequential([keras.Input([2]), keras.layers.Dense(2)])
    with pytest.raises(LanguageTypeError) as caught:
        algorithms.Model.from_keras(network, frame, loss=LOGITS, **columns)
    assert caught.value.message.startswith(message)
    assert caught.value.help
