"""Arithmetic on the values of a graph under construction.

All of it is leaf by leaf.  Two operands have the same structure, or the second is a scalar that
meets every leaf of the first; then it is cast to the leaf's element type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tffc.language.dtypes import DType
from tffc.language.types import TensorType, Type
from tffc.linking.attributes import type_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, from_leaves, leaf_types, matched, rebuild, tensors
from tffc.support.errors import GraphError, LanguageTypeError

ORDERED = ("int", "uint", "float")
NUMERIC = (*ORDERED, "complex")
CASTABLE = (*NUMERIC, "bool")
"""The kinds of element types that operations take; see `DType.kind`."""

ONES = {DType.FLOAT16: 0x3C00, DType.BFLOAT16: 0x3F80}
"""The bits of the number one, where constants are written as bits."""

FLOAT_LIMITS = {
    DType.FLOAT16: (0xFBFF, 0x7BFF),
    DType.BFLOAT16: (0xFF7F, 0x7F7F),
    DType.FLOAT32: (-3.4028234663852886e38, 3.4028234663852886e38),
    DType.FLOAT64: (-1.7976931348623157e308, 1.7976931348623157e308),
}
"""The smallest and largest finite numbers, as constants are written."""


class GraphArithmetic:
    """Arithmetic in one graph, leaf by leaf; see `tffc.linking.aggregations.Arithmetic`."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def plus(self, first: Operand, second: Operand) -> Operand:
        """Return the sums.

        Raises:
          LanguageTypeError: a leaf is not numeric, or the structures differ.
        """
        return self._combine("AddV2", first, second, NUMERIC)

    def minus(self, first: Operand, second: Operand) -> Operand:
        """Return the differences; raises as `plus` does."""
        return self._combine("Sub", first, second, NUMERIC)

    def multiply(self, first: Operand, second: Operand) -> Operand:
        """Return the products; raises as `plus` does."""
        return self._combine("Mul", first, second, NUMERIC)

    def divide(self, first: Operand, second: Operand) -> Operand:
        """Return the quotients, which for integers are floating-point numbers; raises as `plus`
        does."""
        return self._combine("RealDiv", first, second, NUMERIC, _quotient_type)

    def minimum(self, first: Operand, second: Operand) -> Operand:
        """Return the lesser numbers; raises as `plus` does, and for complex numbers."""
        return self._combine("Minimum", first, second, ORDERED)

    def maximum(self, first: Operand, second: Operand) -> Operand:
        """Return the greater numbers; raises as `plus` does, and for complex numbers."""
        return self._combine("Maximum", first, second, ORDERED)

    def floor_mod(self, first: Operand, second: Operand) -> Operand:
        """Return the remainders, with the signs of the divisors; raises as `minimum` does."""
        return self._combine("FloorMod", first, second, ORDERED)

    def cast(self, operand: Operand, dtype: DType) -> Operand:
        """Return the values as numbers of another type.

        Raises:
          LanguageTypeError: a leaf is a string or a sequence.
        """
        for tensor in tensors(operand):
            _check("Cast", tensor.type, CASTABLE)
        return rebuild(operand, lambda tensor: self._cast(tensor, dtype))

    def zeros(self, kind: Type) -> Operand:
        """Return zeros of a type, which are false for booleans.

        Raises:
          LanguageTypeError: a leaf is a string or a sequence.
          GraphError: the shape of a leaf is not fully defined.
        """
        return self._filled(kind, "zeros", CASTABLE, lambda _: 0)

    def ones(self, value: Operand, kind: Type) -> Operand:
        """Return ones of the shapes of a value."""
        return rebuild(value, lambda tensor: self.builder.add_typed("OnesLike", [tensor]))

    def constant_ones(self, kind: Type) -> Operand:
        """Return ones of a type; raises as `zeros` does."""
        return self._filled(kind, "ones", CASTABLE, lambda dtype: ONES.get(dtype, 1))

    def dtype_limits(self, kind: Type, largest: bool) -> Operand:
        """Return the largest or the smallest finite numbers of a type.

        Raises:
          LanguageTypeError: a leaf is neither an integer nor a floating-point number.
          GraphError: the shape of a leaf is not fully defined.
        """
        return self._filled(kind, "limits", ORDERED, lambda dtype: _limits(dtype)[largest])

    def _combine(
        self,
        op: str,
        first: Operand,
        second: Operand,
        allowed: Collection[str],
        computed_in: Callable[[DType], DType] = lambda dtype: dtype,
    ) -> Operand:
        """Return the results of an operation on each leaf of the first operand and its counterpart
        in the second, both cast to the element type of `computed_in`."""
        for tensor in (*tensors(first), *tensors(second)):
            _check(op, tensor.type, allowed)
        match second:
            case Tensor(type=TensorType(shape=())):
                pairs = [(leaf, self._cast(second, _dtype(leaf))) for leaf in tensors(first)]
            case _:
                pairs = _pairs(op, first, second)
        results: list[Tensor] = []
        for left, right in pairs:
            dtype = computed_in(_dtype(left))
            operands = [self._cast(left, dtype), self._cast(right, dtype)]
            results.append(self.builder.add_typed(op, operands))
        return from_leaves(first, results)

    def _cast(self, tensor: Tensor, dtype: DType) -> Tensor:
        if _dtype(tensor) is dtype:
            return tensor
        assert isinstance(tensor.type, TensorType)
        kind = TensorType(dtype, tensor.type.shape)
        attributes = {"SrcT": type_attribute(tensor.type), "DstT": type_attribute(kind)}
        return self.builder.add("Cast", [tensor], attributes, [kind])[0]

    def _filled(
        self,
        kind: Type,
        what: str,
        allowed: Collection[str],
        number: Callable[[DType], float],
    ) -> Operand:
        tensors: list[Tensor] = []
        for leaf in leaf_types(kind):
            _check(what, leaf, allowed)
            assert isinstance(leaf, TensorType)
            if not leaf.is_fully_defined():
                raise GraphError(
                    "E316",
                    f"there are no {what} of type `{leaf}`, whose shape is not fully defined",
                    help="declare the type with every size",
                )
            tensors.append(self.builder.filled(leaf, number(leaf.element_type)))
        return from_leaves(kind, tensors)


def _pairs(op: str, first: Operand, second: Operand) -> list[tuple[Tensor, Tensor]]:
    """Return the pairs of leaves at the same places of two operands.

    Raises:
      LanguageTypeError: the structures differ, or the types of two leaves.
    """
    pairs = list(matched(first, second))
    for left, right in pairs:
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            raise LanguageTypeError(
                "E314",
                f"{op} cannot combine {_describe(left)} with {_describe(right)}",
                help="give both one structure: two tensors, or two structs of as many elements",
            )
        if not (
            left.type.is_assignable_from(right.type) or right.type.is_assignable_from(left.type)
        ):
            raise LanguageTypeError(
                "E314",
                f"{op} cannot combine a `{left.type}` with a `{right.type}`",
                help="give both the same element type and shape, with tf.cast and tf.reshape",
            )
    return pairs


def _quotient_type(dtype: DType) -> DType:
    """Return the element type of quotients, which holds those of two integers."""
    if not dtype.is_integer:
        return dtype
    return DType.FLOAT64 if dtype.size >= DType.INT32.size else DType.FLOAT32


def _limits(dtype: DType) -> tuple[float, float]:
    """Return the smallest and the largest number, as constants are written."""
    bits = 8 * dtype.size
    if dtype.kind == "uint":
        return (0, 2**bits - 1)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_integer else FLOAT_LIMITS[dtype]


def _check(what: str, kind: Type, allowed: Collection[str]) -> None:
    if not isinstance(kind, TensorType) or kind.element_type.kind not in allowed:
        raise LanguageTypeError(
            "E314",
            f"there is no arithmetic ({what}) on a `{kind}`",
            help="convert it to numbers before, in a TensorFlow computation; tf.cast makes numbers"
            " of booleans",
        )


def _dtype(tensor: Tensor) -> DType:
    assert isinstance(tensor.type, TensorType)
    return tensor.type.element_type


def _describe(operand: Operand) -> str:
    if isinstance(operand, Tensor):
        return f"a `{operand.type}`"
    return f"a struct of {len(operand)}"
