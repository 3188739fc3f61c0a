"""Arithmetic on the values of a graph under construction.

Every function works leaf by leaf.  Two operands have the same structure, or the second is a scalar
that meets every leaf of the first; then it is cast to the leaf's element type.
"""

from __future__ import annotations

from collections.abc import Callable

from tffc.errors import GraphError, LanguageTypeError
from tffc.ir.dtypes import DType
from tffc.ir.types import TensorType, Type
from tffc.linking.attributes import type_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, from_tensors, leaf_types, map_tensors, tensors

ONES = {DType.FLOAT16: 0x3C00, DType.BFLOAT16: 0x3F80}
"""The bits of the number one, where constants are written as bits."""

FLOAT_LIMITS = {
    DType.FLOAT16: (0xFBFF, 0x7BFF),
    DType.BFLOAT16: (0xFF7F, 0x7F7F),
    DType.FLOAT32: (-3.4028234663852886e38, 3.4028234663852886e38),
    DType.FLOAT64: (-1.7976931348623157e308, 1.7976931348623157e308),
}
"""The smallest and largest finite numbers, as constants are written."""

QUOTIENTS = {
    DType.INT8: DType.FLOAT32,
    DType.INT16: DType.FLOAT32,
    DType.UINT8: DType.FLOAT32,
    DType.UINT16: DType.FLOAT32,
    DType.INT32: DType.FLOAT64,
    DType.INT64: DType.FLOAT64,
    DType.UINT32: DType.FLOAT64,
    DType.UINT64: DType.FLOAT64,
}
"""The floating-point type that holds the quotients of two integers of each type."""


def plus(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the sums.

    Raises:
      LanguageTypeError: a leaf is not numeric, or the structures differ.
    """
    return _pairwise(builder, "AddV2", first, second, _is_numeric)


def multiply(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the products; raises as `plus` does."""
    return _pairwise(builder, "Mul", first, second, _is_numeric)


def divide(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the quotients, which for integers are floating-point numbers; raises as `plus`
    does."""

    def quotient(dividend: Tensor, divisor: Tensor) -> Tensor:
        dtype = QUOTIENTS.get(_dtype(dividend))
        if dtype is not None:
            dividend, divisor = _cast(builder, dividend, dtype), _cast(builder, divisor, dtype)
        return _binary(builder, "RealDiv", dividend, divisor)

    pairs = iter(_pairs(builder, "RealDiv", first, second, _is_numeric))
    return map_tensors(first, lambda _: quotient(*next(pairs)))


def minimum(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the lesser numbers; raises as `plus` does, and for complex numbers."""
    return _pairwise(builder, "Minimum", first, second, _is_ordered)


def maximum(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the greater numbers; raises as `plus` does, and for complex numbers."""
    return _pairwise(builder, "Maximum", first, second, _is_ordered)


def floor_mod(builder: GraphBuilder, first: Operand, second: Operand) -> Operand:
    """Return the remainders, with the signs of the divisors; raises as `minimum` does."""
    return _pairwise(builder, "FloorMod", first, second, _is_ordered)


def cast(builder: GraphBuilder, operand: Operand, dtype: DType) -> Operand:
    """Return the values as numbers of another type.

    Raises:
      LanguageTypeError: a leaf is a string or a sequence.
    """
    for tensor in tensors(operand):
        _check("Cast", tensor.type, _is_number_or_bool)
    return map_tensors(operand, lambda tensor: _cast(builder, tensor, dtype))


def zeros(builder: GraphBuilder, kind: Type) -> Operand:
    """Return zeros of a type, which are false for booleans.

    Raises:
      LanguageTypeError: a leaf is a string or a sequence.
      GraphError: the shape of a leaf is not fully defined.
    """
    return _filled(builder, kind, "zeros", _is_number_or_bool, lambda _: 0)


def ones(builder: GraphBuilder, kind: Type) -> Operand:
    """Return ones of a type; raises as `zeros` does."""
    return _filled(builder, kind, "ones", _is_number_or_bool, lambda dtype: ONES.get(dtype, 1))


def dtype_limits(builder: GraphBuilder, kind: Type, largest: bool) -> Operand:
    """Return the largest or the smallest finite numbers of a type.

    Raises:
      LanguageTypeError: a leaf is neither an integer nor a floating-point number.
      GraphError: the shape of a leaf is not fully defined.
    """
    return _filled(builder, kind, "limits", _is_ordered, lambda dtype: _limits(dtype)[largest])


def _pairwise(
    builder: GraphBuilder,
    op: str,
    first: Operand,
    second: Operand,
    allowed: Callable[[DType], bool],
) -> Operand:
    pairs = iter(_pairs(builder, op, first, second, allowed))
    return map_tensors(first, lambda _: _binary(builder, op, *next(pairs)))


def _pairs(
    builder: GraphBuilder,
    op: str,
    first: Operand,
    second: Operand,
    allowed: Callable[[DType], bool],
) -> list[tuple[Tensor, Tensor]]:
    """Return the leaves of the first operand, each with what meets it."""
    for tensor in (*tensors(first), *tensors(second)):
        _check(op, tensor.type, allowed)
    if isinstance(second, Tensor) and _is_scalar(second.type):
        return [(tensor, _cast(builder, second, _dtype(tensor))) for tensor in tensors(first)]
    found: list[tuple[Tensor, Tensor]] = []
    stack = [(first, second)]
    while stack:
        left, right = stack.pop()
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            if not _fits(left.type, right.type):
                raise LanguageTypeError(
                    "E314",
                    f"{op} cannot combine a `{left.type}` with a `{right.type}`",
                    help="give both the same element type and shape, with tf.cast and tf.reshape",
                )
            found.append((left, right))
        elif isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
            stack.extend(zip(reversed(left), reversed(right), strict=True))
        else:
            raise LanguageTypeError(
                "E315",
                f"{op} cannot combine {_describe(left)} with {_describe(right)}",
                help="give both one structure: two tensors, or two structs of as many elements",
            )
    return found


def _binary(builder: GraphBuilder, op: str, first: Tensor, second: Tensor) -> Tensor:
    return builder.add_typed(op, [first, second])


def _cast(builder: GraphBuilder, tensor: Tensor, dtype: DType) -> Tensor:
    assert isinstance(tensor.type, TensorType)
    if tensor.type.element_type is dtype:
        return tensor
    kind = TensorType(dtype, tensor.type.shape)
    attributes = {"SrcT": type_attribute(tensor.type), "DstT": type_attribute(kind)}
    return builder.add("Cast", [tensor], attributes, [kind])[0]


def _filled(
    builder: GraphBuilder,
    kind: Type,
    what: str,
    allowed: Callable[[DType], bool],
    number: Callable[[DType], float],
) -> Operand:
    made: list[Tensor] = []
    for leaf in leaf_types(kind):
        _check(what, leaf, allowed)
        assert isinstance(leaf, TensorType)
        if not leaf.is_fully_defined():
            raise GraphError(
                "E316",
                f"there are no {what} of type `{leaf}`, whose shape is not fully defined",
                help="declare the type with every size",
            )
        made.append(builder.filled(leaf, number(leaf.element_type)))
    return from_tensors(kind, made)


def _limits(dtype: DType) -> tuple[float, float]:
    """Return the smallest and the largest number, as constants are written."""
    bits = 8 * dtype.size
    if dtype.kind == "uint":
        return (0, 2**bits - 1)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_integer else FLOAT_LIMITS[dtype]


def _check(what: str, kind: Type, allowed: Callable[[DType], bool]) -> None:
    if not isinstance(kind, TensorType) or not allowed(kind.element_type):
        raise LanguageTypeError(
            "E317",
            f"there is no arithmetic ({what}) on a `{kind}`",
            help="convert it to numbers before, in a TensorFlow computation; tf.cast makes numbers"
            " of booleans",
        )


def _is_numeric(dtype: DType) -> bool:
    return dtype.is_numeric


def _is_number_or_bool(dtype: DType) -> bool:
    return dtype is not DType.STRING


def _is_ordered(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_floating


def _is_scalar(kind: Type) -> bool:
    return isinstance(kind, TensorType) and kind.is_scalar()


def _dtype(tensor: Tensor) -> DType:
    assert isinstance(tensor.type, TensorType)
    return tensor.type.element_type


def _fits(first: Type, second: Type) -> bool:
    return first.is_assignable_from(second) or second.is_assignable_from(first)


def _describe(operand: Operand) -> str:
    if isinstance(operand, Tensor):
        return f"a `{operand.type}`"
    return f"a struct of {len(operand)}"


class GraphArithmetic:
    """Arithmetic in one graph; see `tffc.linking.aggregations.Arithmetic`."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def zeros(self, kind: Type) -> Operand:
        return zeros(self.builder, kind)

    def ones(self, value: Operand, kind: Type) -> Operand:
        return map_tensors(value, lambda tensor: self.builder.add_typed("OnesLike", [tensor]))

    def dtype_limits(self, kind: Type, largest: bool) -> Operand:
        return dtype_limits(self.builder, kind, largest)

    def plus(self, first: Operand, second: Operand) -> Operand:
        return plus(self.builder, first, second)

    def multiply(self, first: Operand, second: Operand) -> Operand:
        return multiply(self.builder, first, second)

    def divide(self, first: Operand, second: Operand) -> Operand:
        return divide(self.builder, first, second)

    def minimum(self, first: Operand, second: Operand) -> Operand:
        return minimum(self.builder, first, second)

    def maximum(self, first: Operand, second: Operand) -> Operand:
        return maximum(self.builder, first, second)
