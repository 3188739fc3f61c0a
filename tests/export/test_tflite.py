"""Models for LiteRT compute what the interpreter computes, and say where they need flex."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.export.computations import counted
from tffc.errors import ExportError
from tffc.export.tflite import LiteModels, lite_models
from tffc.ir import SequenceType, TensorType


def convert(**components: Any) -> LiteModels:
    return lite_models({name: part.to_building_block() for name, part in components.items()})


def call(models: LiteModels, name: str, **feeds: Any) -> dict[str, Any]:
    """The results of two calls in a row, which are the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=models.models[name])
    runner = interpreter.get_signature_runner(name)
    first, second = runner(**feeds), runner(**feeds)
    np.testing.assert_equal(first, second)
    return first


def test_plain_operations() -> None:
    @tff.tf_computation(TensorType(np.float32, [2]), np.float32)
    def part(x: Any, y: Any) -> Any:
        return tf.reduce_sum(x * y), x

    models = convert(part=part)
    assert (models.flex, models.left_out) == ({}, {})
    x = np.array([1.0, 2.0], np.float32)
    found = call(models, "part", arg_x=x, arg_y=np.float32(3.0))
    np.testing.assert_equal(found, {"result_0": np.float32(9.0), "result_1": x})


def test_variables() -> None:
    models = convert(counted=counted)
    assert models.flex == {}
    found = call(models, "counted", arg=np.float32(3.0))
    assert found == {"result_0": 4.0, "result_1": 9.0}


def test_operations_that_need_flex_are_named() -> None:
    @tff.tf_computation(SequenceType(np.float32))
    def total(data: Any) -> Any:
        return data.reduce(0.0, lambda x, y: x + y)

    models = convert(total=total)
    assert models.flex == {"total": ("ReduceDataset", "TensorSliceDataset")}


def test_components_that_cannot_be_converted_are_left_out() -> None:
    @tff.tf_computation(np.float32)
    def same(x: Any) -> Any:
        return x

    @tff.tf_computation
    def nothing() -> Any:
        return ()

    @tff.tf_computation(np.str_)
    def found(word: Any) -> Any:
        seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, 0)
        seen.insert([word], [1])
        return seen.size()

    models = convert(same=same, nothing=nothing, found=found)
    assert list(models.models) == ["same"]
    assert models.left_out == {
        "nothing": "it gives nothing",
        "found": "LiteRT has no AnonymousMutableHashTable, with flex neither",
    }
    with pytest.raises(ExportError) as caught:
        convert(nothing=nothing, found=found)
    assert str(caught.value) == (
        "no component of the bundle can be converted for LiteRT [E953]\n"
        "  note: nothing: it gives nothing\n"
        "  note: found: LiteRT has no AnonymousMutableHashTable, with flex neither\n"
        "  help: export a SavedModel"
    )
