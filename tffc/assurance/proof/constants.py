"""Constants, identified by the bytes of their elements and not by their encoding in a message."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable

from tffc.assurance.proof.fields import Message, encoded
from tffc.assurance.proof.terms import has_parts
from tffc.graphs.proto.encoding import LENGTH, Place, read_fields, read_length
from tffc.language.array import Array

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


def kind_of_constant(content: Hashable) -> tuple[int, tuple[int, ...]] | None:
    """Return the number of the element type and the shape of a constant that is not identified by
    its bytes, or else None."""
    if not has_parts(content) or len(content) != 3:
        return None
    dtype, shape, _ = content
    if not isinstance(dtype, int) or not has_parts(shape):
        return None
    return dtype, tuple(size for size in shape if isinstance(size, int))


def constant_of_tensor(tensor: Message) -> Hashable:
    """Return the constant of a TensorProto.

    It is identified by all bytes of the message if its type is not numeric or string, or if it has
    anything besides type, sizes, and elements in one field.
    """
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    elements = _elements(tensor, shape)
    if elements is None:
        return b"tensor", encoded(tensor)
    return constant(tensor.dtype, shape, elements)


def _elements(tensor: Message, shape: tuple[int, ...]) -> bytes | tuple[bytes, ...] | None:
    """Return the elements that a tensor lists, or None if they are not what its type and its shape
    ask for."""
    dtype, count = tensor.dtype, math.prod(shape)
    if min(shape, default=0) < 0 or not (dtype in FORMATS or dtype == STRING):
        return None
    field, code, size = FORMATS.get(dtype, ("string_val", "", 0))
    if not _is_plain(tensor, field):
        return None
    if tensor.tensor_content:
        return tensor.tensor_content if len(tensor.tensor_content) == count * size else None
    values = getattr(tensor, field)
    if dtype == STRING:
        return (tuple(values) or (b"",)) if len(values) <= count else None
    if code in "fd":
        # Python would change the bits of some numbers that are not numbers.
        content = _fixed(tensor, field)
    else:
        try:
            content = struct.pack(f"<{len(values)}{code}", *values)
        except struct.error:
            return None
    return (content or bytes(size)) if len(content) <= count * size else None


def _is_plain(tensor: Message, field: str) -> bool:
    """Tell whether a tensor has only type, sizes and elements, all in this field or as content."""
    plain = type(tensor)()
    plain.dtype = tensor.dtype
    if tensor.HasField("tensor_shape"):
        plain.tensor_shape.SetInParent()
    for dim in tensor.tensor_shape.dim:
        plain.tensor_shape.dim.add().size = dim.size
    size = plain.ByteSize()
    if tensor.tensor_content:
        return size + _field_size(len(tensor.tensor_content)) == tensor.ByteSize()
    rest = type(tensor)()
    rest.CopyFrom(tensor)
    rest.ClearField(field)
    return size == rest.ByteSize()


def _field_size(length: int) -> int:
    """Return the size of a field of that many bytes whose number is small."""
    return 1 + max(1, -(-length.bit_length() // 7)) + length


def _fixed(tensor: Message, field: str) -> bytes:
    """Return the bytes of a packed field of floating-point numbers."""
    number = tensor.DESCRIPTOR.fields_by_name[field].number
    data = encoded(tensor)
    place = Place(0, len(data))
    pieces: list[bytes] = []
    for field_number, wire, _, value, end in read_fields(data, place):
        if field_number == number and wire == LENGTH:
            start, _ = read_length(data, value, place)
            pieces.append(data[start:end])
    return b"".join(pieces)


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
