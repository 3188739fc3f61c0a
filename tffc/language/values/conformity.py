"""Whether a value of another process is of a type, before anything computes with it."""

from __future__ import annotations

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.shapes import shape_is_assignable
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.support.guards import is_array, is_list, is_numpy, is_tuple


def conforms(value: object, type: Type) -> bool:
    """Return whether a value is exactly of a type without placements: its structure, element types
    and shapes."""
    stack: list[tuple[object, Type]] = [(value, type)]
    while stack:
        part, kind = stack.pop()
        match kind:
            case TensorType():
                if not _is_tensor(part, kind):
                    return False
            case StructType():
                if not is_tuple(part) or len(part) != len(kind.types):
                    return False
                stack.extend(zip(part, kind.types, strict=True))
            case SequenceType():
                if not is_list(part):
                    return False
                stack.extend((element, kind.element) for element in part)
            case _:
                return False
    return True


def _is_tensor(value: object, kind: TensorType) -> bool:
    if kind.element_type is DType.STRING:
        if not is_array(value) or value.dtype != np.dtype(object) or not value.ndim:
            return isinstance(value, bytes) and shape_is_assignable(kind.shape, ())
        return shape_is_assignable(kind.shape, value.shape) and all(
            isinstance(item, bytes) for item in value.flat
        )
    if not is_numpy(value):
        return False
    return value.dtype == kind.element_type.dtype and shape_is_assignable(kind.shape, value.shape)
