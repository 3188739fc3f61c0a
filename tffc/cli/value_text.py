"""Values as text for people: `[3, 1, 4]`, `tea`, `["green tea", tea]`.

A string is quoted unless it is a single word, and has `\xff` for bytes that are not UTF-8.  The
caller escapes unprintable characters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.runtime.data.arrays import extent

Number = Callable[[Any], str]
"""Formats a floating-point number."""

PLAIN = re.compile(r"[^\s\[\]<>,\"]+")
"""Matches strings that need no quotes."""

LONGEST = 16
"""The most elements of an array or a sequence that is written in full."""

LONGEST_TEXT = 80
"""The most characters of strings that are written in full."""

LEADING = 6
"""The number of elements of an abridged row that are written."""


def tensor_text(value: Any, dtype: DType, number: Number = str) -> str:
    """Return a tensor of an element type as text, in full."""
    array = _array(value, dtype)
    return _nested(map(_item(number), array.ravel()), array.shape)


def short_text(value: Any, dtype: DType, number: Number = str) -> str | None:
    """Return a tensor as text, or None if that is long."""
    array = _array(value, dtype)
    if extent(array.shape) > LONGEST:
        return None
    text = tensor_text(array, dtype, number)
    return None if array.dtype.kind == "O" and len(text) > LONGEST_TEXT else text


def leading_text(value: Any, dtype: DType) -> str:
    """Return a tensor as text, abridged to its beginning if it is long."""
    return short_text(value, dtype) or _leading(_array(value, dtype), _item(str))


def rows(value: Any, dtype: DType) -> Iterator[str]:
    """Yield a tensor as text in full, one line for each row of its last dimension."""
    array = _array(value, dtype)
    if array.ndim < 2 or not array.size:
        yield tensor_text(array, dtype)
        return
    item = _item(str)
    lines = array.reshape(-1, array.shape[-1])
    # After this many rows a new slice of an outer dimension begins.
    steps = [math.prod(array.shape[at:-1]) for at in range(array.ndim - 1)]
    count, inner = len(lines), steps[-1]
    for at, line in enumerate(lines):
        opened = 0 if at % inner else sum(at % step == 0 for step in steps)
        closed = 0 if (at + 1) % inner else sum((at + 1) % step == 0 for step in steps)
        text = "[" + ", ".join(map(item, line)) + "]"
        margin = " " * (array.ndim - 1 - opened)
        yield margin + "[" * opened + text + "]" * closed + ("," if at + 1 < count else "")


def string_text(text: str) -> str:
    """Return a string, quoted unless it is a single word."""
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
            sign = "" if str(item.imag).startswith("-") else "+"
            return f"{number(item.real)}{sign}{number(item.imag)}j"
        return str(item) if kind in "biu" else number(item)

    return write


def _nested(texts: Iterator[str], shape: tuple[int, ...]) -> str:
    """Return the texts of an array's elements in nested brackets.

    Recursive: arrays have few dimensions.
    """
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
    """Return an element of an array as an array; a string becomes a scalar array."""
    return np.asarray(element, dtype=object) if isinstance(element, bytes) else np.asarray(element)
