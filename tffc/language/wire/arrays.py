"""Reads and writes constant tensors as Array messages."""

from __future__ import annotations

import math
import struct
from typing import Any

from tffc.graphs.proto.computation import described
from tffc.graphs.proto.encoding import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Place,
    content_field,
    packed_field,
    read_message,
    read_repeated,
    signed,
)
from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.wire.types import read_dtype
from tffc.support.errors import LanguageValueError

ARRAY = "tffc.v0.Array"

WIRES = {
    DType.FLOAT32: FIXED32,
    DType.FLOAT64: FIXED64,
    DType.COMPLEX64: FIXED32,
    DType.COMPLEX128: FIXED64,
    DType.STRING: LENGTH,
}
"""The wire types of elements that are not varints.  A complex number is two elements."""

CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
"""How `struct` packs signed numbers by their sizes; the letters of unsigned ones are upper case."""


def _code(dtype: DType) -> str:
    """Return the `struct` format of elements that are varints; a half is its sixteen bits."""
    return CODES[dtype.size] if dtype.kind == "int" else CODES[dtype.size].upper()


def _list_name(dtype: DType) -> str:
    """Return the field of an Array message that holds the elements of a type."""
    return f"{dtype.name.lower()}_list"


def array_fields(array: Array) -> dict[str, Any]:
    """Return the fields of an Array message."""
    elements = {_list_name(array.dtype): _list_field(array)}
    return {"dtype": array.dtype.number, "shape": {"dim": array.shape}, **elements}


def _list_field(array: Array) -> bytes:
    if isinstance(array.content, tuple):
        return b"".join(content_field(1, item) for item in array.content)
    if array.dtype in WIRES:
        return content_field(1, array.content) if array.content else b""
    count = len(array.content) // array.dtype.size
    return packed_field(1, struct.unpack(f"<{count}{_code(array.dtype)}", array.content))


def read_array(data: bytes, place: Place) -> Array:
    """Return the constant in an Array message.

    An array of unknown rank is read as flat.

    Raises:
      WireError: the message is malformed, or has not as many elements as its shape says.
    """
    fields = read_message(data, place, described(ARRAY).schema)
    dtype = read_dtype(fields, place)
    lists = {name: inner for name, inner in fields.items() if name.endswith("_list")}
    content: Any = () if dtype is DType.STRING else b""
    for name, inner in lists.items():
        if name != _list_name(dtype):
            inner.refuse("E216", f"elements of {dtype} are not kept in the field {name}")
        content = _read_elements(data, inner, dtype)
    count = len(content) // (dtype.size or 1)
    shape = _read_shape(data, fields.get("shape"), count)
    if count != math.prod(shape) or len(content) % (dtype.size or 1):
        place.refuse("E216", f"an array of shape {list(shape)} cannot have {count} elements")
    try:
        return Array(dtype, shape, content)
    except LanguageValueError as error:
        place.refuse("E216", error.message)


def _read_shape(data: bytes, place: Place | None, count: int) -> tuple[int, ...]:
    if place is None:
        return ()
    fields = read_message(data, place, described("tffc.v0.ArrayShape").schema)
    if fields.get("unknown_rank"):
        return (count,)
    shape = tuple(map(signed, fields.get("dim", ())))
    if min(shape, default=0) < 0:
        place.refuse("E216", f"the shape {list(shape)} of a constant is not fully known")
    return shape


def _read_elements(data: bytes, place: Place, dtype: DType) -> bytes | tuple[bytes, ...]:
    """Return the elements in row-major order, as `Array` keeps them."""
    values = read_repeated(data, place, 1, WIRES.get(dtype, VARINT), f"elements of {dtype}")
    if dtype is DType.STRING:
        return tuple(values)
    if dtype in WIRES:
        return b"".join(values)
    if dtype is DType.BOOL:
        return bytes(map(bool, values))
    # Higher bits of a varint for a number of up to 32 bits are ignored.
    bits = 64 if dtype.size == 8 else 32
    if dtype.kind == "uint":
        numbers = [number & ((1 << bits) - 1) for number in values]
    else:
        numbers = [signed(number, bits) for number in values]
    try:
        return struct.pack(f"<{len(numbers)}{_code(dtype)}", *numbers)
    except struct.error:
        place.refuse("E216", f"an element does not fit {dtype}")
