"""Programs with models of Keras 3 compute over tffc what TFF 0.87 computed with Keras 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.tff.record import answer
from tests.tff.test_programs import ANSWERS, OF_KERAS, differences
from tests.tff.wheel import needs_wheel, program, programs
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageValueError
from tffc.tff.keras_models import names_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

FEW = (
    "keras: keras_fed_avg",
    "keras: keras_fed_avg_normalizing",
    "keras: keras_fed_avg_functional",
    "keras: keras_saved_model",
)
WITH_KERAS_2 = (
    "keras: keras_model_from_functional",
    "keras: keras_recon",
    "keras: keras_recon_eval",
    "keras: keras_recon_split",
)
REST = tuple(name for name in OF_KERAS if name not in (*FEW, *WITH_KERAS_2))


@pytest.fixture(autouse=True)
def keras_3() -> None:
    programs()
    if load_tensorflow().keras.__version__.startswith("2."):
        pytest.skip("tf.keras is Keras 2 here")


def check(name: str) -> None:
    found = json.loads(json.dumps(answer(program(name))))
    assert differences(found, ANSWERS[name], (), 1e-4) == []


@pytest.mark.parametrize("name", FEW)
def test_program(name: str) -> None:
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", REST)
def test_program_of_the_rest(name: str) -> None:
    check(name)


def network(*layers: Any) -> Any:
    keras = load_tensorflow().keras
    return keras.Sequential([*layers, keras.layers.Dense(1, kernel_initializer="ones")])


def model(made: Any = None, **options: Any) -> Any:
    """A model of TFF's of one of Keras."""
    tf, library = load_tensorflow(), programs().tff
    defaults = {
        "loss": tf.keras.losses.MeanSquaredError(),
        "input_spec": (tf.TensorSpec([None, 3]), tf.TensorSpec([None, 1])),
    }
    made = network() if made is None else made
    return library.learning.models.from_keras_model(made, **{**defaults, **options})


def passed_forward(make: Callable[[], Any], y: Any) -> Any:
    """The loss of a batch, and what the model reports then."""
    tf = load_tensorflow()

    @tff.tf_computation
    def passed() -> Any:
        made = make()
        x = tf.constant([[1.0, 2, 3], [0, 1, 2]])
        output = made.forward_pass((x, tf.nest.map_structure(tf.constant, y)))
        return output.loss, made.report_local_unfinalized_metrics()

    loss, metrics = passed()
    return float(loss), {name: [float(each) for each in found] for name, found in metrics.items()}


Y = np.array([[1.0], [2.0]], np.float32)
COUNTS = {"num_examples": [2.0], "num_batches": [1.0]}


def test_losses_of_layers_count_for_training_alone() -> None:
    """The numbers are TFF's with Keras 2, also for a model that is built by its first batch."""
    keras = load_tensorflow().keras
    squares = keras.regularizers.L2(0.1)
    layer = keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer=squares)

    def made() -> Any:
        return model(keras.Sequential([layer.from_config(layer.get_config())]))

    loss, metrics = passed_forward(made, Y)
    assert loss == pytest.approx(13.3)
    assert metrics == {"loss": [26.0, 2.0], **COUNTS}


def test_several_outputs_have_weighted_losses() -> None:
    tf = load_tensorflow()

    def make() -> Any:
        keras = tf.keras
        x = keras.Input((3,))
        y = keras.layers.Dense(1, kernel_initializer="ones")(x)
        spec = (tf.TensorSpec([None, 3]), (tf.TensorSpec([None, 1]), tf.TensorSpec([None, 1])))
        losses = [keras.losses.MeanSquaredError(), keras.losses.MeanSquaredError()]
        made = keras.Model(x, [y, y * 2])
        return model(made, loss=losses, loss_weights=[1.0, 0.5], input_spec=spec)

    assert passed_forward(make, (Y, Y)) == (47.25, {"loss": [94.5, 2.0], **COUNTS})


def test_metrics_have_the_same_names_whenever_they_are_made() -> None:
    metrics = load_tensorflow().keras.metrics
    for _ in range(2):
        found = [metrics.AUC(), metrics.AUC(), metrics.AUC(name="mine"), metrics.Precision()]
        assert names_of([*found, metrics.SparseCategoricalAccuracy()]) == [
            "auc",
            "auc_1",
            "mine",
            "precision",
            "sparse_categorical_accuracy",
        ]


def compiled() -> Any:
    made = network()
    made.compile("sgd", "mse")
    return made


def functional() -> Any:
    tf, library = load_tensorflow(), programs().tff
    return library.learning.models.functional_model_from_keras(
        network(tf.keras.Input((3,)), tf.keras.layers.BatchNormalization(name="norm")),
        tf.keras.losses.MeanSquaredError(),
        (tf.TensorSpec([None, 3]), tf.TensorSpec([None, 1])),
    )


def of_layers() -> Any:
    library = programs().tff.learning.models.ReconstructionModel
    return library.from_keras_model_and_layers(
        network(), global_layers=[], local_layers=[], input_spec=()
    )


@pytest.mark.parametrize(
    ("make", "message", "help"),
    [
        (
            lambda: model(compiled()),
            "the model of Keras is compiled, and tff.learning takes models that are not",
            "leave out model.compile(...), and give its loss and metrics to from_keras_model",
        ),
        (
            lambda: model(loss="mse"),
            "a model needs losses of Keras, and as many weights, not ['mse'] and [1.0]",
            "give loss=tf.keras.losses.MeanSquaredError() or the like",
        ),
        (
            lambda: model(metrics=["mae"]),
            "the model is of Keras 3, and an object of class 'str' is no metric of it",
            "give metrics=[tf.keras.metrics.MeanAbsoluteError()] or the like, of the same tf.keras "
            "as the model",
        ),
        (
            lambda: model(input_spec={"a": np.float32, "b": np.float32}),
            "batches of elements ['a', 'b'] are not pairs of what the model takes and what it "
            "should give",
            "give input_spec two elements, named x and y if they are named",
        ),
        (
            functional,
            "a functional model must have trainable weights only, and this has "
            "norm/moving_mean, norm/moving_variance",
            "leave out layers such as BatchNormalization and Dropout, or use "
            "tff.learning.models.from_keras_model",
        ),
        (
            of_layers,
            "from_keras_model_and_layers takes a model of Keras 2, and this is of Keras 3",
            "this part of tff.learning 0.87 knows Keras 2 only: pip install tf_keras, and set the "
            "environment variable TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, as `tffc "
            "python` does",
        ),
    ],
)
def test_a_model_that_cannot_be_taken(make: Callable[[], Any], message: str, help: str) -> None:
    with pytest.raises(LanguageValueError) as refused:
        make()
    error = refused.value
    assert (error.code, error.message, error.help) == ("E204", message, help)
    assert error.span is not None
    assert error.span.file == __file__


def test_a_model_of_another_keras() -> None:
    tf_keras = pytest.importorskip("tf_keras", reason="an optional package")
    assert "tf_keras" in sys.modules
    made = tf_keras.Sequential([tf_keras.layers.InputLayer((3,)), tf_keras.layers.Dense(1)])
    with pytest.raises(LanguageValueError, match="the model is of Keras 2, and"):
        model(made)
