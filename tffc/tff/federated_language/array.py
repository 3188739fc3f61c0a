"""Constant arrays of NumPy and Python, and their messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.graphs.proto.encoding import Place, joined
from tffc.graphs.proto.messages import message_content
from tffc.language.array import infer_dtype, is_compatible, to_array
from tffc.language.dtypes import DType
from tffc.language.wire.arrays import ARRAY, array_fields, read_array
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import (
    LanguageTypeError,
    LanguageValueError,
    UnsupportedError,
    WireError,
    reader,
)
from tffc.tff.federated_language import dtypes, messages, shapes

Array = bool | int | float | complex | str | bytes | np.generic | np.ndarray
"""A scalar of Python or NumPy, or an array of NumPy."""


def _inferred(value: object) -> DType:
    """Return the element type of a constant.

    Raises:
      UnsupportedError: it is no constant.
    """
    try:
        return infer_dtype(value)
    except UnsupportedError:
        raise
    except LanguageTypeError as error:
        raise UnsupportedError("E120", error.message, help=error.help) from None


@entry_point
def to_proto(value: Any, *, dtype_hint: Any = None) -> Any:
    """Return a constant as a message `Array`; `dtype_hint` is its element type, if it is not that
    of the value.

    Raises:
      UnsupportedError: it is no constant.
      LanguageValueError: it does not fit the element type, or that is none.
    """
    content = message_content(ARRAY, array_fields(_array(value, dtype_hint)), {})
    return messages.Array.FromString(joined(content))


def _array(value: Any, dtype_hint: Any) -> Any:
    if dtype_hint is None:
        return to_array(value, _inferred(value))
    if not dtypes.is_valid_dtype(dtype_hint):
        raise LanguageValueError(
            "E111",
            f"{dtype_hint!r} is not the class of an element type",
            help="give a class of NumPy, such as np.int32",
        )
    return to_array(value, dtypes.element_type(dtype_hint))


@entry_point
def from_proto(array_pb: Any) -> Any:
    """Return the constant in a message `Array`: one of NumPy's, and `bytes` for a string.

    Raises:
      WireError: the message is malformed.
      UnsupportedError: its element type is none of the language.
    """
    dtypes.from_proto(array_pb.dtype)
    return _read(array_pb.SerializeToString())


@reader("a constant", WireError)
def _read(data: bytes) -> Any:
    return read_array(data, Place(0, len(data))).numpy()


@entry_point
def to_proto_content(value: Any, *, dtype_hint: Any = None) -> Any:
    """Return a constant as a message `Array` that has its elements as bytes, which strings cannot
    be.

    Raises:
      UnsupportedError: it is a string, or no constant.
      LanguageValueError: it does not fit the element type, or that is none.
    """
    array = _array(value, dtype_hint)
    if isinstance(array.content, tuple):
        raise UnsupportedError(
            "E111",
            "the bytes of strings do not tell where one ends",
            help="call array_to_proto, which lists them",
        )
    shape = shapes.to_proto(array.shape)
    return messages.Array(dtype=array.dtype.number, shape=shape, content=array.content)


@entry_point
def from_proto_content(array_pb: Any) -> Any:
    """Return the constant in a message `Array` that has its elements as bytes.

    Raises:
      WireError: there are more or fewer than its shape says.
      UnsupportedError: its element type is none of the language, or that of strings.
    """
    dtype = dtypes.element_type(dtypes.from_proto(array_pb.dtype))
    if dtype is DType.STRING:
        raise UnsupportedError(
            "E111", "the bytes of strings do not tell where one ends", help="call array_from_proto"
        )
    shape: Any = shapes.from_proto(array_pb.shape)
    try:
        flat: Any = np.frombuffer(array_pb.content, dtype.dtype.newbyteorder("<")).astype(
            dtype.dtype
        )
        return flat if shape is None else flat.reshape(shape)[()]
    except ValueError as error:
        raise WireError(
            "E216",
            f"{len(array_pb.content)} bytes are no {dtype} of shape {shape}: {error}",
            help="give a message that array_to_proto_content has made",
        ) from None


@entry_point
def is_compatible_dtype(value: Any, dtype: Any) -> bool:
    """Return whether a constant has elements of an element type's kind, which it can hold."""
    return dtypes.is_valid_dtype(dtype) and is_compatible(value, dtypes.element_type(dtype))


@entry_point
def is_compatible_shape(value: Any, shape: object) -> bool:
    """Return whether a constant has a shape."""
    return shapes.is_compatible_with(shape, getattr(value, "shape", ()))
