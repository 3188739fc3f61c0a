"""Reductions, and operations that lay elements out anew, give what TensorFlow gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import (
    Sample,
    Trial,
    compare,
    compare_all,
    floats,
    integers,
    ints,
    positive,
    sample,
)
from tffc.runtime.lowering.operations.table import OPERATIONS

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
CUBE = floats(2, 3, 4)
WHOLE = integers(2, 3, 4)
LONG = integers(2, 3, 4, dtype=np.int64)
NONE = np.zeros((0, 3), F32)


def reduced(*others: np.ndarray, empty: bool = True) -> list[Sample]:
    samples = [
        sample(CUBE, ints(1)),
        sample(CUBE, ints(0, -1), keep_dims=True),
        sample(CUBE, np.array([2], np.int64)),
        sample(CUBE, np.int32(1)),
        sample(CUBE, np.zeros(0, np.int32)),
        sample(positive(2, 9), ints(0, 1)),
        *(sample(other, ints(0, 2)) for other in others),
    ]
    return [*samples, sample(NONE, ints(0))] if empty else samples


def dimensions() -> list[Sample]:
    return [
        sample(CUBE, np.int32(1)),
        sample(CUBE, np.int64(-1), output_type=tf.int32),
        sample(ints(3, 7, 7, 1), np.int32(0)),
        sample(np.zeros((2, 5), F32), np.int32(1)),
        sample(integers(3, 4, dtype=np.uint8, least=0), np.int32(0)),
    ]


def running() -> list[Sample]:
    return [
        sample(values, np.int32(axis), exclusive=exclusive, reverse=reverse)
        for values, axis in ((CUBE, 1), (WHOLE, -1), (integers(5, dtype=np.int64), 0))
        for exclusive in (False, True)
        for reverse in (False, True)
    ]


LOGIC = CUBE > 0
HALF = [floats(2, 3, 4, dtype=F16), floats(2, 3, 4, dtype=BF16)]
COMPLEX = (CUBE + 1j * CUBE[::-1]).astype(np.complex64)
LARGE = [(127, 127, -3), (-100, -100, 7)]
MEANS = [
    *(sample(ints(*values, dtype=np.int8), ints(0)) for values in LARGE),
    sample(ints(200, 100, 7, dtype=np.uint8), ints(0)),
    sample(ints(2**31 - 1, 2**31 - 1, -1), ints(0)),
    sample(np.zeros((2, 0), np.int32), ints(1)),
]
"""Integers whose sum their type does not hold, and none."""

REDUCTIONS: dict[str, list[Sample]] = {
    "All": [
        sample(LOGIC, ints(0, 2)),
        sample(LOGIC, ints(1), keep_dims=True),
        sample(NONE > 0, ints(0)),
    ],
    "Any": [
        sample(LOGIC, ints(0, 2)),
        sample(LOGIC, ints(1), keep_dims=True),
        sample(NONE > 0, ints(0)),
    ],
    "ArgMax": dimensions(),
    "ArgMin": dimensions(),
    "BiasAdd": [
        sample(CUBE, floats(4)),
        sample(floats(2, 5, 3, 4), floats(5), data_format="NCHW"),
        sample(integers(2, 3), ints(1, 2, 3)),
    ],
    "BiasAddGrad": [
        sample(CUBE),
        sample(floats(2, 3, 4, 5), data_format="NCHW"),
        sample(floats(2, 3, 4, 5, dtype=F64)),
    ],
    "Cumprod": running(),
    "Cumsum": running(),
    "EuclideanNorm": reduced(floats(2, 3, 4, dtype=F64), COMPLEX),
    "L2Loss": [sample(CUBE), sample(floats(9, dtype=F64)), sample(NONE)],
    "Max": reduced(WHOLE, LONG, *HALF),
    "Mean": [*reduced(WHOLE, LONG, COMPLEX, *HALF), *MEANS],
    "Min": reduced(WHOLE, LONG, *HALF),
    "Prod": reduced(WHOLE, LONG, COMPLEX),
    "Sum": reduced(WHOLE, LONG, COMPLEX, *HALF, integers(2, 3, 4, dtype=np.int8)),
}

PADDINGS = np.array([[1, 0], [0, 2], [1, 1]], np.int32)
GRADIENT_OF = (
    (ints(2, 3), ints(3)),
    (ints(1, 3), ints(2, 3)),
    (ints(4, 1), ints(1)),
    (ints(), ints(2, 1)),
)
GRADIENT_OF = (
    *GRADIENT_OF,
    (ints(2, 1, 3), ints(5, 1)),
    (ints(1, 1), ints(1, 1)),
    (ints(1), ints()),
)

LAYOUTS: dict[str, list[Sample]] = {
    "BroadcastArgs": [sample(left, right) for left, right in GRADIENT_OF],
    "BroadcastGradientArgs": [
        *(sample(left, right) for left, right in GRADIENT_OF),
        sample(np.array([3, 1]), np.array([2])),
    ],
    "BroadcastTo": [
        sample(floats(3, 1), ints(2, 3, 4)),
        sample(np.int64(3), ints(2, 2)),
        sample(CUBE, ints(2, 3, 4)),
    ],
    "Concat": [
        sample(np.int32(1), [CUBE, floats(2, 1, 4)]),
        sample(np.int32(0), [ints(1), ints(2, 3)]),
    ],
    "ConcatOffset": [sample(np.int32(1), [ints(2, 3, 4), ints(2, 1, 4), ints(2, 5, 4)])],
    "ConcatV2": [
        sample([CUBE, floats(2, 1, 4)], np.int32(1)),
        sample([ints(1), ints(2, 3), ints()], np.int64(0)),
        sample([CUBE, CUBE], np.int32(-1)),
    ],
    "DynamicStitch": [
        sample([ints(0, 2), ints(1, 3, 2)], [floats(2, 3), floats(3, 3, seed=1)]),
        sample([np.int32(1), ints(0)], [np.int64(7), integers(1, dtype=np.int64)]),
        sample([np.array([[0, 1], [3, 2]], np.int32)], [floats(2, 2, 3)]),
    ],
    "EnsureShape": [sample(CUBE, shape=[2, None, 4])],
    "ExpandDims": [
        sample(CUBE, np.int32(1)),
        sample(CUBE, np.int64(-1)),
        sample(np.int32(2), np.int32(0)),
    ],
    "Fill": [
        sample(ints(2, 3), F32(1.5)),
        sample(ints(), np.int64(4)),
        sample(np.array([3]), np.bool_(True)),
    ],
    "Identity": [sample(CUBE), sample(np.array(3))],
    "IdentityN": [sample([CUBE, ints(1, 2)])],
    "InvertPermutation": [sample(ints(2, 0, 1, 3)), sample(ints(1, 0, dtype=np.int64))],
    "LinSpace": [
        sample(F32(1), F32(2), np.int32(7)),
        sample(F64(-1), F64(5), np.int32(4)),
        sample(F32(3), F32(9), np.int32(1)),
        sample(F32(3), F32(-9), np.int64(2)),
    ],
    "MatrixBandPart": [
        sample(floats(2, 4, 5), np.int32(lower), np.int32(upper), known="num_lower num_upper")
        for lower, upper in ((0, -1), (-1, 0), (1, 1), (-1, -1))
    ],
    "MatrixDiag": [sample(floats(2, 3)), sample(ints(1, 2))],
    "MatrixDiagPart": [sample(floats(2, 3, 4)), sample(integers(3, 2))],
    "MirrorPad": [
        sample(values, PADDINGS, mode=mode)
        for mode in ("REFLECT", "SYMMETRIC")
        for values in (floats(2, 3, 2), integers(2, 4, 3))
    ],
    "MirrorPadGrad": [
        sample(floats(3, 5, 4), PADDINGS, mode="REFLECT"),
        sample(floats(3, 5, 4), PADDINGS, mode="SYMMETRIC"),
        sample(floats(5, dtype=F64), np.array([[1, 2]]), mode="SYMMETRIC"),
    ],
    "OneHot": [
        sample(ints(1, 44, 255, dtype=np.uint8), np.int32(300), F32(1), F32(0)),
        sample(ints(1, -1, 127, dtype=np.int8), np.int32(300), F32(1), F32(0)),
        sample(ints(0, 2, -1, 5), np.int32(3), F32(1), F32(0)),
        sample(
            integers(2, 3, least=0, end=4, dtype=np.int64),
            np.int32(4),
            np.int32(5),
            np.int32(-1),
            axis=0,
        ),
        sample(integers(2, 3, least=0, end=4), np.int32(4), F32(1), F32(0), axis=1),
        sample(np.int32(1), np.int32(3), np.bool_(True), np.bool_(False)),
    ],
    "OnesLike": [sample(CUBE), sample(integers(2, dtype=np.int8)), sample(CUBE > 0)],
    "Pack": [
        sample([CUBE, CUBE], axis=1),
        sample([np.int32(1), np.int32(2)]),
        sample([ints(1, 2), ints(3, 4)], axis=-1),
    ],
    "Pad": [sample(CUBE, PADDINGS), sample(ints(1, 2), np.array([[2, 1]]))],
    "PadV2": [sample(CUBE, PADDINGS, F32(7)), sample(ints(1, 2), np.array([[2, 1]]), np.int32(-1))],
    "PreventGradient": [sample(CUBE)],
    "Range": [
        sample(np.int32(0), np.int32(7), np.int32(2)),
        sample(np.int64(5), np.int64(-3), np.int64(-3)),
        sample(F32(0), F32(1), F32(0.1)),
        sample(F64(2), F64(-1), F64(-0.3)),
        sample(np.int32(0), np.int32(0), np.int32(1)),
    ],
    "Rank": [sample(CUBE)],
    "Reshape": [
        sample(CUBE, ints(3, -1)),
        sample(CUBE, np.array([24])),
        sample(F32(2), ints(1, 1)),
        sample(floats(1, 1), ints()),
    ],
    "ReverseV2": [sample(CUBE, ints(0, -1)), sample(ints(1, 2, 3), np.array([0]))],
    "Shape": [sample(CUBE), sample(CUBE, out_type=tf.int64), sample(F32(1))],
    "ShapeN": [sample([CUBE, floats(2)], out_type=tf.int64), sample([ints(1)])],
    "Size": [sample(CUBE), sample(CUBE, out_type=tf.int64)],
    "Snapshot": [sample(CUBE)],
    "Split": [
        sample(np.int32(2), CUBE, num_split=2),
        sample(np.int32(0), ints(1, 2, 3), num_split=3),
    ],
    "SplitV": [
        sample(CUBE, ints(1, 2), np.int32(1), num_split=2),
        sample(ints(1, 2, 3, 4), np.array([1, -1, 1]), np.int32(-1), num_split=3),
    ],
    "Squeeze": [
        sample(floats(1, 2, 1)),
        sample(floats(1, 2, 1), axis=[-1]),
        sample(floats(1, 1), axis=[0, 1]),
    ],
    "StopGradient": [sample(CUBE)],
    "Tile": [
        sample(floats(2, 1), ints(2, 3)),
        sample(ints(1, 2), np.array([3])),
        sample(CUBE, ints(1, 0, 1)),
    ],
    "Transpose": [
        sample(CUBE, ints(2, 0, 1)),
        sample(WHOLE, np.array([0, 2, 1])),
        sample(F32(1), ints()),
    ],
    "Unpack": [
        sample(CUBE, num=3, axis=1),
        sample(ints(4, 5), num=2),
        sample(CUBE, num=4, axis=-1),
    ],
    "ZerosLike": [sample(CUBE), sample(integers(2, dtype=np.int8)), sample(CUBE > 0)],
}


SAMPLES = {**REDUCTIONS, **LAYOUTS}


@pytest.mark.parametrize("op", SAMPLES)
def test_computes_what_tensorflow_does(op: str) -> None:
    compare(op, SAMPLES[op])


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_it_compiled(op: str) -> None:
    compare_all(op, SAMPLES[op])


def test_axes_of_gradients_of_broadcasts_at_random() -> None:
    numbers = np.random.default_rng(3)
    nodes = [Trial("BroadcastGradientArgs", sample(ints(1), ints(1))).node]
    for _ in range(60):
        shape = numbers.integers(1, 4, int(numbers.integers(0, 5)))
        sides = [np.where(numbers.random(len(shape)) < 0.5, 1, shape) for _ in range(2)]
        left, right = (side[int(numbers.integers(0, 3)) :].astype(np.int32) for side in sides)
        wanted = tf.raw_ops.BroadcastGradientArgs(s0=left, s1=right)
        results = OPERATIONS["BroadcastGradientArgs"](nodes[0], [left, right])
        assert [axes.tolist() for axes in results] == [axes.numpy().tolist() for axes in wanted], (
            left,
            right,
        )


def test_reductions_and_broadcasts_of_shapes_at_random() -> None:
    numbers = np.random.default_rng(4)
    nodes = {name: Trial(name, sample(CUBE, ints(0))).node for name in ("Sum", "Mean", "Max")}
    added = Trial("AddV2", sample(CUBE, CUBE)).node
    for _ in range(40):
        shape = tuple(map(int, numbers.integers(0, 4, int(numbers.integers(1, 5)))))
        values = numbers.normal(size=shape)
        axes = numbers.permutation(len(shape))[: int(numbers.integers(0, 5))].astype(np.int32)
        for name, node in nodes.items():
            wanted = getattr(tf.raw_ops, name)(input=values, axis=axes).numpy()
            (result,) = OPERATIONS[name](node, [values, axes])
            np.testing.assert_allclose(result, wanted, rtol=1e-12)
        other = numbers.normal(size=[size if numbers.random() < 0.5 else 1 for size in shape[1:]])
        (result,) = OPERATIONS["AddV2"](added, [values, other])
        np.testing.assert_array_equal(result, tf.add(values, other))
