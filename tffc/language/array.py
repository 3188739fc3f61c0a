"""Constant tensors as plain data: an element type, a shape and the elements' bytes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tffc.language.dtypes import DType, to_dtype
from tffc.language.types import TensorType
from tffc.support.errors import LanguageTypeError, LanguageValueError

INT32_RANGE = range(-(2**31), 2**31)
INT64_RANGE = range(-(2**63), 2**63)

MAX_RANK = 32
"""The most dimensions of a constant: as many as every release of NumPy can hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class Array:
    """A constant tensor.

    `content` holds the elements in row-major order: their little-endian bytes, or for strings a
    tuple of one `bytes` for each element.  Every dimension is known.
    """

    dtype: DType
    shape: tuple[int, ...]
    content: bytes | tuple[bytes, ...]

    def __post_init__(self) -> None:
        if min(self.shape, default=0) < 0:
            raise LanguageValueError(
                "E112",
                f"a constant cannot have the shape {list(self.shape)}, which has a negative size",
                help="give the number of elements in each dimension, from 0 up",
            )
        extent = math.prod(max(size, 1) for size in self.shape) * (self.dtype.size or 8)
        if len(self.shape) > MAX_RANK or extent >= 2**63:
            raise LanguageValueError(
                "E139", f"a constant cannot have the shape {list(self.shape)}, which is too large"
            )
        count = math.prod(self.shape)
        held = len(self.content)
        if held != count * (self.dtype.size or 1):
            raise LanguageValueError(
                "E118",
                f"an array of {self.dtype} of shape {list(self.shape)} has {count} elements, "
                f"which do not fit {held} {'strings' if self.dtype is DType.STRING else 'bytes'}",
                help="give as many elements as the shape says, or another shape",
            )

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def numpy(self) -> Any:
        """Return the NumPy scalar or array; `bytes` for one string, an object array for several."""
        import numpy as np

        if isinstance(self.content, tuple):
            if not self.shape:
                return self.content[0]
            array = np.empty(len(self.content), dtype=object)
            array[:] = self.content
            return array.reshape(self.shape)
        flat = np.frombuffer(self.content, dtype=self.dtype.dtype.newbyteorder("<"))
        array = flat.astype(self.dtype.dtype).reshape(self.shape)
        return array if self.shape else array[()]


def infer_dtype(value: Any) -> DType:
    """Return the element type of a Python scalar or NumPy value.

    Integers are int32, or int64 where they do not fit; floats are float32.

    Raises:
      LanguageTypeError: the value is neither a scalar nor a NumPy value of the language.
      LanguageValueError: an integer does not fit 64 bits.
    """
    match value:
        case bool():
            return DType.BOOL
        # `in` counts through the range for values that are not plain ints, such as an IntEnum's.
        case int() if int(value) in INT32_RANGE:
            return DType.INT32
        case int() if int(value) in INT64_RANGE:
            return DType.INT64
        case int():
            raise LanguageValueError(
                "E121",
                f"the integer {value} does not fit 64 bits",
                help="use an integer from -2**63 to 2**63 - 1, or a float",
            )
        case str() | bytes():
            return DType.STRING
        case _:
            pass
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return DType.STRING if value.dtype.kind in "SUO" else to_dtype(value.dtype)
    if isinstance(value, float):
        return DType.FLOAT32
    if isinstance(value, complex):
        return DType.COMPLEX128
    raise LanguageTypeError(
        "E120",
        f"{value!r} is not a constant tensor",
        help="give a number, a string or an array of NumPy",
    )


def is_compatible(value: Any, dtype: DType) -> bool:
    """Tell whether `value` can be a constant of element type `dtype` without loss.

    The kinds must agree; a NumPy value must be safely castable, a Python number representable.
    """
    import numpy as np

    own = infer_dtype(value)
    if own.kind != dtype.kind and not (own.is_integer and dtype.is_integer):
        return False
    if dtype.kind in ("bool", "str"):
        return True
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return bool(np.can_cast(value.dtype, dtype.dtype, casting="safe"))
    if dtype.is_integer:
        limits = np.iinfo(dtype.dtype)
        return int(limits.min) <= value <= int(limits.max)
    if dtype is DType.BFLOAT16:
        return False
    limit = float(np.finfo(dtype.dtype).max)
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    return all(not math.isfinite(part) or abs(part) <= limit for part in parts)


def to_array(value: Any, dtype: DType | None = None) -> Array:
    """Return a Python scalar or NumPy value as a constant of element type `dtype`, or of its own.

    A `str` is stored as its UTF-8 bytes.

    Raises:
      LanguageTypeError: the value is not a constant tensor.
      LanguageValueError: the value is not compatible with `dtype`.
    """
    import numpy as np

    own = infer_dtype(value)
    target = own if dtype is None else dtype
    if not is_compatible(value, target):
        of_type = "" if own is target else f" of type {own}"
        # The texts of NumPy's scalars differ between its releases; Python's do not.
        shown = value.item() if hasattr(value, "item") and not np.ndim(value) else value
        raise LanguageValueError(
            "E121",
            f"the constant {shown!r}{of_type} does not fit {target}",
            help=_fitting(value, target),
        )
    if target is DType.STRING:
        items = value.ravel().tolist() if hasattr(value, "ravel") else [value]
        strings = tuple(item if isinstance(item, bytes) else item.encode() for item in items)
        return Array(target, tuple(getattr(value, "shape", ())), strings)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        array = np.asarray(value).astype(target.dtype)
    return Array(target, array.shape, array.astype(array.dtype.newbyteorder("<")).tobytes())


def _fitting(value: Any, dtype: DType) -> str | None:
    """Return what to give in place of a value that does not fit `dtype`."""
    import numpy as np

    if not dtype.is_numeric:
        return None
    own = None if hasattr(value, "dtype") else infer_dtype(value)
    if dtype.is_integer and own in (DType.INT32, DType.INT64):
        limits = np.iinfo(dtype.dtype)
        return f"{dtype} holds the integers from {limits.min} to {limits.max}"
    if dtype in (DType.FLOAT16, DType.FLOAT32) and own is DType.FLOAT32:
        return f"{dtype} holds numbers up to {np.finfo(dtype.dtype).max:.3g}; np.float64 holds more"
    return f"convert it first, for example np.{dtype}(...)"
