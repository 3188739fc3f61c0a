"""Values as bytes, for engines that send them to other processes.

What `tffc.backends.forms.steps` lets values be made of has one encoding each, so equal values give
equal bytes, and reading them runs no code that they bring along, as unpickling does.  Each part is
a letter, the numbers that say how much follows, and what follows:

    N                           None
    B length bytes              a string of bytes
    T count, L count            a tuple, a list: the parts after it
    F all_equal count           a federated value: its members after it
    A dtype rank sizes bytes    an array, or a scalar of rank 0; the numbers as they are in memory
    S rank sizes                an array of strings, which follow as parts

Numbers are eight bytes each, in the order of the machine, which is the same on all of a cluster.
"""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc import errors
from tffc.errors import TffcError
from tffc.ir.dtypes import DType
from tffc.ir.trampoline import Task, run
from tffc.values.concrete import Federated, Stacked

NUMBERED = {dtype.number: dtype.dtype for dtype in DType if dtype is not DType.STRING}
NUMBERS = {dtype: number for number, dtype in NUMBERED.items()}


def encode(value: Any) -> bytes:
    """Return the bytes of a value.

    Raises:
      TypeError: it is made of something else than values are.
    """
    parts: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        inner = _encode_one(item, parts)
        stack.extend(reversed(inner))
    return b"".join(parts)


def _encode_one(item: Any, parts: list[Any]) -> Sequence[Any]:
    """Append the encoding of an item without those of the items in it, which it returns."""
    match item:
        case None:
            parts.append(b"N")
        case bytes():
            parts += b"B", _numbers(len(item)), item
        case tuple() | list() | Stacked():
            parts += b"T" if isinstance(item, tuple) else b"L", _numbers(len(item))
            return item
        case Federated():
            parts += b"F", _numbers(item.all_equal, len(item.members))
            return item.members
        case np.ndarray(dtype=np.dtype(kind="O")):
            parts += b"S", _numbers(item.ndim, *item.shape)
            return item.ravel().tolist()
        case np.ndarray() | np.generic() if item.dtype in NUMBERS:
            parts += b"A", _numbers(NUMBERS[item.dtype], item.ndim, *item.shape), item.tobytes()
        case _:
            raise TypeError(f"a {type(item).__name__} is not part of a value")
    return ()


def decode(data: bytes) -> Any:
    """Return the value that bytes were made of by `encode`."""
    return run(_decode(io.BytesIO(data)))


def _decode(stream: io.BytesIO) -> Task[Any]:
    match stream.read(1):
        case b"N":
            return None
        case b"B":
            return stream.read(_number(stream))
        case b"T":
            return tuple((yield _decode_each(stream, _number(stream))))
        case b"L":
            return (yield _decode_each(stream, _number(stream)))
        case b"F":
            all_equal = bool(_number(stream))
            members = yield _decode_each(stream, _number(stream))
            return Federated(tuple(members), all_equal)
        case b"S":
            shape = _shape(stream)
            strings = np.empty(math.prod(shape), dtype=object)
            strings[:] = yield _decode_each(stream, strings.size)
            return strings.reshape(shape)
        case b"A":
            dtype = NUMBERED[_number(stream)]
            shape = _shape(stream)
            content = bytearray(stream.read(math.prod(shape) * dtype.itemsize))
            return np.frombuffer(content, dtype).reshape(shape)[()]
        case letter:
            raise ValueError(f"no value begins with {letter!r}")


def _decode_each(stream: io.BytesIO, count: int) -> Task[list[Any]]:
    items: list[Any] = []
    for _ in range(count):
        items.append((yield _decode(stream)))
    return items


def _numbers(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def _number(stream: io.BytesIO) -> int:
    (value,) = struct.unpack("=q", stream.read(8))
    return value


def _shape(stream: io.BytesIO) -> tuple[int, ...]:
    return tuple(_number(stream) for _ in range(_number(stream)))


def error_to_bytes(error: TffcError) -> bytes:
    """Return an error as bytes, without its place in the source, which is not known on workers."""
    fields = [type(error).__name__, error.code, error.message, error.notes, error.help]
    return json.dumps(fields).encode()


def error_from_bytes(content: bytes) -> TffcError:
    """Return the error of which `error_to_bytes` gave the bytes."""
    name, code, message, notes, help = json.loads(content)
    return getattr(errors, name)(code, message, notes=tuple(notes), help=help)
