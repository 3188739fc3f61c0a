"""Attributes of nodes, and constants in TensorFlow's encoding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.ir.array import Array
from tffc.ir.dtypes import DType
from tffc.ir.types import SequenceType, Shape, TensorType
from tffc.proto import AttrValue, NameAttrList, TensorProto, TensorShapeProto

VARIANT = 21
"""TensorFlow's number for the element type of tensors that hold datasets."""

VALUE_FIELDS = {
    DType.BOOL: "bool_val",
    DType.INT8: "int_val",
    DType.INT16: "int_val",
    DType.INT32: "int_val",
    DType.INT64: "int64_val",
    DType.UINT8: "int_val",
    DType.UINT16: "int_val",
    DType.UINT32: "uint32_val",
    DType.UINT64: "uint64_val",
    DType.FLOAT16: "half_val",
    DType.BFLOAT16: "half_val",
    DType.FLOAT32: "float_val",
    DType.FLOAT64: "double_val",
    DType.COMPLEX64: "scomplex_val",
    DType.COMPLEX128: "dcomplex_val",
}
"""The field of a TensorProto that lists numbers of each type; halves as their sixteen bits, complex
numbers as two."""


def type_number(kind: TensorType | SequenceType) -> int:
    """TensorFlow's number for the element type of what holds a value of this type."""
    return kind.dtype.number if isinstance(kind, TensorType) else VARIANT


def type_attribute(kind: TensorType | SequenceType) -> Any:
    """The element type of what holds a value of this type."""
    return AttrValue(type=type_number(kind))


def types_attribute(kinds: Iterable[TensorType | SequenceType]) -> Any:
    """The element types of several values."""
    return AttrValue(list=AttrValue.ListValue(type=map(type_number, kinds)))


def shape_attribute(kind: TensorType | SequenceType) -> Any:
    """The shape of what holds a value of this type."""
    return AttrValue(shape=_shape(kind))


def shapes_attribute(kinds: Iterable[TensorType | SequenceType]) -> Any:
    """The shapes of several values."""
    return AttrValue(list=AttrValue.ListValue(shape=map(_shape, kinds)))


def function_attribute(name: str) -> Any:
    """A function of the library."""
    return AttrValue(func=NameAttrList(name=name))


def array_attribute(array: Array) -> Any:
    """A constant."""
    proto = TensorProto(dtype=array.dtype.number, tensor_shape=_proto_shape(array.shape))
    if isinstance(array.content, tuple):
        proto.string_val.extend(array.content)
    else:
        proto.tensor_content = array.content
    return AttrValue(tensor=proto)


def filled_attribute(kind: TensorType, number: int | float) -> Any:
    """A constant of a fully defined shape whose elements are all `number`, which for halves stands
    for their sixteen bits."""
    proto = TensorProto(dtype=kind.dtype.number, tensor_shape=_proto_shape(kind.shape))
    numbers = (number, 0) if kind.dtype.kind == "complex" else (number,)
    getattr(proto, VALUE_FIELDS[kind.dtype]).extend(numbers)
    return AttrValue(tensor=proto)


def _shape(kind: TensorType | SequenceType) -> Any:
    return _proto_shape(kind.shape if isinstance(kind, TensorType) else ())


def _proto_shape(shape: Shape) -> Any:
    if shape is None:
        return TensorShapeProto(unknown_rank=True)
    dims = (TensorShapeProto.Dim(size=-1 if size is None else size) for size in shape)
    return TensorShapeProto(dim=dims)
