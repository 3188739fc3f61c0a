"""Constant tensors on the wire."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tffc.errors import LanguageValueError
from tffc.ir.array import Array
from tffc.ir.dtypes import DType
from tffc.ir.wire.types import read_dtype
from tffc.proto.encoding import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    WIRE_TYPES,
    Kind,
    Place,
    content_field,
    integer_field,
    packed_field,
    read_head,
    read_length,
    read_message,
    read_varint,
    schema,
    signed,
    skip_value,
)


class ListEncoding(NamedTuple):
    """How the elements of one type are kept: the number of the field of an Array message, the wire
    type of an element, and how `struct` packs one that is a varint, halves as their sixteen bits.
    """

    number: int
    wire: int
    code: str = ""


LISTS = {
    DType.BOOL: ListEncoding(3, VARINT, "B"),
    DType.INT8: ListEncoding(4, VARINT, "b"),
    DType.INT16: ListEncoding(5, VARINT, "h"),
    DType.INT32: ListEncoding(6, VARINT, "i"),
    DType.INT64: ListEncoding(7, VARINT, "q"),
    DType.UINT8: ListEncoding(8, VARINT, "B"),
    DType.UINT16: ListEncoding(9, VARINT, "H"),
    DType.UINT32: ListEncoding(10, VARINT, "I"),
    DType.UINT64: ListEncoding(11, VARINT, "Q"),
    DType.FLOAT16: ListEncoding(12, VARINT, "H"),
    DType.FLOAT32: ListEncoding(13, FIXED32),
    DType.FLOAT64: ListEncoding(14, FIXED64),
    DType.COMPLEX64: ListEncoding(15, FIXED32),
    DType.COMPLEX128: ListEncoding(16, FIXED64),
    DType.STRING: ListEncoding(17, LENGTH),
    DType.BFLOAT16: ListEncoding(19, VARINT, "H"),
}
"""The encodings by element type.  A complex number is two elements."""

FIELDS = {dtype: f"{dtype.name.lower()}_list" for dtype in LISTS}
"""The names of the fields that hold the elements of each type."""

ARRAY = schema(
    dtype=(1, Kind.INTEGER),
    shape=(2, Kind.MESSAGE),
    **{FIELDS[dtype]: (encoding.number, Kind.MESSAGE) for dtype, encoding in LISTS.items()},
)
SHAPE = schema(dim=(1, Kind.INTEGERS), unknown_rank=(2, Kind.INTEGER))


def array_pieces(array: Array) -> list[bytes]:
    """Return the fields of an Array message."""
    shape = content_field(2, packed_field(1, array.shape))
    elements = content_field(LISTS[array.dtype].number, _list_field(array))
    return [integer_field(1, array.dtype.number), shape, elements]


def _list_field(array: Array) -> bytes:
    if isinstance(array.content, tuple):
        return b"".join(content_field(1, item) for item in array.content)
    code = LISTS[array.dtype].code
    if not code:
        return content_field(1, array.content) if array.content else b""
    count = len(array.content) // array.dtype.size
    return packed_field(1, struct.unpack(f"<{count}{code}", array.content))


def read_array(data: bytes, place: Place) -> Array:
    """Return the constant in an Array message.

    An array of unknown rank is read as flat.

    Raises:
      WireError: the message is malformed, or has not as many elements as its shape says.
    """
    found = read_message(data, place, ARRAY)
    dtype = read_dtype(found, place)
    lists = {name: inner for name, inner in found.items() if name.endswith("_list")}
    content: Any = () if dtype is DType.STRING else b""
    for name, inner in lists.items():
        if name != FIELDS[dtype]:
            inner.refuse("E222", f"elements of {dtype} are not kept in the field {name}")
        content = _read_elements(data, inner, dtype)
    count = len(content) // (dtype.size or 1)
    shape = _read_shape(data, found.get("shape"), count)
    if count != math.prod(shape) or len(content) % (dtype.size or 1):
        place.refuse("E223", f"an array of shape {list(shape)} cannot have {count} elements")
    try:
        return Array(dtype, shape, content)
    except LanguageValueError as error:
        place.refuse("E235", error.message)


def _read_shape(data: bytes, place: Place | None, count: int) -> tuple[int, ...]:
    if place is None:
        return ()
    found = read_message(data, place, SHAPE)
    if found.get("unknown_rank"):
        return (count,)
    shape = tuple(map(signed, found.get("dim", ())))
    if min(shape, default=0) < 0:
        place.refuse("E224", f"the shape {list(shape)} of a constant is not fully known")
    return shape


def _read_elements(data: bytes, place: Place, dtype: DType) -> bytes | tuple[bytes, ...]:
    """Return the elements in row-major order, as `Array` keeps them."""
    values = _values(data, place, dtype)
    if dtype is DType.STRING:
        return tuple(values)
    code = LISTS[dtype].code
    if not code:
        return b"".join(values)
    if dtype is DType.BOOL:
        return bytes(map(bool, values))
    # Of a number of up to 32 bits that a varint holds, the bits above are not looked at.
    bits = 64 if dtype.size == 8 else 32
    if dtype.kind == "uint":
        numbers = [number & ((1 << bits) - 1) for number in values]
    else:
        numbers = [signed(number, bits) for number in values]
    try:
        return struct.pack(f"<{len(numbers)}{code}", *numbers)
    except struct.error:
        place.refuse("E225", f"an element does not fit {dtype}")


def _values(data: bytes, place: Place, dtype: DType) -> Iterator[Any]:
    """Yield the values of a list message: integers, or for strings and floats their bytes."""
    at = place.start
    while at < place.end:
        begin = at
        number, wire, start = read_head(data, at, place)
        at = skip_value(data, wire, start, place)
        if number != 1:
            continue
        if wire not in (LENGTH, LISTS[dtype].wire):
            place.refuse(
                "E226", f"elements of {dtype} are not encoded as {WIRE_TYPES[wire]}", begin
            )
        # One that is not packed is read as if it was packed alone.
        if wire == LENGTH:
            start, _ = read_length(data, start, place)
        yield from _packed(data, Place(start, at, place, "value"), dtype)


def _packed(data: bytes, place: Place, dtype: DType) -> Iterator[Any]:
    at, end = place.start, place.end
    wire = LISTS[dtype].wire
    if wire == VARINT:
        while at < end:
            value, at = read_varint(data, at, place)
            yield value
        return
    if wire != LENGTH and (end - at) % (4 if wire == FIXED32 else 8):
        place.refuse("E227", f"{end - at} bytes are not whole number of elements of {dtype}")
    yield data[at:end]
