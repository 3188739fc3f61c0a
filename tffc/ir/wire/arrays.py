"""Constant tensors on the wire."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

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

LISTS = {
    DType.BOOL: ("bool_list", 3),
    DType.INT8: ("int8_list", 4),
    DType.INT16: ("int16_list", 5),
    DType.INT32: ("int32_list", 6),
    DType.INT64: ("int64_list", 7),
    DType.UINT8: ("uint8_list", 8),
    DType.UINT16: ("uint16_list", 9),
    DType.UINT32: ("uint32_list", 10),
    DType.UINT64: ("uint64_list", 11),
    DType.FLOAT16: ("float16_list", 12),
    DType.FLOAT32: ("float32_list", 13),
    DType.FLOAT64: ("float64_list", 14),
    DType.COMPLEX64: ("complex64_list", 15),
    DType.COMPLEX128: ("complex128_list", 16),
    DType.STRING: ("string_list", 17),
    DType.BFLOAT16: ("bfloat16_list", 19),
}
"""The field that holds the list of elements of each type."""

ARRAY = schema(
    dtype=(1, Kind.INTEGER),
    shape=(2, Kind.MESSAGE),
    **{name: (number, Kind.MESSAGE) for name, number in LISTS.values()},
)
SHAPE = schema(dim=(1, Kind.INTEGERS), unknown_rank=(2, Kind.INTEGER))

CODES = {
    DType.BOOL: "B",
    DType.INT8: "b",
    DType.INT16: "h",
    DType.INT32: "i",
    DType.INT64: "q",
    DType.UINT8: "B",
    DType.UINT16: "H",
    DType.UINT32: "I",
    DType.UINT64: "Q",
    DType.FLOAT16: "H",
    DType.BFLOAT16: "H",
}
"""How `struct` packs the element types that are stored as varints; halves as their sixteen bits."""

FIXED_SIZES = {
    DType.FLOAT32: (FIXED32, 4),
    DType.FLOAT64: (FIXED64, 8),
    DType.COMPLEX64: (FIXED32, 4),
    DType.COMPLEX128: (FIXED64, 8),
}
"""The wire type and size of the numbers that are stored as they are; complex ones have two."""

STORED_BITS = {DType.INT64: 64, DType.UINT64: 64}
"""How many bits of a varint count for each element type, where it is not 32."""


def array_pieces(array: Array) -> list[bytes]:
    """Return the fields of an Array message."""
    shape = content_field(2, packed_field(1, array.shape))
    elements = content_field(LISTS[array.dtype][1], _list_field(array))
    return [integer_field(1, array.dtype.number), shape, elements]


def _list_field(array: Array) -> bytes:
    if isinstance(array.content, tuple):
        return b"".join(content_field(1, item) for item in array.content)
    if array.dtype not in CODES:
        return content_field(1, array.content) if array.content else b""
    count = len(array.content) // array.dtype.size
    return packed_field(1, struct.unpack(f"<{count}{CODES[array.dtype]}", array.content))


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
        if name != LISTS[dtype][0]:
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
    if dtype not in CODES:
        return b"".join(values)
    numbers = list(values)
    if dtype is DType.BOOL:
        return bytes(map(bool, numbers))
    bits = STORED_BITS.get(dtype, 32)
    if dtype.kind != "uint":
        numbers = [signed(number, bits) for number in numbers]
    else:
        numbers = [number & ((1 << bits) - 1) for number in numbers]
    try:
        return struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)
    except struct.error:
        place.refuse("E225", f"an element does not fit {dtype}")


def _values(data: bytes, place: Place, dtype: DType) -> Iterator[Any]:
    """Yield the values of a list message: integers, or for strings and floats their bytes."""
    at = place.start
    while at < place.end:
        begin = at
        number, wire, at = read_head(data, at, place)
        if number != 1:
            at = skip_value(data, wire, at, place)
        elif wire == LENGTH:
            start, at = read_length(data, at, place)
            yield from _packed(data, Place(start, at, place, "value"), dtype)
        elif wire == VARINT and dtype in CODES:
            value, at = read_varint(data, at, place)
            yield value
        elif dtype in FIXED_SIZES and wire == FIXED_SIZES[dtype][0]:
            start, at = at, skip_value(data, wire, at, place)
            yield data[start:at]
        else:
            place.refuse(
                "E226", f"elements of {dtype} are not encoded as {WIRE_TYPES[wire]}", begin
            )


def _packed(data: bytes, place: Place, dtype: DType) -> Iterator[Any]:
    at, end = place.start, place.end
    if dtype in CODES:
        while at < end:
            value, at = read_varint(data, at, place)
            yield value
        return
    if dtype in FIXED_SIZES and (end - at) % FIXED_SIZES[dtype][1]:
        place.refuse("E227", f"{end - at} bytes are not whole number of elements of {dtype}")
    yield data[at:end]
