"""Constant tensors from Python and NumPy values."""

from __future__ import annotations

import enum
import http
from typing import Any

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.language import Array, DType, TensorType, to_array
from tffc.language.array import infer_dtype, is_compatible
from tffc.support.errors import LanguageTypeError, LanguageValueError


def bfloat16(value: float) -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16(value)


class Colour(str, enum.Enum):  # noqa: UP042  # the older way is what is tried
    """A string whose `str` is not its content."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, DType.BOOL),
        (1, DType.INT32),
        (http.HTTPStatus.OK, DType.INT32),
        (2**31, DType.INT64),
        (-(2**31), DType.INT32),
        (0.5, DType.FLOAT32),
        (1j, DType.COMPLEX128),
        ("a", DType.STRING),
        (b"a", DType.STRING),
        (np.int64(1), DType.INT64),
        (np.float64(1), DType.FLOAT64),
        (np.array([1], np.uint8), DType.UINT8),
        (np.array(["a"]), DType.STRING),
        (np.array([b"a"], object), DType.STRING),
        (bfloat16(1), DType.BFLOAT16),
    ],
)
def test_inferred_type(value: object, dtype: DType) -> None:
    assert infer_dtype(value) is dtype


COMPATIBLE = [
    (300, DType.INT8, False),
    (-1, DType.UINT8, False),
    (255, DType.UINT8, True),
    (1e40, DType.FLOAT32, False),
    (0.1, DType.FLOAT16, True),
    (float("inf"), DType.FLOAT16, True),
    (1, DType.FLOAT32, False),
    (True, DType.INT32, False),
    (1, DType.BOOL, False),
    (0.5, DType.BFLOAT16, False),
    (bfloat16(0.5), DType.BFLOAT16, True),
    (np.array([1], np.int32), DType.INT64, True),
    (np.int64(1), DType.INT32, False),
    (np.float32(1), DType.FLOAT64, True),
    (np.float64(1), DType.FLOAT32, False),
    (1e300j, DType.COMPLEX64, False),
    (1j, DType.COMPLEX64, True),
    (1.5, DType.COMPLEX128, False),
    ("a", DType.STRING, True),
    ("a", DType.INT32, False),
]


@pytest.mark.parametrize(("value", "dtype", "expected"), COMPATIBLE)
def test_compatible(value: object, dtype: DType, expected: bool) -> None:
    assert is_compatible(value, dtype) is expected


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, None, Array(DType.INT32, (), b"\1\0\0\0")),
        (1, DType.INT16, Array(DType.INT16, (), b"\1\0")),
        (True, None, Array(DType.BOOL, (), b"\1")),
        (1.5, DType.FLOAT16, Array(DType.FLOAT16, (), b"\0\x3e")),
        ("é", None, Array(DType.STRING, (), (b"\xc3\xa9",))),
        (Colour.RED, None, Array(DType.STRING, (), (b"red",))),
        (b"a\0", None, Array(DType.STRING, (), (b"a\0",))),
        (np.array([["a"], ["é"]]), None, Array(DType.STRING, (2, 1), (b"a", b"\xc3\xa9"))),
        (np.array([[1, 2]], ">i2"), None, Array(DType.INT16, (1, 2), b"\1\0\2\0")),
        (np.array([[1, 2], [3, 4]], np.int8).T, None, Array(DType.INT8, (2, 2), b"\1\3\2\4")),
    ],
)
def test_array(value: object, dtype: DType | None, expected: Array) -> None:
    assert to_array(value, dtype) == expected


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.array([[1, 2], [3, 4]], np.uint64),
        np.zeros((0, 3), np.complex64),
        bfloat16(0.5),
        np.array([b"a", b"bc\0"], object),
        b"abc",
    ],
)
def test_array_returns_to_numpy(value: Any) -> None:
    array = to_array(value)
    returned = array.numpy()
    np.testing.assert_array_equal(returned, value)
    assert type(returned) is type(value)
    assert array.type == TensorType(array.dtype, np.shape(value))


def test_refusals() -> None:
    assert refusal(LanguageValueError, Array, DType.INT32, (2,), b"\0" * 4) == (
        "an array of int32 of shape [2] has 2 elements, which do not fit 4 bytes [E118]"
        "\n  help: give as many elements as the shape says, or another shape"
    )
    assert refusal(LanguageValueError, Array, DType.STRING, (), ()) == (
        "an array of str of shape [] has 1 elements, which do not fit 0 strings [E118]"
        "\n  help: give as many elements as the shape says, or another shape"
    )
    assert refusal(LanguageValueError, infer_dtype, 2**63) == (
        "the integer 9223372036854775808 does not fit 64 bits [E121]"
        "\n  help: use an integer from -2**63 to 2**63 - 1, or a float"
    )
    assert refusal(LanguageTypeError, to_array, [1]) == (
        "[1] is not a constant tensor [E120]\n  help: give a number, a string or an array of NumPy"
    )
    assert refusal(LanguageTypeError, to_array, None) == (
        "None is not a constant tensor [E120]\n  help: give a number, a string or an array of NumPy"
    )
    assert refusal(LanguageValueError, to_array, 1, DType.FLOAT32) == (
        "the constant 1 of type int32 does not fit float32 [E121]\n"
        "  help: convert it first, for example np.float32(...)"
    )
    assert refusal(LanguageValueError, to_array, 300, DType.INT8) == (
        "the constant 300 of type int32 does not fit int8 [E121]\n"
        "  help: int8 holds the integers from -128 to 127"
    )
    assert refusal(LanguageValueError, to_array, 1e300) == (
        "the constant 1e+300 does not fit float32 [E121]\n"
        "  help: float32 holds numbers up to 3.4e+38; np.float64 holds more"
    )
    assert refusal(LanguageValueError, to_array, np.float64(0.1), DType.FLOAT32) == (
        "the constant 0.1 of type float64 does not fit float32 [E121]\n"
        "  help: convert it first, for example np.float32(...)"
    )
    assert refusal(LanguageValueError, to_array, 1, DType.STRING) == (
        "the constant 1 of type int32 does not fit str [E121]"
    )
    assert refusal(LanguageValueError, Array, DType.INT8, (0,) * 33, b"") == (
        f"a constant cannot have the shape {[0] * 33}, which is too large [E139]"
    )
    assert refusal(LanguageValueError, Array, DType.BOOL, (0, -3), b"") == (
        "a constant cannot have the shape [0, -3], which has a negative size [E112]\n"
        "  help: give the number of elements in each dimension, from 0 up"
    )
    assert refusal(LanguageValueError, Array, DType.INT32, (2**61, 0), b"") == (
        "a constant cannot have the shape [2305843009213693952, 0], which is too large [E139]"
    )


@pytest.mark.filterwarnings("error")
def test_a_signalling_nan_is_cast_without_a_warning() -> None:
    value = np.frombuffer(bytes.fromhex("0100a07f"), np.float32)[0]
    assert np.isnan(to_array(value, DType.FLOAT64).numpy())
