"""Attributes of nodes, constants among them: serialized AttrValue messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.graphdef.canonical import STRUCT_CODES
from tffc.ir.array import Array
from tffc.ir.types import SequenceType, TensorType
from tffc.proto import TensorProto
from tffc.proto.encoding import content_field, integer_field, packed_field, string_field

VARIANT = 21
"""TensorFlow's number for the element type of tensors that hold datasets."""


def type_number(kind: TensorType | SequenceType) -> int:
    """Return TensorFlow's number for the element type of what holds a value of this type."""
    return kind.element_type.number if isinstance(kind, TensorType) else VARIANT


def type_attribute(kind: TensorType | SequenceType) -> bytes:
    """Return the element type of what holds a value of this type."""
    return integer_field(6, type_number(kind))


def types_attribute(kinds: Iterable[TensorType | SequenceType]) -> bytes:
    """Return the element types of several values."""
    return content_field(1, packed_field(6, map(type_number, kinds)))


def shape_attribute(kind: TensorType | SequenceType) -> bytes:
    """Return the shape of what holds a value of this type."""
    return content_field(7, _shape(kind))


def shapes_attribute(kinds: Iterable[TensorType | SequenceType]) -> bytes:
    """Return the shapes of several values."""
    return content_field(1, b"".join(content_field(7, _shape(kind)) for kind in kinds))


def flag_attribute(flag: bool) -> bytes:
    """Return a truth value."""
    return integer_field(5, flag)


def text_attribute(text: bytes) -> bytes:
    """Return a text."""
    return content_field(2, text)


def texts_attribute(texts: Iterable[bytes]) -> bytes:
    """Return several texts."""
    return content_field(1, b"".join(content_field(2, text) for text in texts))


def number_attribute(number: int) -> bytes:
    """Return an integer."""
    return integer_field(3, number)


def function_attribute(name: str) -> bytes:
    """Return a function of the library."""
    return content_field(10, string_field(1, name))


def array_attribute(array: Array) -> bytes:
    """Return a constant."""
    if isinstance(array.content, tuple):
        return _tensor(array.type, TensorProto(string_val=array.content))
    return _tensor(array.type, TensorProto(tensor_content=array.content))


def filled_attribute(kind: TensorType, number: int | float) -> bytes:
    """Return a constant of a fully defined shape whose elements are all `number`, which for halves
    stands for their sixteen bits."""
    numbers = (number, 0) if kind.element_type.kind == "complex" else (number,)
    field, _ = STRUCT_CODES[kind.element_type.number]
    return _tensor(kind, TensorProto(**{field: numbers}))


def _tensor(kind: TensorType, elements: Any) -> bytes:
    head = integer_field(1, kind.element_type.number) + content_field(2, _shape(kind))
    return content_field(8, head + elements.SerializeToString(deterministic=True))


def _shape(kind: TensorType | SequenceType) -> bytes:
    """Return the fields of a TensorShapeProto."""
    shape = kind.shape if isinstance(kind, TensorType) else ()
    if shape is None:
        return integer_field(3, True)
    sizes = (-1 if size is None else size for size in shape)
    return b"".join(content_field(2, integer_field(1, size) if size else b"") for size in sizes)
