"""Constants, identified by their elements and not by their encoding in a message."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any

from tffc.ir.array import Array

STRING = 7
FORMATS = {
    1: ("float_val", "f", 4),
    2: ("double_val", "d", 8),
    3: ("int_val", "i", 4),
    4: ("int_val", "B", 1),
    5: ("int_val", "h", 2),
    6: ("int_val", "b", 1),
    8: ("scomplex_val", "f", 8),
    9: ("int64_val", "q", 8),
    10: ("bool_val", "?", 1),
    14: ("half_val", "H", 2),
    17: ("int_val", "H", 2),
    18: ("dcomplex_val", "d", 16),
    19: ("half_val", "H", 2),
    22: ("uint32_val", "I", 4),
    23: ("uint64_val", "Q", 8),
}
"""For each element type's number: the TensorProto field that holds elements, the `struct` format of
one, and its size."""

RUN = 4096
"""How many equal elements are stripped at once."""


def constant_of_array(array: Array) -> Hashable:
    """Return the constant of an array."""
    return constant(array.dtype.number, array.shape, array.content)


def constant(
    dtype: int, shape: tuple[int, ...], elements: bytes | tuple[bytes, ...]
) -> tuple[Hashable, ...]:
    """Return a constant with these elements.

    TensorFlow repeats the last element up to the size of the shape, so trailing equal elements are
    dropped to make encodings of the same constant equal.
    """
    if isinstance(elements, tuple):
        return dtype, shape, _without_run(elements[: math.prod(shape)])
    size = FORMATS[dtype][2]
    return dtype, shape, _without_bytes(elements[: math.prod(shape) * size], size)


def filled(dtype: int, shape: tuple[int, ...], element: bytes) -> Hashable:
    """Return a constant whose elements are all equal to this one."""
    return dtype, shape, element if math.prod(shape) else b""


def constant_of_tensor(tensor: Any) -> Hashable:
    """Return the constant of a TensorProto, or its bytes if its type is not numeric or string."""
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    dtype = tensor.dtype
    if dtype == STRING and not tensor.tensor_content:
        return constant(dtype, shape, tuple(tensor.string_val) or (b"",))
    if dtype not in FORMATS or min(shape, default=0) < 0:
        return b"tensor", tensor.SerializeToString(deterministic=True)
    field, code, size = FORMATS[dtype]
    content = tensor.tensor_content
    if not content:
        values = list(getattr(tensor, field))
        try:
            content = struct.pack(f"<{len(values)}{code}", *values) or bytes(size)
        except struct.error:
            return b"tensor", tensor.SerializeToString(deterministic=True)
    elif len(content) != math.prod(shape) * size:
        return b"tensor", tensor.SerializeToString(deterministic=True)
    return constant(dtype, shape, content)


def _without_run(elements: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Drop all but the first of the equal elements at the end."""
    end = len(elements)
    while end > 1 and elements[end - 2] == elements[end - 1]:
        end -= 1
    return elements[:end]


def _without_bytes(content: bytes, size: int) -> bytes:
    """Drop equal elements at the end, of `size` bytes each, `RUN` at a time and then one at a
    time."""
    last, end = content[-size:], len(content)
    for run in (last * RUN, last):
        while end > len(run) and run and content.endswith(run, 0, end - size):
            end -= len(run)
    return content[: max(end, size)]
