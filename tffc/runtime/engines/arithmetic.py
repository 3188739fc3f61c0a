"""NumPy arithmetic on values, leaf by leaf, with the same results as TensorFlow.

Integers wrap around.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tffc.language.array import infer_dtype
from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import TensorType, Type
from tffc.language.values.concrete import unflatten
from tffc.language.values.refusals import mean_of_integers, not_numbers, nothing_to_start_from
from tffc.linking.operand import rebuild

NOT_NUMBERS = frozenset("bOSU")
"""The `kind` codes of NumPy's boolean, string and object types."""


class ValueArithmetic:
    """The arithmetic of aggregations on values in memory; see
    `tffc.linking.aggregations.Arithmetic`.

    Raises:
      ExecutionError: a leaf is not a numeric tensor, or the shape of zeros or limits is unknown.
    """

    def zeros(self, kind: Type) -> Any:
        return _filled(kind, lambda dtype: 0)

    def ones(self, value: Any, kind: Type) -> Any:
        return rebuild(value, lambda leaf: np.ones_like(_number(leaf))[()])

    def dtype_limits(self, kind: Type, largest: bool) -> Any:
        return _filled(kind, lambda dtype: _limits(dtype).max if largest else _limits(dtype).min)

    def plus(self, first: Any, second: Any) -> Any:
        return _pairwise(np.add, first, second)

    def multiply(self, first: Any, second: Any) -> Any:
        return _pairwise(np.multiply, first, second)

    def divide(self, first: Any, second: Any) -> Any:
        return _pairwise(_quotient, first, second)

    def minimum(self, first: Any, second: Any) -> Any:
        return _pairwise(np.minimum, first, second)

    def maximum(self, first: Any, second: Any) -> Any:
        return _pairwise(np.maximum, first, second)


def _pairwise(operation: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    """Apply an operation to corresponding leaves of two values."""
    others = iter(_leaves(second)) if isinstance(second, tuple) else itertools.repeat(second)

    def combine(leaf: Any) -> Any:
        number, other = _number(leaf), _number(next(others))
        return operation(number, other.astype(number.dtype, copy=False))[()]

    with np.errstate(all="ignore"):
        return rebuild(first, combine)


def _quotient(first: Any, second: Any) -> Any:
    if first.dtype.kind in "iu":
        raise mean_of_integers(_type_of(first))
    return np.true_divide(first, second)


def _number(leaf: Any) -> Any:
    """Return a leaf as a NumPy value if it is numeric; raise an error otherwise."""
    array = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    if array.dtype.kind in NOT_NUMBERS:
        raise not_numbers(_type_of(leaf))
    return array


def _type_of(leaf: Any) -> TensorType:
    return TensorType(infer_dtype(leaf), np.shape(leaf))


def _leaves(value: Any) -> list[Any]:
    parts: list[Any] = []
    rebuild(value, parts.append)
    return parts


def _filled(kind: Type, number: Callable[[DType], Any]) -> Any:
    def fill(leaf: Type) -> Any:
        if not isinstance(leaf, TensorType) or not leaf.element_type.is_numeric:
            raise not_numbers(leaf)
        if not leaf.is_fully_defined():
            raise nothing_to_start_from(kind, leaf)
        shape = [size for size in leaf.shape or () if size is not None]
        return np.full(shape, number(leaf.element_type), leaf.element_type.dtype)[()]

    return unflatten(map(fill, leaves(kind)), kind)


def _limits(dtype: DType) -> Any:
    describe: Any = np.iinfo if dtype.is_integer else ml_dtypes.finfo
    return describe(dtype.dtype)
