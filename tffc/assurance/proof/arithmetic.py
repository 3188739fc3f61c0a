"""The language's arithmetic as TensorFlow operations, leaf by leaf.

The two operands have the same structure, or the second is a scalar, which is cast to the element
type of each leaf of the first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tffc.assurance.proof.attributes import type_attribute
from tffc.assurance.proof.constants import FORMATS, filled
from tffc.assurance.proof.terms import Terms
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import Value, from_leaves, leaf_terms, leaves_of
from tffc.language.dtypes import DType
from tffc.language.types import TensorType, Type

WIDE = {1: DType.FLOAT32, 2: DType.FLOAT32, 4: DType.FLOAT64, 8: DType.FLOAT64}
"""The type of the quotient of two integers, by their size in bytes."""

FLOAT_BITS = {
    DType.FLOAT16: (0xFBFF, 0x7BFF, 0x3C00),
    DType.BFLOAT16: (0xFF7F, 0x7F7F, 0x3F80),
    DType.FLOAT32: (0xFF7FFFFF, 0x7F7FFFFF, 0x3F800000),
    DType.FLOAT64: (0xFFEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x3FF0000000000000),
}
"""The bit patterns of the smallest finite number, the largest finite number, and one."""

PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}


def binary(terms: Terms, op: str, first: Value, second: Value, types: tuple[Type, Type]) -> Value:
    """Apply an operation to each pair of leaves of two values of these types."""
    lefts, rights = leaf_terms(first), leaf_terms(second)
    kinds, others = leaves_of(types[0]), leaves_of(types[1])
    if len(others) == 1 and _tensor(others[0]).shape == () and isinstance(second, int):
        rights = [cast(terms, rights[0], others[0], _tensor(kind).element_type) for kind in kinds]
    elif [_dtype(kind) for kind in kinds] != [_dtype(kind) for kind in others]:
        raise Undecided("arithmetic on values of different structure")
    results = [
        operation(terms, op, (left, right), kind)
        for left, right, kind in zip(lefts, rights, kinds, strict=True)
    ]
    return from_leaves(types[0], results)


def quotient(terms: Terms, first: Value, second: Value, types: tuple[Type, Type]) -> Value:
    """Divide leaf by leaf; the quotient of two integers is a floating-point number."""
    kinds = leaves_of(types[0])
    if not any(_dtype(kind).is_integer for kind in kinds):
        return binary(terms, "RealDiv", first, second, types)
    # Only `generic_divide` takes integers, and its operands have one type.
    quotients: list[int] = []
    for left, right, kind in zip(leaf_terms(first), leaf_terms(second), kinds, strict=True):
        wide = WIDE[_dtype(kind).size] if _dtype(kind).is_integer else _dtype(kind)
        pair = (cast(terms, left, kind, wide), cast(terms, right, kind, wide))
        quotients.append(operation(terms, "RealDiv", pair, TensorType(wide, _tensor(kind).shape)))
    return from_leaves(types[0], quotients)


def operation(terms: Terms, op: str, inputs: tuple[int, ...], kind: Type) -> int:
    """Return an operation whose only attribute is the type of its inputs and output."""
    return terms.value((op, ("T", type_attribute(_tensor(kind)))), inputs)


def cast(terms: Terms, term: int, kind: Type, dtype: DType) -> int:
    """Convert a value to another element type."""
    source = _tensor(kind)
    if source.element_type is dtype:
        return term
    target = type_attribute(TensorType(dtype, source.shape))
    return terms.value(("Cast", ("DstT", target), ("SrcT", type_attribute(source))), (term,))


def zeros(terms: Terms, kind: Type) -> Value:
    """Return zeros of a type."""
    return from_leaves(kind, (leaf_zeros(terms, leaf) for leaf in leaves_of(kind)))


def leaf_zeros(terms: Terms, leaf: Type) -> int:
    """Return zeros of the type of a leaf."""
    return _filled(terms, leaf, lambda dtype: bytes(dtype.size))


def ones_like(terms: Terms, value: Value, kind: Type) -> Value:
    """Return ones in the shapes of a value's leaves; constants for leaves of known shape."""
    ones: list[int] = []
    for term, leaf in zip(leaf_terms(value), leaves_of(kind), strict=True):
        if _tensor(leaf).is_fully_defined():
            ones.append(_filled(terms, leaf, lambda dtype: number(dtype, 2)))
        else:
            ones.append(operation(terms, "OnesLike", (term,), leaf))
    return from_leaves(kind, ones)


def limits(terms: Terms, kind: Type, largest: bool) -> Value:
    """Return the largest or the smallest finite numbers of a type."""

    def limit(dtype: DType) -> bytes:
        return number(dtype, int(largest))

    return from_leaves(kind, (_filled(terms, leaf, limit) for leaf in leaves_of(kind)))


def number(dtype: DType, which: int) -> bytes:
    """Return the smallest number, the largest number or one of a type, as `which` is 0, 1 or 2."""
    if dtype in PARTS:
        return number(PARTS[dtype], which) + bytes(dtype.size // 2)
    if dtype in FLOAT_BITS:
        return FLOAT_BITS[dtype][which].to_bytes(dtype.size, "little")
    bits = 8 * dtype.size
    if which == 2 or dtype is DType.BOOL:
        return (1).to_bytes(dtype.size, "little")
    if dtype.kind == "uint":
        return (2**bits - 1 if which else 0).to_bytes(dtype.size, "little")
    least = -(2 ** (bits - 1))
    return struct.pack("<" + FORMATS[dtype.number][1], -1 - least if which else least)


def _filled(terms: Terms, leaf: Type, element: Callable[[DType], bytes]) -> int:
    """Return a constant of the type of a leaf, filled with an element."""
    kind = _tensor(leaf)
    shape, dtype = kind.shape, kind.element_type
    if shape is None or None in shape or dtype is DType.STRING:
        raise Undecided("zeros or ones of a type whose shape is not known", str(kind))
    sizes = tuple(size for size in shape if size is not None)
    return terms.value(("Const", filled(dtype.number, sizes, element(dtype))))


def _tensor(kind: Type) -> TensorType:
    if not isinstance(kind, TensorType):
        raise Undecided("arithmetic on what is not a tensor", str(kind))
    return kind


def _dtype(kind: Type) -> DType:
    return _tensor(kind).element_type
