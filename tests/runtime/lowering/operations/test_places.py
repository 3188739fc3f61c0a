"""Slices, gathering and scattering give what TensorFlow gives."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.runtime.lowering.operations.samples import (
    Sample,
    Trial,
    compare,
    compare_all,
    floats,
    integers,
    ints,
    sample,
)
from tffc.runtime.lowering.operations.definition import NotLoweredError

F32, F64 = np.float32, np.float64
CUBE = floats(4, 5, 6)


def strided(
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    values: np.ndarray = CUBE,
    **masks: Any,
) -> Sample:
    return sample(values, ints(*begin), ints(*end), ints(*strides), **masks)


SLICES = [
    strided((1, 2), (3, 5), (1, 2)),
    strided((-1, -9), (-9, 9), (-1, 3)),
    strided((3, 1, 5), (0, 4, 0), (-2, 1, -3)),
    strided((1, 0), (0, 0), (1, 1), begin_mask=2, end_mask=3),
    strided((1, 2), (0, 0), (1, 1), shrink_axis_mask=3),
    strided((-1, 0), (0, 2), (1, 1), shrink_axis_mask=1),
    strided((0, -1), (0, 0), (1, 1), ellipsis_mask=1, shrink_axis_mask=2),
    strided((0, 0, 1), (0, 0, 3), (1, 1, 1), new_axis_mask=1, ellipsis_mask=2),
    strided(
        (1, 0, 0, 2), (0, 0, 0, 9), (1, 1, 1, 2), new_axis_mask=2, shrink_axis_mask=1, end_mask=8
    ),
    strided(
        (1, 0, 2),
        (2, 0, 0),
        (1, 1, 1),
        new_axis_mask=5,
        shrink_axis_mask=7,
        begin_mask=2,
        end_mask=2,
    ),
    strided((3,), (3,), (1,)),
    strided((1,), (4,), (1,), integers(7)),
    strided((0,), (1,), (1,), integers(7), shrink_axis_mask=1),
]


def gradient(of: Sample) -> Sample:
    values, begin, end, strides = of.inputs
    result = Trial("StridedSlice", of).expected(of.inputs)[0]
    return sample(ints(*values.shape), begin, end, strides, floats(*result.shape), **of.attributes)


PARAMS = floats(3, 4, 5)
INDICES = integers(3, 2, least=0, end=4)
ROWS = np.array([[0, 1], [2, 3], [0, 1]], np.int32)

SAMPLES = {
    "Slice": [
        sample(CUBE, ints(1, 0, 2), ints(2, 5, 3), known="begin"),
        sample(CUBE, np.array([1, 2, 0]), np.array([-1, 1, -1]), known="begin"),
        sample(integers(5), ints(0), ints(0)),
    ],
    "StridedSlice": SLICES,
    "StridedSliceGrad": [gradient(item) for item in SLICES],
    "Gather": [
        sample(PARAMS, ints(2, 0, 2)),
        sample(PARAMS, np.int64(1)),
        sample(integers(4), INDICES),
    ],
    "GatherV2": [
        sample(PARAMS, ints(2, 0, 2), np.int32(0)),
        sample(PARAMS, INDICES, np.int64(1)),
        sample(PARAMS, np.int32(1), np.int32(-1)),
        sample(PARAMS, INDICES, np.int32(1), batch_dims=1),
        sample(PARAMS, INDICES, np.int32(2), batch_dims=1),
        sample(floats(3, 2, 6), integers(3, 2, least=0, end=6), np.int32(2), batch_dims=2),
        sample(floats(3, 2, 6), integers(3, 2, least=0, end=6), np.int32(2), batch_dims=-1),
        sample(ints(5, 6, 7), np.int32(2), np.int32(0)),
    ],
    "GatherNd": [
        sample(PARAMS, np.array([[0, 1], [2, 3]], np.int32)),
        sample(PARAMS, np.array([[[2]], [[1]]])),
        sample(PARAMS, ints(1, 2, 2)),
        sample(integers(4), integers(3, 1, least=0, end=4)),
    ],
    "ScatterNd": [
        sample(ROWS, floats(3, 5), ints(3, 4, 5)),
        sample(np.array([[1], [1], [0]]), integers(3, dtype=np.int64), np.array([4])),
    ],
    "TensorScatterAdd": [
        sample(PARAMS, ROWS, floats(3, 5)),
        sample(integers(4), np.array([[1], [1]]), ints(5, 6)),
    ],
    "TensorScatterSub": [
        sample(PARAMS, ROWS, floats(3, 5)),
        sample(integers(4), np.array([[1], [1]]), ints(5, 6)),
    ],
    "TensorScatterUpdate": [
        sample(PARAMS, ROWS, floats(3, 5)),
        sample(integers(4), np.array([[1], [1]]), ints(5, 6)),
    ],
    "UnsortedSegmentSum": [
        sample(floats(4, 3), ints(0, 2, 0, -1), np.int32(4)),
        sample(floats(3, 2, 3), integers(3, 2, least=0, end=3, dtype=np.int64), np.int32(3)),
        sample(integers(4), ints(1, 1, 1, 0), np.int64(2)),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_what_tensorflow_does(op: str) -> None:
    compare(op, SAMPLES[op])


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_it_compiled(op: str) -> None:
    compare_all(op, SAMPLES[op])


def moving(op: str, known: str, *samples: Sample) -> None:
    """Compare with TensorFlow where also the begin is known only when it runs."""
    for item in samples:
        trial = Trial(op, item)
        trial.varies = [name not in known for name in ("input", "begin", "end", "strides")]
        trial.varies = trial.varies[: len(trial.arrays)]
        with jax.enable_x64(True):
            results = jax.jit(trial.traced)(trial.varying(trial.arrays))
        for wanted, value in zip(trial.expected(trial.arrays), results, strict=True):
            np.testing.assert_array_equal(value, wanted)


def test_slices_of_a_known_size_may_begin_anywhere() -> None:
    moving(
        "StridedSlice",
        "strides",
        strided((2,), (3,), (1,), shrink_axis_mask=1),
        strided((-1, 0), (0, 0), (1, 1), shrink_axis_mask=1, begin_mask=2, end_mask=2),
        strided((0, 3), (0, 4), (1, 1), ellipsis_mask=1, shrink_axis_mask=2),
        strided(
            (1, 0, 0, 2),
            (2, 0, 0, 3),
            (1, 1, 1, 1),
            new_axis_mask=2,
            shrink_axis_mask=9,
            begin_mask=4,
            end_mask=4,
        ),
    )
    moving("Slice", "end", sample(CUBE, ints(1, 0, 2), ints(2, 5, 3)))


def test_slices_of_unknown_size_are_not_lowered() -> None:
    with pytest.raises(NotLoweredError, match=r"^StridedSlice of bounds known only when it runs"):
        moving("StridedSlice", "strides", strided((2,), (3,), (1,)))
    with pytest.raises(
        NotLoweredError, match=r"^Slice of all that follows a place known only when it runs"
    ):
        moving("Slice", "end", sample(CUBE, ints(1, 0, 2), ints(2, -1, 3)))


def test_strided_slices_at_random() -> None:
    numbers = np.random.default_rng(7)
    samples = []
    for _ in range(25):
        rank = int(numbers.integers(1, 4))
        begin, end = (tuple(map(int, numbers.integers(-7, 8, rank))) for _ in range(2))
        strides = tuple(map(int, numbers.choice([-2, -1, 1, 2, 3], rank)))
        masks: dict[str, Any] = {
            name: int(numbers.integers(0, 8)) for name in ("begin_mask", "end_mask")
        }
        samples.append(strided(begin, end, strides, **masks))
    for item in samples:
        trial = Trial("StridedSlice", item)
        (wanted,), (value,) = trial.expected(trial.arrays), trial.computed(trial.arrays)
        np.testing.assert_array_equal(value, wanted)
