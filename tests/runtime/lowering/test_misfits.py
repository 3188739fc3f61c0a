"""Values that TensorFlow refuses for their shapes, which NumPy and JAX would stretch to fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.language.values.concrete import flatten, to_value
from tffc.runtime.frameworks.tensorflow.runner import TensorFlowRunner
from tffc.runtime.lowering.runner import LoweredRunner
from tffc.support.errors import ExecutionError

ROW = tff.TensorType(np.float32, [None])
ROWS = tff.TensorType(np.float32, [None, None])
NUMBERS = tff.TensorType(np.int32, [None])
PLACES = tff.TensorType(np.int32, [None, 1])
PLACE_ROWS = tff.TensorType(np.int32, [None, None])
TRUTHS = tff.TensorType(np.bool_, [None])
IMAGES = tff.TensorType(np.float32, [None, None, None, 1])


def of(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Zero, one, zero and so on."""
    return (np.arange(int(np.prod(shape))) % 2).astype(dtype).reshape(shape)


def places(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def assigned(x: Any) -> Any:
    variable = tf.Variable(tf.zeros([3]))
    variable.assign(x)
    return variable.read_value()


def increased(x: Any) -> Any:
    variable = tf.Variable(tf.zeros([3]))
    variable.assign_sub(variable.assign_add(x))
    return variable.read_value()


def fixed(x: Any) -> Any:
    x.set_shape([3])
    return x * 2


def normalized(x: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, tf.ones([1]), tf.zeros([1]))[0]


MISFITS: dict[str, tuple[Callable[..., Any], Any, Any, Any, str]] = {
    "added": (
        lambda x, y: tf.add_n([x, y]),
        (ROW, ROW),
        (of(3), of(3)),
        (of(3), of(1)),
        "AddN of inputs whose shapes do not fit",
    ),
    "biases": (
        lambda x, biases: tf.nn.bias_add(x, biases),
        (ROWS, ROW),
        (of(2, 3), of(3)),
        (of(2, 3), of(1)),
        "BiasAdd of inputs whose shapes do not fit",
    ),
    "chosen rows": (
        lambda c, x, y: tf.raw_ops.Select(condition=c, x=x, y=y),
        (TRUTHS, ROWS, ROWS),
        (of(2, dtype=bool), of(2, 3), of(2, 3)),
        (of(1, dtype=bool), of(2, 3), of(2, 3)),
        "Select of inputs whose shapes do not fit",
    ),
    "labels": (
        lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        (ROWS, NUMBERS),
        (of(2, 3), places(0, 2)),
        (of(2, 3), places(1)),
        "SparseSoftmaxCrossEntropyWithLogits of inputs whose shapes do not fit",
    ),
    "sums of axes": (
        lambda x, y: tf.einsum("i...j,j...k->ik", x, y),
        (ROWS, ROWS),
        (of(2, 3), of(3, 2)),
        (of(2, 1), of(3, 2)),
        "Einsum of inputs whose shapes do not fit",
    ),
    "gathered rows": (
        lambda x, at: tf.gather(x, at, batch_dims=1),
        (ROWS, PLACE_ROWS),
        (of(2, 3), places(0, 2).reshape(2, 1)),
        (of(2, 3), places(1).reshape(1, 1)),
        "GatherV2 of inputs whose shapes do not fit",
    ),
    "scattered numbers": (
        lambda at, x: tf.scatter_nd(at, x, [4]),
        (PLACES, ROW),
        (places(0, 3).reshape(2, 1), of(2)),
        (places(0, 3).reshape(2, 1), of(1)),
        "ScatterNd of inputs whose shapes do not fit",
    ),
    "scattered rows": (
        lambda at, x: tf.tensor_scatter_nd_add(tf.ones([4, 2]), at, x),
        (PLACES, ROWS),
        (places(0, 3).reshape(2, 1), of(2, 2)),
        (places(0, 3).reshape(2, 1), of(2, 1)),
        "TensorScatterAdd of inputs whose shapes do not fit",
    ),
    "sums of segments": (
        lambda x, at: tf.math.unsorted_segment_sum(x, at, 3),
        (ROWS, NUMBERS),
        (of(2, 2), places(0, 2)),
        (of(1, 2), places(0, 2)),
        "UnsortedSegmentSum of inputs whose shapes do not fit",
    ),
    "parts": (
        lambda x: tf.split(x, [1, 2]),
        (ROW,),
        of(3),
        of(4),
        "SplitV of inputs whose shapes do not fit",
    ),
    "rows taken apart": (
        lambda x: tf.unstack(x, num=2),
        (ROW,),
        of(2),
        of(3),
        "Unpack of inputs whose shapes do not fit",
    ),
    "reflections": (
        lambda x: tf.pad(x, [[2, 2]], "REFLECT"),
        (ROW,),
        of(3),
        of(2),
        "MirrorPad of inputs whose shapes do not fit",
    ),
    "mirrored ends": (
        lambda x: tf.pad(x, [[0, 2]], "SYMMETRIC"),
        (ROW,),
        of(2),
        of(1),
        "MirrorPad of inputs whose shapes do not fit",
    ),
    "shapes": (
        lambda x: tf.ensure_shape(x, [None, 2]) * 2,
        (ROWS,),
        of(3, 2),
        of(2, 3),
        "EnsureShape of inputs whose shapes do not fit",
    ),
    "channels": (
        normalized,
        (tff.TensorType(np.float32, [None, 2, 2, None]),),
        of(2, 2, 2, 1),
        of(2, 2, 2, 3),
        "FusedBatchNormV3 of inputs whose shapes do not fit",
    ),
    "windows": (
        lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
        (IMAGES,),
        of(1, 4, 4, 1),
        of(1, 1, 1, 1),
        "MaxPool of inputs whose shapes do not fit",
    ),
    "a depth": (
        lambda x: tf.one_hot(x, tf.size(x) - 2),
        (NUMBERS,),
        places(0, 1, 2),
        places(0),
        "OneHot of depth -1",
    ),
    "a range that goes on": (
        lambda x: tf.range(0, 5, tf.shape(x)[0]),
        (ROW,),
        of(2),
        of(0),
        "Range from 0 to 5 by 0",
    ),
    "a range that goes back": (
        lambda x: tf.range(3.0, tf.cast(tf.shape(x)[0], tf.float32)),
        (ROW,),
        of(5),
        of(1),
        "Range from 3.0 to 1.0 by 1.0",
    ),
    "no steps": (
        lambda x: tf.raw_ops.LinSpace(start=0.0, stop=1.0, num=tf.shape(x)[0]),
        (ROW,),
        of(3),
        of(0),
        "LinSpace of 0 steps",
    ),
    "a value of a variable": (
        assigned,
        (ROW,),
        of(3),
        of(1),
        "AssignVariableOp of another shape than that of its variable",
    ),
    "an addition to a variable": (
        increased,
        (ROW,),
        of(3),
        of(2),
        "AssignAddVariableOp of another shape than that of its variable",
    ),
    "a result": (
        fixed,
        (ROW,),
        of(3),
        of(2),
        "it gives a tensor of shape [2] for type float32[3]",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    work, types, good, bad, reason = MISFITS[name]
    section = tff.tf_computation(*types)(work).node
    assert isinstance(section, Compiled)
    assert isinstance(section.type, FunctionType)
    assert section.type.parameter is not None
    runners = LoweredRunner(section), TensorFlowRunner(section)
    value = to_value(good, section.type.parameter)
    result, expected = (flatten(runner(value), section.type.result) for runner in runners)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    errors: list[ExecutionError] = []
    for runner in runners:
        with pytest.raises(ExecutionError) as caught:
            runner(to_value(bad, section.type.parameter))
        errors.append(caught.value)
    assert errors[0].notes == (f"it cannot be compiled without TensorFlow: {reason}",)
