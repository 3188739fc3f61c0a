"""Arithmetic on values, leaf by leaf, with the same results as TensorFlow.

Integers wrap around and quotients of integers are floating-point numbers; otherwise element types
are kept.  The two operands have the same structure, or the second is a scalar that is applied to
every leaf of the first after a cast to the leaf's element type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import FederatedType, TensorType, Type
from tffc.language.values.concrete import Federated, flatten, unflatten
from tffc.language.values.refusals import division_by_zero, not_numbers, nothing_to_start_from

LeafOperation = Callable[[Any, Any, TensorType], Any]


def plus(first: Any, second: Any, type: Type, second_type: Type | None = None) -> Any:
    """Return the sums of values of `type`.

    Raises:
      ExecutionError: a leaf is not a tensor of numbers.
    """
    return combine(lambda x, y, _: np.add(x, y), first, second, type, second_type)


def times(first: Any, second: Any, type: Type, second_type: Type | None = None) -> Any:
    """Return the products; raises as `plus` does."""
    return combine(lambda x, y, _: np.multiply(x, y), first, second, type, second_type)


def quotient(first: Any, second: Any, type: Type, second_type: Type | None = None) -> Any:
    """Return the quotients; raises as `plus` does."""

    def divide(x: Any, y: Any, leaf: TensorType) -> Any:
        if not leaf.element_type.is_integer:
            return np.true_divide(x, y)
        wide = DType.FLOAT64 if leaf.element_type.size >= 4 else DType.FLOAT32
        return np.true_divide(_cast(x, wide), _cast(y, wide))

    return combine(divide, first, second, type, second_type)


def sum_modulo(values: Iterable[Any], modulus: Any, type: Type, modulus_type: Type) -> Any:
    """Return the remainders of the sums of values of `type`, with the signs of the divisors.

    Raises:
      ExecutionError: a leaf is not a tensor of numbers, or a divisor is 0.
    """

    def modulo(addends: Any, y: Any, leaf: TensorType) -> Any:
        if leaf.element_type.is_integer and not np.all(y):
            raise division_by_zero()
        # Python integers do not wrap around before the remainder is taken.
        total = sum(np.asarray(addend).astype(object) for addend in addends)
        return _cast(total % np.asarray(y).astype(object), leaf.element_type)

    addends = unflatten(zip(*(flatten(value, type) for value in values), strict=True), type)
    return combine(modulo, addends, modulus, type, modulus_type)


def minimum(first: Any, second: Any, type: Type) -> Any:
    """Return the smaller numbers; raises as `plus` does."""
    return combine(lambda x, y, _: np.minimum(x, y), first, second, type)


def maximum(first: Any, second: Any, type: Type) -> Any:
    """Return the larger numbers; raises as `plus` does."""
    return combine(lambda x, y, _: np.maximum(x, y), first, second, type)


def combine(
    operation: LeafOperation, first: Any, second: Any, type: Type, second_type: Type | None = None
) -> Any:
    """Apply `operation` to each pair of leaves of two values; federated values are combined by
    member."""
    lefts, kinds = flatten(first, type), leaves(type)
    rights, right_kinds = flatten(second, second_type or type), leaves(second_type or type)
    if len(rights) == 1 and len(lefts) != 1:
        rights, right_kinds = rights * len(lefts), right_kinds * len(lefts)
    pairs = zip(lefts, kinds, rights, right_kinds, strict=True)
    return unflatten((_combine_leaf(operation, *pair) for pair in pairs), type)


def _combine_leaf(operation: LeafOperation, x: Any, type: Type, y: Any, other: Type) -> Any:
    if isinstance(type, FederatedType) and isinstance(other, FederatedType):
        members = zip(x.members, y.members, strict=True)
        combined = (combine(operation, a, b, type.member, other.member) for a, b in members)
        return Federated(tuple(combined), x.all_equal)
    leaf, number = _numeric(type), _numeric(other)
    with np.errstate(all="ignore"):
        return operation(
            x, y if leaf.element_type is number.element_type else _cast(y, leaf.element_type), leaf
        )


def _numeric(type: Type) -> TensorType:
    if isinstance(type, TensorType) and type.element_type.is_numeric:
        return type
    raise not_numbers(type)


def zeros(type: Type) -> Any:
    """Return zeros of `type`.

    Raises:
      ExecutionError: a leaf is not a tensor of numbers, or its shape is not known.
    """
    return _filled(type, lambda dtype: 0)


def largest(type: Type) -> Any:
    """Return the largest finite numbers of `type`; raises as `zeros` does."""
    return _filled(type, lambda dtype: _limits(dtype).max)


def smallest(type: Type) -> Any:
    """Return the smallest finite numbers of `type`; raises as `zeros` does."""
    return _filled(type, lambda dtype: _limits(dtype).min)


def ones_like(value: Any, type: Type) -> Any:
    """Return ones in the shapes of a value; raises as `plus` does."""
    pairs = zip(flatten(value, type), leaves(type), strict=True)
    return unflatten(
        (np.ones_like(part, _numeric(leaf).element_type.dtype)[()] for part, leaf in pairs), type
    )


def _filled(type: Type, number: Callable[[DType], Any]) -> Any:
    return unflatten(_fill(type, number), type)


def _fill(type: Type, number: Callable[[DType], Any]) -> Iterator[Any]:
    for part in leaves(type):
        if isinstance(part, FederatedType):
            yield Federated.everywhere(_filled(part.member, number))
            continue
        leaf = _numeric(part)
        if not leaf.is_fully_defined():
            raise nothing_to_start_from(type, leaf)
        sizes = [size for size in leaf.shape or () if size is not None]
        yield np.full(sizes, number(leaf.element_type), leaf.element_type.dtype)[()]


def _limits(dtype: DType) -> Any:
    limits: Any = np.iinfo if dtype.is_integer else ml_dtypes.finfo
    return limits(dtype.dtype)


def _cast(value: Any, dtype: DType) -> Any:
    return np.asarray(value).astype(dtype.dtype)[()]
