"""Checks tell which inputs TensorFlow refuses, or computes otherwise than XLA."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import (
    Sample,
    Trial,
    check,
    compiled,
    computing,
    ints,
    sample,
)
from tffc.runtime.lowering.jax_checks import CHECKS

NAN = float("nan")


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


ROW = numbers(1, 2, 3, 4)
MATRIX = ROW.reshape(2, 2)
IMAGE = ROW.reshape(1, 2, 2, 1)
WITH_NAN = numbers(1, NAN, 3, 4)
KEY, COUNTER, PHILOX = np.array([1], np.uint64), np.array([2, 3], np.uint64), np.int32(1)
POOLED = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
DIVISIONS = ["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"]
TWO_OF_NUMBERS = ["EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad"]
TWO_OF_ROOTS = ["ReciprocalGrad", "RsqrtGrad", "SqrtGrad"]
WRITTEN = ["TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"]
OF_TWO = ["Maximum", "Minimum", *TWO_OF_NUMBERS, *TWO_OF_ROOTS]
MOVING: dict[str, Any] = {"traced": "begin"}
FIRST: dict[str, Any] = {**MOVING, "shrink_axis_mask": 1}
EVERY_ROW = np.int32(-1)


def column(place: int, **masks: Any) -> Sample:
    """Return a slice that takes a single place of the second of its dimensions."""
    return sample(
        MATRIX, ints(0, place), ints(0, 0), ints(1, 1), shrink_axis_mask=2, **MOVING, **masks
    )


ACCEPTED: dict[str, list[Sample]] = {
    **{op: [sample(ROW, np.int32(0))] for op in ["ArgMax", "ArgMin"]},
    **{op: [sample(ROW, ints(0))] for op in ["Max", "Min"]},
    **{op: [sample(ROW, ROW)] for op in ["Maximum", "Minimum", *TWO_OF_NUMBERS]},
    **{op: [sample(ROW, ROW, tolerance=1e-06)] for op in TWO_OF_ROOTS},
    **{op: [sample(ints(7, -7), ints(2, -2))] for op in DIVISIONS},
    **{op: [sample(ROW, ints(0, 3).reshape(2, 1), numbers(5, 6))] for op in WRITTEN},
    "Cast": [
        sample(numbers(-128, 127.5), DstT=tf.int8),
        sample(numbers(NAN), DstT=tf.float64),
    ],
    "ClipByValue": [sample(ROW, np.float32(2), np.float32(3))],
    "Gather": [sample(ROW, ints(0, 3))],
    "GatherNd": [sample(MATRIX, ints(1, 0).reshape(1, 2))],
    "GatherV2": [sample(MATRIX, ints(1, 0), np.int32(1))],
    "InvertPermutation": [sample(ints(2, 0, 1))],
    "MatrixBandPart": [
        sample(MATRIX, np.int32(2), np.int32(0)),
        sample(MATRIX, EVERY_ROW, np.int32(1)),
    ],
    "MaxPool": [sample(IMAGE, **POOLED)],
    "Pow": [sample(ints(2, 3), ints(0, 2)), sample(ROW, -ROW, tolerance=1e-6)],
    "ScatterNd": [sample(ints(0, 1).reshape(2, 1), numbers(5, 6), ints(2))],
    "Slice": [sample(ROW, ints(1), ints(3), **MOVING), sample(ROW, ints(4), ints(0))],
    "Softmax": [
        sample(MATRIX, tolerance=1e-6),
        sample(numbers(-np.inf, 0).reshape(1, 2), tolerance=1e-6),
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [sample(MATRIX, ints(0, 1), tolerance=1e-6)],
    "StatelessRandomUniformInt": [sample(ints(3), ints(1, 2), np.int32(4), np.int32(5))],
    "StatelessRandomUniformIntV2": [
        sample(ints(3), KEY, COUNTER, PHILOX, np.int32(-4), np.int32(5))
    ],
    "StridedSlice": [
        sample(ROW, ints(-4), ints(0), ints(1), **FIRST),
        sample(ROW, ints(3), ints(0), ints(1), **FIRST),
        sample(ROW, ints(-9), ints(9), ints(1)),
        column(1, ellipsis_mask=1),
    ],
    "StridedSliceGrad": [sample(ints(4), ints(3), ints(0), ints(1), np.float32(2), **FIRST)],
    "TopKV2": [sample(ROW, np.int32(2), known="k")],
    "UnsortedSegmentSum": [sample(ROW, ints(0, 1, -1, 0), np.int32(2))],
}

REFUSED: dict[str, list[Sample]] = {
    **{op: [sample(ints(7, -7), ints(2, 0))] for op in DIVISIONS},
    **{
        op: [
            sample(ROW, ints(0, 4).reshape(2, 1), numbers(5, 6)),
            sample(ROW, ints(0, -1).reshape(2, 1), numbers(5, 6)),
        ]
        for op in WRITTEN
    },
    "Gather": [sample(ROW, ints(0, 4)), sample(ROW, ints(-1))],
    "GatherNd": [sample(MATRIX, ints(1, 2).reshape(1, 2)), sample(MATRIX, ints(-1).reshape(1, 1))],
    "GatherV2": [sample(MATRIX, ints(2), np.int32(1)), sample(MATRIX, ints(-1), np.int32(0))],
    "InvertPermutation": [sample(ints(2, 0, 2)), sample(ints(1, 2, 3)), sample(ints(-1, 0, 1))],
    "MatrixBandPart": [
        sample(MATRIX, np.int32(3), np.int32(0)),
        sample(MATRIX, np.int32(0), np.int32(3)),
    ],
    "Pow": [sample(ints(2, 3), ints(0, -2))],
    "ScatterNd": [
        sample(ints(0, 2).reshape(2, 1), numbers(5, 6), ints(2)),
        sample(ints(0, -1).reshape(2, 1), numbers(5, 6), ints(2)),
    ],
    "Slice": [
        sample(ROW, ints(2), ints(3), **MOVING),
        sample(ROW, ints(-1), ints(2), **MOVING),
        sample(ROW, ints(5), ints(-1)),
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [
        sample(MATRIX, ints(0, 2)),
        sample(MATRIX, ints(0, -1)),
    ],
    "StatelessRandomUniformInt": [sample(ints(3), ints(1, 2), np.int32(4), np.int32(4))],
    "StatelessRandomUniformIntV2": [
        sample(ints(3), KEY, COUNTER, PHILOX, np.int32(5), np.int32(-5))
    ],
    "StridedSlice": [
        sample(ROW, ints(4), ints(0), ints(1), **FIRST),
        sample(ROW, ints(-5), ints(0), ints(1), **FIRST),
        column(2, ellipsis_mask=1),
        column(2, new_axis_mask=1),
    ],
    "StridedSliceGrad": [sample(ints(4), ints(4), ints(0), ints(1), np.float32(2), **FIRST)],
    "UnsortedSegmentSum": [sample(ROW, ints(0, 1, 2, 0), np.int32(2))],
}
"""What TensorFlow refuses."""

OTHER: dict[str, list[Sample]] = {
    **{op: [sample(WITH_NAN, np.int32(0))] for op in ["ArgMax", "ArgMin"]},
    **{op: [sample(WITH_NAN, ints(0))] for op in ["Max", "Min"]},
    **{
        op: [sample(ROW, WITH_NAN), sample(WITH_NAN, ROW)]
        for op in ["Maximum", "Minimum", *TWO_OF_NUMBERS, *TWO_OF_ROOTS]
    },
    "Cast": [sample(numbers(value), DstT=tf.int8) for value in (128, -129, 1e9, NAN)],
    "ClipByValue": [
        sample(WITH_NAN, np.float32(2), np.float32(3)),
        sample(ROW, np.float32(2), np.float32(NAN)),
    ],
    "MaxPool": [sample(WITH_NAN.reshape(IMAGE.shape), **POOLED)],
    "Softmax": [sample(WITH_NAN.reshape(2, 2)), sample(numbers(np.inf, 0).reshape(1, 2))],
    "TopKV2": [sample(WITH_NAN, np.int32(2), known="k")],
}
"""What processors, or TensorFlow and XLA, compute in different ways."""


def test_every_check_has_both() -> None:
    assert ACCEPTED.keys() == CHECKS.keys()
    assert {**REFUSED, **OTHER}.keys() == CHECKS.keys()


def holds(trial: Trial, arrays: Any) -> bool:
    truth = CHECKS[trial.op](trial.node, arrays)
    return True if truth is None else bool(truth)


def each_way(trial: Trial) -> set[bool]:
    """Return whether the check holds, of what is known, and of what is traced."""
    with computing():
        known = holds(trial, trial.arrays)
        traced = compiled(
            lambda varying: CHECKS[trial.op](trial.node, trial.all_of(varying)),
            trial.varying(trial.arrays),
        )
    return {known, True if traced is None else bool(traced)}


@pytest.mark.slow
@pytest.mark.parametrize("op", CHECKS)
def test_accepts(op: str) -> None:
    for each in ACCEPTED[op]:
        trial = Trial(op, each)
        assert each_way(trial) == {True}
        with computing():
            results = compiled(trial.traced, trial.varying(trial.arrays))
            check(trial, "compiled", trial.expected(trial.arrays), results)


@pytest.mark.parametrize("op", [*REFUSED, *OTHER])
def test_refuses(op: str) -> None:
    for each in [*REFUSED.get(op, []), *OTHER.get(op, [])]:
        assert each_way(Trial(op, each)) == {False}


@pytest.mark.parametrize("op", REFUSED)
def test_tensorflow_refuses_them_too(op: str) -> None:
    for each in REFUSED[op]:
        trial = Trial(op, each)
        with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.InternalError)):
            trial.expected(trial.arrays)


def test_a_check_of_one_client_says_nothing_of_others() -> None:
    trial = Trial("GatherV2", sample(ROW, ints(0, 3), np.int32(0)))
    indices = np.stack([ints(0, 3), ints(0, 4)])
    with computing():
        truths = jax.vmap(lambda each: CHECKS["GatherV2"](trial.node, [ROW, each, np.int32(0)]))(
            indices
        )
    assert truths.tolist() == [True, False]
