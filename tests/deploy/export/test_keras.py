"""A Keras model gets the weights of a trained state by name, or else in order."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tf_keras

import tffc as tff
from tffc.deploy.export.keras import make_model, save_model, set_weights
from tffc.deploy.export.trained import StatePart, find_part
from tffc.support.errors import ExportError

HIDDEN = np.arange(6, dtype=np.float32).reshape(2, 3)
BIAS = np.ones(3, np.float32)
SCORES = np.arange(9, dtype=np.float32).reshape(3, 3)
NONE = np.zeros(3, np.float32)


def network(library: Any) -> Any:
    layers = library.layers
    return library.Sequential(
        [
            library.Input([2]),
            layers.Dense(3, name="hidden"),
            layers.Dense(3, name="scores"),
        ]
    )


def state_of(value: Any) -> StatePart:
    """Return the state in Python containers of arrays."""

    def type_of(each: Any) -> Any:
        if isinstance(each, dict):
            return collections.OrderedDict((name, type_of(x)) for name, x in each.items())
        return [type_of(x) for x in each] if isinstance(each, list) else (each.dtype, each.shape)

    def content(each: Any) -> Any:
        inner = each.values() if isinstance(each, dict) else each
        return tuple(map(content, inner)) if isinstance(each, (dict, list)) else each

    return StatePart("", "", tff.to_type(type_of(value)), content(value))


def refusal(model: Any, part: StatePart) -> str:
    with pytest.raises(ExportError) as caught:
        set_weights(model, part)
    return str(caught.value)


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_names_tell_weights_in_any_order(library: Any) -> None:
    model = network(library)
    state = state_of(
        {
            "scores_bias": NONE,
            "scores_kernel": SCORES,
            "hidden_bias": BIAS,
            "hidden": {"kernel": HIDDEN},
        }
    )
    placed = set_weights(model, state)
    assert placed.by_name
    names = [name for name, _ in placed.pairs]
    assert names == ["hidden/kernel", "hidden_bias", "scores_kernel", "scores_bias"]
    for found, expected in zip(model.get_weights(), [HIDDEN, BIAS, SCORES, NONE], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "value",
    [
        [HIDDEN, BIAS, SCORES, NONE],
        {"w1": HIDDEN, "b1": BIAS, "w2": SCORES, "b2": NONE},
        {"kernel": HIDDEN, "bias": BIAS, "scores_kernel": SCORES, "scores_bias": NONE},
    ],
    ids=["list", "other names", "names of several"],
)
def test_other_weights_go_by_order(value: Any) -> None:
    model = network(keras)
    placed = set_weights(model, state_of(value))
    assert not placed.by_name
    for found, expected in zip(model.get_weights(), [HIDDEN, BIAS, SCORES, NONE], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_saved_model_is_the_same_model(tmp_path: pathlib.Path) -> None:
    model = network(keras)
    set_weights(model, state_of([HIDDEN, BIAS, SCORES, NONE]))
    path = tmp_path / "model.keras"
    path.write_bytes(save_model(model))
    batch = np.ones([4, 2], np.float32)
    found: Any = keras.models.load_model(path)
    np.testing.assert_array_equal(found(batch), model(batch))


def test_too_many_weights() -> None:
    model = network(keras)
    weights = [HIDDEN, BIAS, SCORES, NONE]
    state = state_of({"model": weights, "momentum": weights})
    assert refusal(model, state) == (
        "the state does not hold the model's weights: the model has 4, and the state has 8 [E853]\n"
        "  note: the model's are hidden/kernel float32[2,3], hidden/bias float32[3], "
        "scores/kernel float32[3,3], scores/bias float32[3]\n"
        "  help: name the part of the state that holds them: model, momentum; or load the state in "
        "Python, and call model.set_weights"
    )
    set_weights(model, find_part(state, "model"))


def test_a_weight_of_another_shape_or_type() -> None:
    model = network(keras)
    found = refusal(model, state_of([HIDDEN.T, BIAS, SCORES, NONE]))
    assert found.startswith(
        "the state does not hold the model's weights: "
        "hidden/kernel float32[2,3] would be 0 float32[3,2] [E853]\n"
    )
    wide = {"hidden_kernel": HIDDEN, "hidden_bias": BIAS.astype(np.float64)}
    found = refusal(model, state_of({**wide, "scores_kernel": SCORES, "scores_bias": NONE}))
    assert "hidden/bias float32[3] would be hidden_bias float64[3] [E853]" in found
    kernel = model.get_weights()[0]
    assert not np.array_equal(kernel, HIDDEN), "a model that is refused weights keeps its own"


def test_what_is_not_a_weight() -> None:
    model = network(keras)
    ragged = [np.zeros(1), np.zeros(2)]
    kind = tff.SequenceType(tff.TensorType(np.float64, [None]))
    rows = StatePart("", "", tff.to_type([kind] * 4), (ragged,) * 4)
    assert "model's weights: 0 is in a sequence [E853]" in refusal(model, rows)


MODULE = """
import keras

number = 3
model = keras.Sequential([keras.Input([2]), keras.layers.Dense(3)])

def good():
    return model

def unbuilt():
    return keras.Sequential([keras.layers.Dense(3)])

def other():
    return number

def broken():
    raise ValueError("no such luck")

import numpy as np
import tffc as tff

@tff.tf_computation(np.float32)
def computed(x):
    return x
"""


@pytest.fixture
def module(tmp_path: pathlib.Path) -> Callable[[str], str]:
    path = tmp_path / "networks.py"
    path.write_text(MODULE)
    return lambda name: f"{path}:{name}" if name else str(path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("good_model", "there is no such function"),
        ("number", "there is no such function"),
        ("", "there is no such function"),
        ("unbuilt", "its model has no weights yet"),
        ("other", "it returns 3"),
        ("broken", "it raised ValueError: no such luck"),
        ("computed", "it is a computation, which is exported as a SavedModel"),
    ],
)
def test_what_makes_no_model(module: Callable[[str], str], name: str, reason: str) -> None:
    assert len(make_model(module("good")).weights) == 2
    with pytest.raises(ExportError) as caught:
        make_model(module(name))
    assert str(caught.value) == (
        f"{module(name)} is not a function that makes a Keras model: {reason} [E873]\n"
        "  help: name a function without parameters, such as averaging.py:make_model, that returns "
        "a built model: one that begins with keras.Input, or after model.build(shape)"
    )


def test_a_model_that_keras_cannot_save() -> None:
    class Broken:
        def save(self, path: pathlib.Path) -> None:
            raise NotImplementedError("no get_config")

    with pytest.raises(ExportError) as caught:
        save_model(Broken())
    assert str(caught.value) == (
        "Keras cannot save the model: NotImplementedError: no get_config [E875]\n"
        "  help: use only layers that Keras can save, which have get_config"
    )
