"""The table has what batches may compute, and every operation in it is compared with TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest
import tensorflow as tf

from tests.processes import ROOT
from tests.runtime.lowering.operations import (
    test_draws,
    test_elementwise,
    test_networks,
    test_places,
    test_shapes,
    test_signals,
)
from tests.runtime.lowering.operations.samples import Trial, computing, floats, ints, sample
from tffc.language.dtypes import DType
from tffc.runtime.lowering.operations.definition import NotLoweredError
from tffc.runtime.lowering.operations.table import OPERATIONS
from tffc.runtime.lowering.tensorflow_operations import DRAWN, PLAIN

LEFT_OUT = {
    "StatelessTruncatedNormalV2": "how often it draws again depends on the last digits of sines",
    "XlaCallModule": "the evaluator computes it",
}

COMPARED = {"Const"}
"""Operations with tests of their own."""


def test_every_operation_of_batches_is_here_or_left_out_for_a_reason() -> None:
    assert {*PLAIN, *DRAWN} - {*OPERATIONS} == {*LEFT_OUT}


def test_every_operation_is_compared_with_tensorflow() -> None:
    modules = (
        test_draws,
        test_elementwise,
        test_networks,
        test_places,
        test_shapes,
        test_signals,
    )
    compared = {name for module in modules for name in module.SAMPLES}
    assert {*OPERATIONS} - compared == COMPARED


NUMBERS = [dtype.label for dtype in DType if dtype is not DType.STRING]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_constants_are_read_however_they_are_written(dtype: str) -> None:
    kind = tf.as_dtype(dtype).as_numpy_dtype
    for value in ([0, 1, 1], [[2, 3], [4, 5]], 7, []):
        array = np.array(value).astype(kind)
        listed = tf.make_tensor_proto(array.tolist(), dtype, shape=array.shape)
        content = tf.make_tensor_proto(array)
        for proto in (listed, content):
            node = tf.compat.v1.NodeDef(op="Const")
            node.attr["value"].tensor.CopyFrom(proto)
            node.attr["dtype"].type = proto.dtype
            (result,) = OPERATIONS["Const"](node, [])
            wanted = tf.make_ndarray(proto)
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            assert result.tobytes() == wanted.tobytes()


def test_constants_of_text_are_read() -> None:
    node = tf.compat.v1.NodeDef(op="Const")
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([b"a", b"bc"]))
    node.attr["dtype"].type = tf.string.as_datatype_enum
    (result,) = OPERATIONS["Const"](node, [])
    assert result.tolist() == [b"a", b"bc"]


REFUSED = {
    "Reshape of a shape that is known only when it runs": (
        "Reshape",
        sample(floats(4), ints(2, 2)),
    ),
    "Sum of axes known only when it runs": ("Sum", sample(floats(4), ints(0))),
    "Fill of a shape that is known only when it runs": ("Fill", sample(ints(2), np.float32(1))),
    "Range of bounds known only when it runs": ("Range", sample(*map(np.int32, (0, 3, 1)))),
    "Pad of paddings known only when it runs": ("Pad", sample(floats(2), ints(1, 1).reshape(1, 2))),
    "Transpose of an order of axes known only when it runs": (
        "Transpose",
        sample(floats(2, 3), ints(1, 0)),
    ),
    "DynamicStitch of places that leave gaps": (
        "DynamicStitch",
        sample([ints(0, 2)], [floats(2)]),
    ),
    "Round of integers": ("Round", sample(ints(1))),
    "Cast that cuts digits off instead of rounding": (
        "Cast",
        sample(floats(2), DstT=tf.bfloat16, Truncate=True),
    ),
    "Einsum that writes a diagonal": ("Einsum", sample([floats(3)], equation="i->ii")),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_lowered_is_refused_with_a_reason(reason: str) -> None:
    trial = Trial(*REFUSED[reason])
    traced = "only when it runs" in reason
    compute = trial.computed if not traced else partial(jax.eval_shape, trial.computed)
    with computing(), pytest.raises(NotLoweredError) as refusal:
        compute(trial.arrays)
    assert str(refusal.value) == reason


@pytest.mark.slow
def test_the_table_does_not_load_tensorflow() -> None:
    program = (
        "import sys, tffc.runtime.lowering.operations.table; print('tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
