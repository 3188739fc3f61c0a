"""Values as bytes, for sending them to other processes.

Every value that `tffc.backends.forms.steps` allows has exactly one encoding, so equal values have
equal bytes.  Unlike unpickling, decoding runs no code from the bytes.  Each part consists of a
letter, counts and the content:

    N                           None
    B length bytes              a byte string
    T count, L count            a tuple, a list: the elements follow
    F all_equal count           a federated value: the members follow
    A dtype rank sizes bytes    an array, or a scalar of rank 0; its numbers in row-major order
    S rank sizes                an array of strings, which follow as parts
    R                           the next of the arrays that are sent beside the bytes

Numbers are little-endian; counts have eight bytes.
"""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tffc.language.array import MAX_RANK
from tffc.language.dtypes import DType
from tffc.language.values.concrete import Federated, Stacked
from tffc.support import errors
from tffc.support.errors import TffcError
from tffc.support.guards import Array, Scalar, is_array, is_listing, is_numpy
from tffc.support.trampoline import Task, run

NUMBERED = {dtype.number: dtype.dtype for dtype in DType if dtype is not DType.STRING}
NUMBERS = {dtype: number for number, dtype in NUMBERED.items()}


def encode(value: object, beside: list[Array] | None = None) -> bytes:
    """Return the encoding of a value.

    If `beside` is given, arrays of NumPy's own element types are appended to that list instead of
    being encoded.

    Raises:
      TypeError: the value contains an object of a class that has no encoding.
    """
    parts: list[bytes] = []
    stack = [value]
    while stack:
        item = stack.pop()
        inner = _encode_one(item, parts, beside)
        stack.extend(reversed(inner))
    return b"".join(parts)


def _encode_one(item: object, parts: list[bytes], beside: list[Array] | None) -> Sequence[object]:
    """Append the encoding of an item to `parts`, except for its inner items, which are returned."""
    match item:
        case None:
            parts.append(b"N")
        case bytes():
            parts += b"B", _numbers(len(item)), item
        case Stacked():
            parts += b"L", _numbers(len(item))
            return item
        case _ if is_listing(item):
            parts += b"T" if isinstance(item, tuple) else b"L", _numbers(len(item))
            return item
        case Federated():
            parts += b"F", _numbers(item.all_equal, len(item.members))
            return item.members
        case _ if is_array(item) and item.dtype.kind == "O":
            parts += b"S", _numbers(item.ndim, *item.shape)
            return item.ravel().tolist()
        case _ if is_numpy(item) and beside is not None and item.dtype.kind in "biufc":
            parts.append(b"R")
            beside.append(_little_endian(item))
        case _ if is_numpy(item) and item.dtype in NUMBERS:
            content = _little_endian(item).tobytes()
            parts += b"A", _numbers(NUMBERS[item.dtype], item.ndim, *item.shape), content
        case _:
            raise TypeError(f"a {type(item).__name__} is not part of a value")
    return ()


def _little_endian(item: Array | Scalar) -> Array:
    return np.asarray(item).astype(item.dtype.newbyteorder("<"), copy=False)


def decode(data: bytes, beside: Iterable[object] = ()) -> Any:
    """Return the value encoded in bytes, and in the arrays `beside` them.

    Raises:
      ValueError: the bytes are not the result of `encode`.
    """
    reader = _Reader(data, iter(beside))
    value = run(reader.value())
    reader.check_end()
    return value


class _Reader:
    """Decodes untrusted bytes: it never allocates more than the bytes can hold."""

    def __init__(self, data: bytes, beside: Iterator[object]) -> None:
        self._stream = io.BytesIO(data)
        self._size = len(data)
        self._beside = beside

    def check_end(self) -> None:
        if self._left() or next(self._beside, None) is not None:
            raise ValueError("something follows the value")

    def value(self) -> Task[Any]:
        match self._stream.read(1):
            case b"N":
                return None
            case b"B":
                return self._bytes(self._count())
            case b"T":
                return tuple((yield self._values(self._count())))
            case b"L":
                return (yield self._values(self._count()))
            case b"F":
                all_equal = bool(self._number())
                members = yield self._values(self._count())
                return Federated(tuple(members), all_equal)
            case b"S":
                shape = self._shape()
                strings = np.empty(self._checked(math.prod(shape)), dtype=object)
                strings[:] = yield self._values(strings.size)
                if not all(isinstance(string, bytes) for string in strings):
                    raise ValueError("an array of strings holds something else")
                return strings.reshape(shape)
            case b"A":
                return self._array()
            case b"R":
                return self._array_beside()
            case letter:
                raise ValueError(f"no value begins with {letter!r}")

    def _values(self, count: int) -> Task[list[Any]]:
        items: list[Any] = []
        for _ in range(count):
            items.append((yield self.value()))
        return items

    def _array(self) -> Any:
        dtype = NUMBERED.get(self._number())
        if dtype is None:
            raise ValueError("there is no such element type")
        shape = self._shape()
        content = bytearray(self._bytes(self._checked(math.prod(shape) * dtype.itemsize)))
        if dtype == np.bool_ and max(content, default=0) > 1:
            raise ValueError("a boolean is neither true nor false")
        little = np.frombuffer(content, dtype.newbyteorder("<"))
        return little.astype(dtype, copy=False).reshape(shape)[()]

    def _array_beside(self) -> Any:
        array = next(self._beside, None)
        if not is_array(array) or array.dtype.newbyteorder("=") not in NUMBERS:
            raise ValueError("an array of numbers is missing beside the value")
        return array.astype(array.dtype.newbyteorder("="), copy=False)[()]

    def _bytes(self, count: int) -> bytes:
        return self._stream.read(self._checked(count))

    def _number(self) -> int:
        (value,) = struct.unpack("<q", self._bytes(8))
        return value

    def _count(self) -> int:
        """Return the number of parts that follow, each of which takes at least a byte."""
        return self._checked(self._number())

    def _shape(self) -> tuple[int, ...]:
        rank = self._count()
        if rank > MAX_RANK:
            raise ValueError("an array has too many dimensions")
        shape = tuple(self._number() for _ in range(rank))
        if min(shape, default=0) < 0:
            raise ValueError("a shape is negative")
        return shape

    def _checked(self, count: int) -> int:
        if not 0 <= count <= self._left():
            raise ValueError("the value ends too soon")
        return count

    def _left(self) -> int:
        return self._size - self._stream.tell()


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def error_to_bytes(error: TffcError) -> bytes:
    """Encode an error, without its span, which workers do not know."""
    fields = [type(error).__name__, error.code, error.message, error.notes, error.help]
    return json.dumps(fields).encode()


def error_from_bytes(content: bytes) -> TffcError:
    """Restore an error from the result of `error_to_bytes`."""
    name, code, message, notes, help = json.loads(content)
    return getattr(errors, name)(code, message, notes=tuple(notes), help=help)
