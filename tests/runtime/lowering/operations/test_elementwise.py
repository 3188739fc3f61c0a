"""Arithmetic, comparisons, activations and casts give what TensorFlow gives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import (
    Sample,
    compare,
    compare_all,
    floats,
    integers,
    ints,
    sample,
)

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
FLOATS = (F32, F64, F16, BF16)
COMPLEX = (np.complex64, np.complex128)
INTEGERS = (np.int32, np.int64)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-3, 30.0]


def spread(dtype: Any, least: float = -4, most: float = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(least, most, (3, 5)).astype(dtype)


def unary(least: float, most: float, special: bool = True, dtypes: Any = FLOATS) -> list[Sample]:
    samples = [sample(spread(dtype, least, most)) for dtype in dtypes]
    if special:
        samples += [sample(np.array(SPECIAL, dtype)) for dtype in (F32, F64)]
    return samples


def complexes(dtype: Any, seed: int = 0) -> np.ndarray:
    return (
        floats(3, 2, seed=seed, dtype=F64) + 1j * floats(3, 2, seed=seed + 1, dtype=F64)
    ).astype(dtype)


def with_complex(samples: list[Sample]) -> list[Sample]:
    return [*samples, *(sample(complexes(dtype), tolerance=1e-5) for dtype in COMPLEX)]


def with_integers(samples: list[Sample], dtypes: Any = INTEGERS) -> list[Sample]:
    return [*samples, *(sample(integers(7, dtype=dtype)) for dtype in dtypes)]


EDGES = [np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)]

UNARY: dict[str, list[Sample]] = {
    "Abs": with_integers(unary(-4, 4), (*INTEGERS, np.int8)),
    "Acos": unary(-1, 1),
    "Acosh": unary(1, 9),
    "Asin": unary(-1, 1),
    "Asinh": unary(-4, 4),
    "Atan": unary(-4, 4),
    "Atanh": unary(-0.9, 0.9),
    "Ceil": unary(-4, 4),
    "Cos": with_complex(unary(-4, 4)),
    "Cosh": unary(-4, 4),
    "Elu": unary(-4, 4),
    "Erf": [*unary(-4, 4, special=False), sample(np.array(SPECIAL, F32))],
    "Erfc": unary(-2, 2),
    "Exp": with_complex(unary(-4, 4)),
    "Expm1": unary(-1, 1),
    "Floor": unary(-4, 4),
    "Inv": with_complex(unary(0.5, 4)),
    "Invert": [sample(integers(6, dtype=d)) for d in (np.int8, np.int32, np.int64)],
    "IsFinite": unary(-4, 4),
    "IsInf": unary(-4, 4),
    "IsNan": unary(-4, 4),
    "LeakyRelu": [*unary(-4, 4), sample(spread(F32), alpha=0.3)],
    "Lgamma": unary(0.5, 6, special=False, dtypes=(F32, F64, F16)),
    "Log": with_complex(unary(0.1, 4)),
    "Log1p": unary(-0.5, 4),
    "LogicalNot": [sample(np.array([True, False, True]))],
    "Neg": with_complex(with_integers(unary(-4, 4))),
    "Reciprocal": with_complex(unary(0.5, 4)),
    "Relu": with_integers(unary(-4, 4)),
    "Relu6": with_integers(unary(-9, 9)),
    "Rint": unary(-4, 4, dtypes=(F32, F64)),
    "Round": unary(-4, 4),
    "Rsqrt": unary(0.1, 4),
    "Selu": unary(-4, 4),
    "Sigmoid": with_complex(unary(-4, 4)),
    "Sign": with_integers(unary(-4, 4)),
    "Sin": with_complex(unary(-4, 4)),
    "Sinh": unary(-4, 4),
    "Softplus": [*unary(-4, 4), sample(floats(9) * F32(30))],
    "Softsign": unary(-4, 4),
    "Sqrt": with_complex(unary(0.1, 4)),
    "Square": with_complex(with_integers(unary(-4, 4))),
    "Tan": unary(-1, 1),
    "Tanh": with_complex(unary(-4, 4)),
}


def binary(least: float = -4, most: float = 4, dtypes: Any = FLOATS) -> list[Sample]:
    samples = [sample(spread(d, least, most), spread(d, least, most, seed=1)) for d in dtypes]
    one = sample(spread(F32, least, most), F32(2.5))
    return [*samples, one, sample(spread(F32, least, most), spread(F32, least, most, 2)[:1])]


def mixed(dtype: Any = F32) -> list[Sample]:
    left, right = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    return [sample(left, right)]


def whole(dtypes: Any = INTEGERS, least: int = -9) -> list[Sample]:
    return [
        sample(
            integers(4, 3, dtype=d, least=least), integers(3, seed=1, dtype=d, least=max(least, -5))
        )
        for d in dtypes
    ]


def divided(dtypes: Any) -> list[Sample]:
    small = [
        sample(
            integers(40, dtype=d, least=0 if np.dtype(d).kind == "u" else -9),
            integers(40, dtype=d, least=1),
        )
        for d in dtypes
    ]
    return [*small, sample(integers(40), -integers(40, least=1, end=5))]


def complex_pairs() -> list[Sample]:
    return [sample(complexes(d), complexes(d, 5), tolerance=1e-5) for d in COMPLEX]


def bits() -> list[Sample]:
    return [
        sample(integers(6, dtype=d), integers(6, seed=1, dtype=d))
        for d in (np.int8, np.int32, np.int64)
    ]


def logic() -> list[Sample]:
    return [sample(np.array([True, True, False, False]), np.array([True, False, True, False]))]


WRAPPING = [sample(ints(2**31 - 1, -(2**31), 65537), ints(1, -1, 65537))]
UNSIGNED = (np.uint8, np.uint16)
ORDERED = [*binary(), *mixed(), *whole((*INTEGERS, np.uint8), 0)]

BINARY: dict[str, list[Sample]] = {
    "Add": [*binary(), *mixed(), *whole(), *WRAPPING, *complex_pairs()],
    "AddV2": [*binary(), *mixed(), *whole((*INTEGERS, np.uint8, np.int16), 0), *WRAPPING],
    "Atan2": [*binary(), *mixed()],
    "BitwiseAnd": bits(),
    "BitwiseOr": bits(),
    "BitwiseXor": bits(),
    "Div": [*binary(0.5), *mixed(), *divided(INTEGERS), *complex_pairs()],
    "DivNoNan": [*binary(0.5), sample(spread(F32), np.zeros((3, 5), F32)), *complex_pairs()],
    "Equal": [
        *ORDERED,
        *logic(),
        sample(ints(1, 2, 3), ints(1, 2), incompatible_shape_error=False),
    ],
    "FloorDiv": [*binary(), *divided((*INTEGERS, np.uint8, np.int8))],
    "FloorMod": [*binary(), *divided((*INTEGERS, np.uint32))],
    "Greater": ORDERED,
    "GreaterEqual": ORDERED,
    "Less": ORDERED,
    "LessEqual": ORDERED,
    "LogicalAnd": logic(),
    "LogicalOr": logic(),
    "Maximum": [*binary(), *whole((*INTEGERS, np.uint8), 0)],
    "Minimum": [*binary(), *whole((*INTEGERS, np.uint8), 0)],
    "Mod": [*binary(dtypes=(F32, F64)), *divided(INTEGERS)],
    "Mul": [*binary(), *mixed(), *whole(), *WRAPPING, *complex_pairs()],
    "MulNoNan": [*binary(), sample(np.array([np.nan, np.inf, 1], F32), np.zeros(3, F32))],
    "NotEqual": [
        *ORDERED,
        *logic(),
        sample(ints(1, 2, 3), ints(1, 2), incompatible_shape_error=False),
    ],
    "Pow": [*binary(0.2), *mixed(), *divided(INTEGERS)[:2]],
    "RealDiv": [*binary(0.5), *mixed(), *complex_pairs()],
    "SquaredDifference": [*binary(), *whole(), *complex_pairs()],
    "Sub": [*binary(), *mixed(), *whole(), *WRAPPING, *complex_pairs()],
    "TruncateDiv": divided((*INTEGERS, np.uint8, np.int8)),
    "TruncateMod": [*binary(dtypes=(F32, F64)), *divided(INTEGERS)],
    "Xdivy": [*binary(0.5), sample(np.zeros(3, F32), np.array([0, 1, np.nan], F32))],
    "Xlogy": [*binary(0.5), sample(np.zeros(3, F32), np.array([0, 1, np.nan], F32))],
}

ACTIVATIONS = [
    "EluGrad",
    "InvGrad",
    "LeakyReluGrad",
    "ReciprocalGrad",
    "Relu6Grad",
    "ReluGrad",
    "SeluGrad",
    "SigmoidGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "TanhGrad",
]
GRADIENTS = {name: binary()[:-2] for name in ACTIVATIONS}
for _name in ("SqrtGrad", "RsqrtGrad"):
    GRADIENTS[_name] = binary(0.5)[:-2]
for _name in ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"):
    GRADIENTS[_name] = [*GRADIENTS[_name], *complex_pairs()]

ROWS = floats(3, 4)
OTHERS: dict[str, list[Sample]] = {
    "AddN": [
        sample([floats(3), floats(3, seed=1), floats(3, seed=2)]),
        sample([floats(2, seed=i, dtype=F64) for i in range(11)]),
        sample([integers(3)]),
    ],
    "ClipByValue": [
        sample(ROWS, F32(-0.5), F32(0.5)),
        sample(ROWS, floats(3, 4, seed=1) - F32(3), floats(3, 4, seed=2) + F32(3)),
        sample(integers(5), np.int32(-2), np.int32(3)),
    ],
    "Select": [
        sample(ROWS > 0, ROWS, -ROWS),
        sample(np.array([True, False, True]), ROWS, -ROWS),
        sample(np.bool_(True), ROWS, -ROWS),
        sample(np.array([True, False, True]), integers(3), integers(3, seed=1)),
    ],
    "SelectV2": [
        sample(ROWS > 0, ROWS, F32(0)),
        sample(np.array([True, False, True, True]), ROWS, floats(3, 1)),
        sample(np.bool_(False), integers(4), integers(4, seed=1)),
    ],
    "Cast": [
        *(
            sample(np.array([0, 1.5, -1.5, 2.7, -0.0, 100.2], source), DstT=target)
            for source in FLOATS
            for target in (
                tf.int8,
                tf.int32,
                tf.int64,
                tf.bool,
                tf.float16,
                tf.bfloat16,
                tf.float32,
                tf.float64,
                tf.complex64,
            )
        ),
        *(
            sample(np.array([0, 1, 200, -3, 70000], source), DstT=target)
            for source in INTEGERS
            for target in (
                tf.int8,
                tf.uint8,
                tf.int16,
                tf.uint32,
                tf.int64,
                tf.bool,
                tf.float16,
                tf.float32,
            )
        ),
        sample(np.array([True, False]), DstT=tf.float32),
        sample(np.array([True, False]), DstT=tf.int64),
        sample(complexes(np.complex64), DstT=tf.float32),
        sample(complexes(np.complex64), DstT=tf.complex128),
        sample(np.array([2**24 + 1, 2**31 - 1]), DstT=tf.float32),
    ],
}

SAMPLES = {**UNARY, **BINARY, **GRADIENTS, **OTHERS}


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_what_tensorflow_does(op: str) -> None:
    compare(op, SAMPLES[op])


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_it_compiled(op: str) -> None:
    compare_all(op, SAMPLES[op])
