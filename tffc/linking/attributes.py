"""Attributes of nodes for types of values and for constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.graphs.canonical import STRUCT_CODES
from tffc.graphs.proto import AttrValue, TensorProto, TensorShapeProto
from tffc.language.array import Array
from tffc.language.types import SequenceType, TensorType

VARIANT = 21
"""TensorFlow's number for the element type of tensors that hold datasets."""


def type_number(kind: TensorType | SequenceType) -> int:
    """Return TensorFlow's number for the element type of the tensor that holds a value of this
    type."""
    return kind.element_type.number if isinstance(kind, TensorType) else VARIANT


def type_attribute(kind: TensorType | SequenceType) -> AttrValue:
    """Return the element type of the tensor that holds a value of this type."""
    return AttrValue(type=type_number(kind))


def types_attribute(kinds: Iterable[TensorType | SequenceType]) -> AttrValue:
    """Return the element types of several values."""
    return AttrValue(list=AttrValue.ListValue(type=map(type_number, kinds)))


def shape_attribute(kind: TensorType | SequenceType) -> AttrValue:
    """Return the shape of the tensor that holds a value of this type."""
    return AttrValue(shape=_shape(kind))


def shapes_attribute(kinds: Iterable[TensorType | SequenceType]) -> AttrValue:
    """Return the shapes of several values."""
    return AttrValue(list=AttrValue.ListValue(shape=map(_shape, kinds)))


def array_attribute(array: Array) -> AttrValue:
    """Return a constant."""
    field = "string_val" if isinstance(array.content, tuple) else "tensor_content"
    return _constant(array.type, **{field: array.content})


def filled_attribute(kind: TensorType, number: int | float) -> AttrValue:
    """Return a constant of a fully defined shape whose elements are all `number`; for halves,
    `number` is their sixteen bits."""
    numbers = (number, 0) if kind.element_type.kind == "complex" else (number,)
    field, _ = STRUCT_CODES[kind.element_type.number]
    return _constant(kind, **{field: numbers})


def _constant(kind: TensorType, **elements: Any) -> AttrValue:
    tensor = TensorProto(dtype=type_number(kind), tensor_shape=_shape(kind), **elements)
    return AttrValue(tensor=tensor)


def _shape(kind: TensorType | SequenceType) -> TensorShapeProto:
    shape = kind.shape if isinstance(kind, TensorType) else ()
    if shape is None:
        return TensorShapeProto(unknown_rank=True)
    return TensorShapeProto(dim=[{"size": -1 if size is None else size} for size in shape])
