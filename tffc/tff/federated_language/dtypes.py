"""Element types as the classes of NumPy, such as `np.int32`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tffc.language.array import infer_dtype as infer_element_type
from tffc.language.dtypes import BY_NUMBER, DType
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import UnsupportedError
from tffc.support.guards import is_numpy

CLASSES: dict[Any, DType] = {dtype.numpy_dtype.type: dtype for dtype in DType}
"""The element types by their classes."""


def element_type(dtype: object) -> DType:
    """Return the element type of one of NumPy's classes.

    Raises:
      UnsupportedError: the language has none for it.
    """
    if not is_valid_dtype(dtype):
        raise UnsupportedError(
            "E111",
            f"{dtype!r} is not the class of an element type",
            help="give one of NumPy's classes, such as np.int32",
        )
    return CLASSES[dtype]


@entry_point
def is_valid_dtype(dtype: object) -> bool:
    """Return whether a class of NumPy is that of an element type."""
    return isinstance(dtype, type) and dtype in CLASSES


@entry_point
def to_proto(dtype: object) -> int:
    """Return the number in messages of an element type, given its class."""
    return element_type(dtype).number


@entry_point
def from_proto(dtype_pb: int) -> Any:
    """Return the class of the element type with a number in messages.

    Raises:
      UnsupportedError: there is none.
    """
    if dtype_pb not in BY_NUMBER:
        raise UnsupportedError(
            "E111",
            f"there is no element type of number {dtype_pb}",
            help="give a number of DataType, such as DT_INT32",
        )
    return BY_NUMBER[dtype_pb].numpy_dtype.type


@entry_point
def infer_dtype(obj: Any) -> Any:
    """Return the class of the element type of one of Python's scalars.

    Raises:
      UnsupportedError: it is none.
      LanguageValueError: an integer does not fit 64 bits.
    """
    if not isinstance(obj, (bool, int, float, complex, str, bytes)) or (
        is_numpy(obj) and not isinstance(obj, (str, bytes))
    ):
        raise UnsupportedError(
            "E120", f"{obj!r} is none of Python's scalars", help="give a bool, a number or a string"
        )
    return infer_element_type(obj).numpy_dtype.type


@entry_point
def can_cast(value: Any, dtype: Any) -> bool:
    """Return whether the values of an element type are large enough for a scalar of Python."""
    if issubclass(dtype, np.integer):
        limits = np.iinfo(cast("type[np.integer[Any]]", dtype))
        return bool(limits.min <= int(value) <= limits.max)
    target = CLASSES.get(dtype)
    if target is None or target.kind not in ("float", "complex"):
        return True
    return _is_in_range(value.real, target) and _is_in_range(value.imag, target)


def _is_in_range(part: float, target: DType) -> bool:
    try:
        number = float(part)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return bool(not np.isfinite(number) or np.isfinite(np.asarray(number).astype(target.dtype)))
