"""Values as people write them: `[3, 1, 4]`, `tea`, `["green tea", tea]`.

A string has quotes where it would not stand out as one without them, and `\\xff` for what is not
UTF-8.  Characters that cannot be seen are left to whoever prints the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tffc.data.arrays import extent
from tffc.ir.dtypes import DType

Number = Callable[[Any], str]
"""Writes a floating-point number."""

PLAIN = re.compile(r"[^\s\[\]<>,\"]+")
"""Strings that stand without quotes."""

LONGEST = 16
"""How many elements an array or a sequence has at most that is written whole beside others."""

LONGEST_TEXT = 80
"""How many characters strings have at most that are written whole beside others."""

LEADING = 6
"""How many elements of a row are written where not all are."""


def tensor_text(value: Any, dtype: DType, number: Number = str) -> str:
    """Return a tensor of an element type as text, all of it."""
    array = _array(value, dtype)
    return _nested(map(_item(number), array.ravel()), array.shape)


def short_text(value: Any, dtype: DType, number: Number = str) -> str | None:
    """Return a tensor as text if it is short, and None otherwise."""
    array = _array(value, dtype)
    if extent(array.shape) > LONGEST:
        return None
    text = tensor_text(array, dtype, number)
    return None if array.dtype.kind == "O" and len(text) > LONGEST_TEXT else text


def leading_text(value: Any, dtype: DType, number: Number = str) -> str:
    """Return a tensor as text, of which only the beginning if it is long."""
    return short_text(value, dtype, number) or _leading(_array(value, dtype), _item(number))


def rows(value: Any, dtype: DType, number: Number = str) -> Iterator[str]:
    """Yield a tensor as text, all of it, with a line for each row of its last dimension."""
    array = _array(value, dtype)
    if array.ndim < 2 or not array.size:
        yield tensor_text(array, dtype, number)
        return
    item = _item(number)
    lines = array.reshape(-1, array.shape[-1])
    # After so many rows a dimension begins anew.
    steps = [math.prod(array.shape[at:-1]) for at in range(array.ndim - 1)]
    count, inner = len(lines), steps[-1]
    for at, line in enumerate(lines):
        opened = 0 if at % inner else sum(at % step == 0 for step in steps)
        closed = 0 if (at + 1) % inner else sum((at + 1) % step == 0 for step in steps)
        text = "[" + ", ".join(map(item, line)) + "]"
        margin = " " * (array.ndim - 1 - opened)
        yield margin + "[" * opened + text + "]" * closed + ("," if at + 1 < count else "")


def string_text(text: str) -> str:
    """Return a string without quotes if it is a word, and with quotes otherwise."""
    if PLAIN.fullmatch(text):
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _array(value: Any, dtype: DType) -> Any:
    return np.asarray(value, dtype=dtype.dtype)


def _item(number: Number) -> Callable[[Any], str]:
    """Return a function that writes an element of an array."""

    def write(item: Any) -> str:
        if isinstance(item, bytes):
            return string_text(item.decode(errors="backslashreplace"))
        kind = item.dtype.kind
        if kind == "c":
            return f"{number(item.real)}{'' if _is_signed(item.imag) else '+'}{number(item.imag)}j"
        return str(item) if kind in "biu" else number(item)

    return write


def _is_signed(number: Any) -> bool:
    return str(number).startswith("-")


def _nested(texts: Iterator[str], shape: tuple[int, ...]) -> str:
    """Return the texts of an array's elements in brackets; there are few dimensions."""
    if not shape:
        return next(texts)
    return "[" + ", ".join(_nested(texts, shape[1:]) for _ in range(shape[0])) + "]"


def _leading(array: Any, item: Callable[[Any], str]) -> str:
    if array.ndim == 0:
        text = item(array[()])
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    count = LEADING if array.ndim == 1 else 1
    shown = [_leading(_array_of(each), item) for each in array[:count]]
    return "[" + ", ".join([*shown, *(["..."] if len(array) > count else [])]) + "]"


def _array_of(element: Any) -> Any:
    """Return an element of an array as an array; a string is one."""
    return np.asarray(element, dtype=object) if isinstance(element, bytes) else np.asarray(element)
