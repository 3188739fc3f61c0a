"""The sixteen element types of tensors.

The wire numbers are those of TensorFlow's `DataType` enumeration.  Nothing here imports NumPy until
a caller asks for a NumPy type, so that printing a program stays light: NumPy's and TensorFlow's
element types are recognized only if their modules are loaded; before that, no object of theirs
exists.
"""

from __future__ import annotations

import enum
import sys
from typing import Any

from tffc.support.errors import UnsupportedError


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
    def numpy_dtype(self) -> Any:
        """The NumPy dtype that users write for it, which is that of `np.str_` for strings."""
        import numpy as np

        return np.dtype(np.str_) if self is DType.STRING else self.dtype

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

PYTHON_TYPES: dict[type, DType] = {
    bool: DType.BOOL,
    int: DType.INT32,
    float: DType.FLOAT32,
    complex: DType.COMPLEX128,
    str: DType.STRING,
    bytes: DType.STRING,
}
"""The element types of Python's scalar classes, as for Python constants in a computation."""


def to_dtype(source: Any) -> DType:
    """Return the element type for a dtype of NumPy or TensorFlow, or a Python class.

    Raises:
      UnsupportedError: it is none of these, or one that the language does not have.
    """
    if isinstance(source, DType):
        return source
    name = _dtype_name(source)
    if name is None:
        raise UnsupportedError(
            "E110",
            f"{source!r} is not an element type",
            help="give a NumPy or TensorFlow dtype, or a Python class such as int",
        )
    if name in ("bytes", "string"):
        name = "str"
    if name not in BY_LABEL:
        raise UnsupportedError(
            "E111",
            f"tensors of {name} are not part of the language",
            notes=(f"its element types are {', '.join(BY_LABEL)}",),
            help="declare one of these element types, and convert to it in TensorFlow",
        )
    return BY_LABEL[name]


def is_dtype_like(source: Any) -> bool:
    """Tell whether `to_dtype` reads this Python object, or says what is wrong with it."""
    return isinstance(source, DType) or _dtype_name(source) is not None


def _dtype_name(source: Any) -> str | None:
    """Return the name of a Python class, or of a NumPy or TensorFlow dtype; None for anything
    else."""
    if isinstance(source, type) and source in PYTHON_TYPES:
        return PYTHON_TYPES[source].label
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(source, numpy.dtype):
            return _numpy_name(numpy, source)
        if isinstance(source, type) and (
            issubclass(source, numpy.generic) or source.__name__ == "bfloat16"
        ):
            try:
                return _numpy_name(numpy, numpy.dtype(source))
            except TypeError:
                return source.__name__
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(source, getattr(tensorflow, "DType", ())):
        foreign: Any = source
        return foreign.base_dtype.name
    return None


def _numpy_name(numpy: Any, dtype: Any) -> str:
    return "str" if dtype.kind in "US" else str(numpy.dtype(dtype).name)
