"""Comparison of two values of a type: the place of their first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tffc.language.types import FederatedType, SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import to_value

Tolerance: TypeAlias = Callable[[Sequence[np.ndarray], float], Any]
"""A function that returns the allowed distance of two floating-point numbers, given related values
and the machine epsilon."""

SUM_ROUNDINGS = 128
RESULT_ROUNDINGS = 4


def rounding_of_sums(addends: Sequence[np.ndarray], unit: float) -> Any:
    """Return how far sums of these addends may differ if they are added in another order."""
    return SUM_ROUNDINGS * unit * max(map(_largest, addends), default=0.0)


def rounding_of_results(results: Sequence[np.ndarray], unit: float) -> Any:
    """Return how far results computed from differently ordered sums may differ.

    That is the spread of these samples of such results, plus a few roundings.
    """
    if len({array.shape for array in results}) != 1:
        return 0.0
    with np.errstate(all="ignore"):
        spread = np.max(np.real(results), axis=0) - np.min(np.real(results), axis=0)
        rounding = RESULT_ROUNDINGS * unit * np.max(np.abs(results), axis=0)
    return _finite(spread) + _finite(rounding)


def _finite(array: Any) -> Any:
    return np.where(np.isfinite(array), array, 0.0)


def first_difference(
    actual: Any,
    expected: Any,
    type: Type,
    tolerance: Tolerance | None = None,
    among: Iterable[Any] = (),
) -> str | None:
    """Return the place of the first difference between two results of a type, or None.

    NaN equals NaN.  With a `tolerance`, floating-point numbers may differ by the distance that it
    returns for the corresponding numbers in the values `among`.
    """
    values = [to_value(value, type) for value in among]
    stack: list[tuple[Any, Any, list[Any], Type, str]] = [
        (to_value(actual, type, "what was found"), to_value(expected, type), values, type, "")
    ]
    while stack:
        one, other, near, kind, place = stack.pop()
        match kind:
            case StructType():
                steps = [f"[{i}]" if n is None else f".{n}" for i, n in enumerate(kind.names)]
                parts = zip(one, other, _columns(near, len(kind)), kind.types, steps, strict=True)
                stack.extend(reversed([(a, b, c, t, place + step) for a, b, c, t, step in parts]))
            case SequenceType():
                if len(one) != len(other):
                    return place or "the result"
                stack.extend(_members(one, other, near, kind.element, place))
            case FederatedType():
                one, other, *near = (value.members for value in (one, other, *near))
                if len(one) != len(other):
                    return place or "the result"
                if kind.all_equal:
                    stack.append((one[0], other[0], [v[0] for v in near], kind.member, place))
                else:
                    stack.extend(_members(one, other, near, kind.member, f"{place}@"))
            case TensorType():
                beside = [np.asarray(value) for value in near]
                if not _same(np.asarray(one), np.asarray(other), tolerance, beside):
                    return place or "the result"
            case _:
                if one != other:
                    return place or "the result"
    return None


def _columns(among: list[Any], size: int) -> list[list[Any]]:
    return [[value[index] for value in among if index < len(value)] for index in range(size)]


def _members(
    one: Any, other: Any, among: list[Any], type: Type, place: str
) -> list[tuple[Any, Any, list[Any], Type, str]]:
    parts = zip(one, other, _columns(among, len(one)), strict=True)
    members = [(a, b, c, type, f"{place}[{i}]") for i, (a, b, c) in enumerate(parts)]
    return members[::-1]


def _same(
    actual: np.ndarray,
    expected: np.ndarray,
    tolerance: Tolerance | None,
    among: Sequence[np.ndarray],
) -> bool:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if actual.dtype == object or actual.dtype.kind in "biuS":
        return bool(np.array_equal(actual, expected))
    # NumPy's own comparisons do not handle NaN in bfloat16.
    one, other, *values = (wide(array) for array in (actual, expected, *among))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if tolerance is not None:
        with np.errstate(all="ignore"):
            same |= np.abs(one - other) <= tolerance(values, unit_of(actual.dtype))
    return bool(np.all(same))


def unit_of(dtype: np.dtype) -> float:
    """Return the machine epsilon of a dtype: the distance from 1 to the next greater number."""
    describe: Any = ml_dtypes.finfo
    return float(describe(dtype).eps)


def wide(array: np.ndarray) -> np.ndarray:
    """Return floating-point numbers in the widest type that NumPy supports on all platforms."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _largest(array: np.ndarray) -> float:
    """Return the largest absolute value among the finite numbers."""
    sizes = np.abs(array)
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
