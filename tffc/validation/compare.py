"""Whether two values of a type are the same, and if not, where they first differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.execution.values import Federated, to_value
from tffc.ir.types import FederatedType, SequenceType, StructType, TensorType, Type

ROUNDINGS = 128
"""How many roundings of the largest number that is added two sums in another order may be apart."""


def first_difference(
    found: Any, expected: Any, type: Type, *, sums_of: Sequence[Any] | None = None
) -> str | None:
    """The place of the first difference between two results of a type, or None.

    NaN equals NaN.  If the two are sums of the same values in another order, `sums_of` has these
    values: then floating-point numbers may differ by what rounding can make of them.
    """
    addends = [to_value(value, type) for value in sums_of or ()]
    stack: list[tuple[Any, Any, list[Any], Type, str]] = [
        (to_value(found, type, "what was found"), to_value(expected, type), addends, type, "")
    ]
    while stack:
        one, other, among, kind, place = stack.pop()
        match kind:
            case StructType():
                steps = [f"[{i}]" if n is None else f".{n}" for i, n in enumerate(kind.names)]
                parts = zip(one, other, _columns(among, len(kind)), kind.types, steps, strict=True)
                stack.extend(reversed([(a, b, c, t, place + step) for a, b, c, t, step in parts]))
            case SequenceType():
                if len(one) != len(other):
                    return place or "the result"
                stack.extend(_members(one, other, among, kind.element, place))
            case FederatedType():
                one, other = _placed(one), _placed(other)
                if len(one) != len(other):
                    return place or "the result"
                among = [_placed(value) for value in among]
                inner = place if kind.all_equal else f"{place}@"
                single = kind.all_equal
                stack.extend(_members(one, other, among, kind.member, inner, single=single))
            case TensorType():
                scale = None if sums_of is None else [np.asarray(value) for value in among]
                if not _same(np.asarray(one), np.asarray(other), scale):
                    return place or "the result"
            case _:
                if one != other:
                    return place or "the result"
    return None


def _placed(value: Federated) -> tuple[Any, ...]:
    return value.members


def _columns(among: list[Any], size: int) -> list[list[Any]]:
    return [[value[index] for value in among if index < len(value)] for index in range(size)]


def _members(
    one: Any, other: Any, among: list[Any], type: Type, place: str, *, single: bool = False
) -> list[tuple[Any, Any, list[Any], Type, str]]:
    parts = zip(one, other, _columns(among, len(one)), strict=True)
    found = [
        (a, b, c, type, place if single else f"{place}[{i}]") for i, (a, b, c) in enumerate(parts)
    ]
    return found[::-1]


def _same(found: np.ndarray, expected: np.ndarray, addends: list[np.ndarray] | None) -> bool:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype == object or found.dtype.kind in "biuS":
        return bool(np.array_equal(found, expected))
    unit = float(_unit(found.dtype))
    if found.dtype.name == "bfloat16":
        # NumPy itself has no comparison of these that knows what is no number.
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    if addends is None:
        return bool(np.array_equal(found, expected, equal_nan=True))
    largest = max((_largest(array) for array in (*addends, found, expected)), default=0.0)
    return bool(
        np.allclose(found, expected, rtol=0, atol=ROUNDINGS * unit * largest, equal_nan=True)
    )


def _unit(dtype: np.dtype) -> float:
    return 2.0**-8 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def _largest(array: np.ndarray) -> float:
    """The largest of the absolute values that are finite."""
    wide = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(wide, where=np.isfinite(wide), initial=0.0))
