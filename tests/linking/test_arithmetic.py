"""Arithmetic in graphs, run by TensorFlow, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.linking.sections import link, run, struct
from tffc.language.dtypes import DType
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.support.errors import GraphError, LanguageTypeError

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
NUMERIC = [dtype for dtype in DType if dtype.is_numeric]
ORDERED = [dtype for dtype in DType if dtype.is_integer or dtype.is_floating]


def vector(dtype: DType) -> TensorType:
    return TensorType(dtype, (3,))


def value(dtype: DType, *numbers: float) -> Any:
    return np.array(numbers).astype(dtype.dtype)


def binary(function: Callable[..., Any], dtype: DType, result: DType, *numbers: Any) -> Any:
    parameter = struct(vector(dtype), vector(dtype))
    linked = link(parameter, vector(result), lambda b, p: function(GraphArithmetic(b), *p))
    return run(linked, tuple(value(dtype, *triple) for triple in numbers))


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_plus_and_multiply(dtype: DType) -> None:
    numbers = (1, 2, 3), (4, 0, 5)
    np.testing.assert_array_equal(
        binary(GraphArithmetic.plus, dtype, dtype, *numbers), value(dtype, 5, 2, 8)
    )
    np.testing.assert_array_equal(
        binary(GraphArithmetic.multiply, dtype, dtype, *numbers), value(dtype, 4, 0, 15)
    )


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_divide(dtype: DType) -> None:
    result = dtype
    if dtype.is_integer:
        result = DType.FLOAT64 if dtype.size >= 4 else DType.FLOAT32
    found = binary(GraphArithmetic.divide, dtype, result, (1, 3, 8), (2, 4, 2))
    assert found.dtype == result.dtype
    np.testing.assert_array_equal(found, value(result, 0.5, 0.75, 4))


@pytest.mark.parametrize("dtype", ORDERED, ids=str)
def test_minimum_maximum_and_floor_mod(dtype: DType) -> None:
    numbers = (1, 7, 3), (4, 2, 3)
    for function, expected in (
        (GraphArithmetic.minimum, (1, 2, 3)),
        (GraphArithmetic.maximum, (4, 7, 3)),
        (GraphArithmetic.floor_mod, (1, 1, 0)),
    ):
        np.testing.assert_array_equal(
            binary(function, dtype, dtype, *numbers), value(dtype, *expected)
        )


def test_floor_mod_has_the_sign_of_the_divisor() -> None:
    found = binary(GraphArithmetic.floor_mod, DType.INT32, DType.INT32, (-7, 7, -7), (5, -5, -5))
    assert found.tolist() == [3, -3, -2]


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING], ids=str)
def test_zeros_and_ones(dtype: DType) -> None:
    kind = struct(TensorType(dtype), TensorType(dtype, (2, 2)), TensorType(dtype, (0,)))
    linked = link(
        None,
        struct(kind, kind),
        lambda b, _: (GraphArithmetic(b).zeros(kind), GraphArithmetic(b).constant_ones(kind)),
    )
    for number, found in enumerate(run(linked)):
        assert [part.shape for part in found] == [(), (2, 2), (0,)]
        for part in found:
            assert part.dtype == dtype.dtype
            np.testing.assert_array_equal(part, np.full(part.shape, number).astype(dtype.dtype))


@pytest.mark.parametrize("dtype", ORDERED, ids=str)
def test_limits(dtype: DType) -> None:
    import ml_dtypes

    info: Any = np.iinfo(dtype.dtype) if dtype.is_integer else ml_dtypes.finfo(dtype.dtype)
    kind = TensorType(dtype, (2,))
    linked = link(
        None,
        struct(kind, kind),
        lambda b, _: tuple(
            GraphArithmetic(b).dtype_limits(kind, largest) for largest in (False, True)
        ),
    )
    smallest, largest = run(linked)
    assert smallest.tolist() == [info.min] * 2
    assert largest.tolist() == [info.max] * 2


def test_structures_are_combined_leaf_by_leaf() -> None:
    kind = struct(("a", INT), ("b", struct(FLOAT, struct())))
    linked = link(struct(kind, kind), kind, lambda b, p: GraphArithmetic(b).plus(*p))
    assert run(linked, ((1, (2.5, ())), (10, (20.0, ())))) == (11, (22.5, ()))


def test_a_scalar_meets_every_leaf_and_is_cast() -> None:
    kind = struct(TensorType(DType.FLOAT32, (2,)), TensorType(DType.FLOAT64, (None,)), INT)
    weighted = link(struct(kind, INT), kind, lambda b, p: GraphArithmetic(b).multiply(*p))
    first, second, third = run(weighted, ((np.array([1, 2], np.float32), np.array([3.0]), 4), 2))
    assert (first.tolist(), second.tolist(), third) == ([2, 4], [6], 8)
    assert (first.dtype, second.dtype) == (np.float32, np.float64)


def test_quotients_of_a_struct_and_a_scalar() -> None:
    kind = struct(FLOAT, INT)
    result = struct(FLOAT, TensorType(DType.FLOAT64))
    linked = link(struct(kind, INT), result, lambda b, p: GraphArithmetic(b).divide(*p))
    assert run(linked, ((3.0, 5), 2)) == (1.5, 2.5)


def test_a_quotient_by_zero_is_not_a_number() -> None:
    linked = link(struct(FLOAT, FLOAT), FLOAT, lambda b, p: GraphArithmetic(b).divide(*p))
    assert np.isnan(run(linked, (0.0, 0.0)))


def test_cast() -> None:
    kind = struct(INT, TensorType(DType.BOOL, (2,)))
    result = struct(FLOAT, TensorType(DType.FLOAT32, (2,)))
    linked = link(kind, result, lambda b, p: GraphArithmetic(b).cast(p, DType.FLOAT32))
    number, flags = run(linked, (3, [True, False]))
    assert (number, flags.tolist()) == (3.0, [1.0, 0.0])


def test_a_cast_to_the_same_type_is_nothing() -> None:
    builder = GraphBuilder()
    value = builder.parameter(INT)
    assert GraphArithmetic(builder).cast(value, DType.INT32) is value


@pytest.mark.parametrize(
    ("first", "second", "code", "message"),
    [
        (
            INT,
            TensorType(DType.INT64, (2,)),
            "E314",
            "AddV2 cannot combine a `int32` with a `int64[2]`",
        ),
        (
            TensorType(DType.INT32, (2,)),
            TensorType(DType.INT32, (3,)),
            "E314",
            "AddV2 cannot combine a `int32[2]` with a `int32[3]`",
        ),
        (
            struct(INT, INT),
            struct(INT),
            "E314",
            "AddV2 cannot combine a struct of 2 with a struct of 1",
        ),
        (
            INT,
            struct(INT),
            "E314",
            "AddV2 cannot combine a `int32` with a struct of 1",
        ),
        (
            TensorType(DType.BOOL),
            TensorType(DType.BOOL),
            "E314",
            "there is no arithmetic (AddV2) on a `bool`",
        ),
        (
            struct(SequenceType(INT)),
            struct(INT),
            "E314",
            "there is no arithmetic (AddV2) on a `int32*`",
        ),
    ],
)
def test_operands_that_cannot_be_combined(
    first: Type, second: Type, code: str, message: str
) -> None:
    builder = GraphBuilder()
    given: Any = builder.parameter(StructType([first, second]))
    with pytest.raises(LanguageTypeError) as caught:
        GraphArithmetic(builder).plus(*given)
    assert caught.value.code == code
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (GraphArithmetic.minimum, DType.BOOL),
        (GraphArithmetic.maximum, DType.COMPLEX64),
        (GraphArithmetic.floor_mod, DType.STRING),
        (GraphArithmetic.divide, DType.STRING),
        (GraphArithmetic.multiply, DType.BOOL),
    ],
)
def test_types_without_arithmetic(function: Callable[..., Any], dtype: DType) -> None:
    builder = GraphBuilder()
    given: Any = builder.parameter(struct(TensorType(dtype), TensorType(dtype)))
    with pytest.raises(LanguageTypeError, match=f"on a `{dtype}`"):
        function(GraphArithmetic(builder), *given)


def test_constants_of_no_definite_shape() -> None:
    with pytest.raises(GraphError) as caught:
        GraphArithmetic(GraphBuilder()).zeros(struct(TensorType(DType.FLOAT32, (None,))))
    assert caught.value.code == "E316"
    assert caught.value.message == (
        "there are no zeros of type `float32[?]`, whose shape is not fully defined"
    )


@pytest.mark.parametrize("kind", [TensorType(DType.STRING), SequenceType(INT)], ids=str)
def test_constants_of_what_is_no_number(kind: Type) -> None:
    with pytest.raises(LanguageTypeError, match="there is no arithmetic"):
        GraphArithmetic(GraphBuilder()).constant_ones(kind)
    with pytest.raises(LanguageTypeError, match="there is no arithmetic"):
        GraphArithmetic(GraphBuilder()).dtype_limits(kind, largest=True)
