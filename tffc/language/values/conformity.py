"""Whether a value of another process is of a type, before anything computes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.shapes import shape_is_assignable
from tffc.language.types import SequenceType, StructType, TensorType, Type


def conforms(value: Any, type: Type) -> bool:
    """Return whether a value is exactly of a type without placements: its structure, element types
    and shapes."""
    stack: list[tuple[Any, Type]] = [(value, type)]
    while stack:
        part, kind = stack.pop()
        match kind:
            case TensorType():
                if not _is_tensor(part, kind):
                    return False
            case StructType():
                if not isinstance(part, tuple) or len(part) != len(kind.types):
                    return False
                stack.extend(zip(part, kind.types, strict=True))
            case SequenceType():
                if not isinstance(part, list):
                    return False
                stack.extend((each, kind.element) for each in part)
            case _:
                return False
    return True


def _is_tensor(value: Any, kind: TensorType) -> bool:
    if kind.element_type is DType.STRING:
        is_array = isinstance(value, np.ndarray) and value.dtype == np.dtype(object) and value.ndim
        if not is_array:
            return isinstance(value, bytes) and shape_is_assignable(kind.shape, ())
        return shape_is_assignable(kind.shape, value.shape) and all(
            isinstance(each, bytes) for each in value.flat
        )
    if not isinstance(value, (np.ndarray, np.generic)):
        return False
    return value.dtype == kind.element_type.dtype and shape_is_assignable(kind.shape, value.shape)
