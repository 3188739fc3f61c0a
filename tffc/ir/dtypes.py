"""The sixteen element types of tensors.

The wire numbers are those of TensorFlow's `DataType` enumeration.  Nothing here imports NumPy
until a caller asks for a NumPy type, so that printing a program stays light.
"""

from __future__ import annotations

import enum
from typing import Any


class DType(enum.Enum):
    """An element type: its printed name, its number on the wire, its kind and its item size.

    The kind is one of `bool`, `int`, `uint`, `float`, `complex` and `str`.  The size is in bytes
    and 0 for strings.
    """

    BOOL = ("bool", 10, "bool", 1)
    INT8 = ("int8", 6, "int", 1)
    INT16 = ("int16", 5, "int", 2)
    INT32 = ("int32", 3, "int", 4)
    INT64 = ("int64", 9, "int", 8)
    UINT8 = ("uint8", 4, "uint", 1)
    UINT16 = ("uint16", 17, "uint", 2)
    UINT32 = ("uint32", 22, "uint", 4)
    UINT64 = ("uint64", 23, "uint", 8)
    FLOAT16 = ("float16", 19, "float", 2)
    BFLOAT16 = ("bfloat16", 14, "float", 2)
    FLOAT32 = ("float32", 1, "float", 4)
    FLOAT64 = ("float64", 2, "float", 8)
    COMPLEX64 = ("complex64", 8, "complex", 8)
    COMPLEX128 = ("complex128", 18, "complex", 16)
    STRING = ("str", 7, "str", 0)

    def __init__(self, label: str, number: int, kind: str, size: int) -> None:
        self.label = label
        self.number = number
        self.kind = kind
        self.size = size

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        if self is DType.BFLOAT16:
            return "bfloat16"
        return "np.str_" if self is DType.STRING else f"np.{self.label}"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_floating(self) -> bool:
        return self.kind == "float"

    @property
    def is_numeric(self) -> bool:
        """Whether values can be added: every kind but booleans and strings."""
        return self.kind not in ("bool", "str")

    @property
    def dtype(self) -> Any:
        """The NumPy dtype; named so that `np.dtype(x)` and `tf.as_dtype(x)` accept `x` itself.

        Strings map to NumPy's object dtype, whose elements are `bytes`.
        """
        import numpy as np

        if self is DType.STRING:
            return np.dtype(object)
        if self is DType.BFLOAT16:
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(self.label)


BY_NUMBER = {dtype.number: dtype for dtype in DType}
BY_LABEL = {dtype.label: dtype for dtype in DType}
