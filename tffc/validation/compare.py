"""Whether two values of a type are the same, and if not, where they first differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.execution.values import Federated, to_value
from tffc.ir.types import FederatedType, SequenceType, StructType, TensorType, Type

ROUNDINGS = 128
"""How many roundings of one element two results may be apart where sums are in another order."""


def first_difference(found: Any, expected: Any, type: Type, *, exact: bool) -> str | None:
    """The place of the first difference between two results of a type, or None.

    NaN equals NaN.  Unless `exact`, floating-point numbers may differ by rounding.
    """
    stack: list[tuple[Any, Any, Type, str]] = [
        (to_value(found, type, "what was found"), to_value(expected, type), type, "")
    ]
    while stack:
        one, other, kind, place = stack.pop()
        match kind:
            case StructType():
                steps = [f"[{i}]" if n is None else f".{n}" for i, n in enumerate(kind.names)]
                parts = zip(one, other, kind.types, steps, strict=True)
                stack.extend(reversed([(a, b, t, place + step) for a, b, t, step in parts]))
            case SequenceType():
                if len(one) != len(other):
                    return place or "the result"
                stack.extend(_members(one, other, kind.element, place))
            case FederatedType():
                one, other = _placed(one), _placed(other)
                if len(one) != len(other):
                    return place or "the result"
                inner = place if kind.all_equal else f"{place}@"
                stack.extend(_members(one, other, kind.member, inner, single=kind.all_equal))
            case TensorType():
                if not _same(np.asarray(one), np.asarray(other), exact=exact):
                    return place or "the result"
            case _:
                if one != other:
                    return place or "the result"
    return None


def _placed(value: Federated) -> tuple[Any, ...]:
    return value.members


def _members(
    one: Any, other: Any, type: Type, place: str, *, single: bool = False
) -> list[tuple[Any, Any, Type, str]]:
    pairs = enumerate(zip(one, other, strict=True))
    found = [(a, b, type, place if single else f"{place}[{i}]") for i, (a, b) in pairs]
    return found[::-1]


def _same(found: np.ndarray, expected: np.ndarray, *, exact: bool) -> bool:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype == object or found.dtype.kind in "biuS":
        return bool(np.array_equal(found, expected))
    if found.dtype.name == "bfloat16":
        # NumPy itself has no comparison of these that knows what is no number.
        found, expected, unit = found.astype(np.float32), expected.astype(np.float32), 2.0**-8
    else:
        unit = float(np.finfo(found.dtype).eps)
    if exact:
        return bool(np.array_equal(found, expected, equal_nan=True))
    tolerance = ROUNDINGS * unit
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True))
