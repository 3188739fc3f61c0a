"""Constants in the typed form, with every element exact.

A number is written as usual if reading that gives the same bits, and otherwise as its bits in
hexadecimal.
"""

from __future__ import annotations

import ast
import functools
import math
import struct
from typing import Any

from tffc.language.array import Array
from tffc.language.dtypes import DType

FLOAT_CODES = {DType.FLOAT16: "<e", DType.FLOAT32: "<f", DType.FLOAT64: "<d"}
INTEGER_CODES = dict(
    zip(
        (
            *(DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.INT64),
            *(DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64),
        ),
        "?bhiqBHIQ",
        strict=True,
    )
)
COMPLEX_CODES = {DType.COMPLEX64: "<ff", DType.COMPLEX128: "<dd"}


def constant_text(array: Array) -> str:
    """Return the text of a constant's elements; those of an array are in brackets."""
    if isinstance(array.content, tuple):
        texts = [repr(item) for item in array.content]
    else:
        texts = _texts(array)
    return nested(texts, array.shape, " ")


def _texts(array: Array) -> list[str]:
    """Return the texts of all elements; most numbers are converted together, which takes a tenth of
    the time."""
    dtype, size, content = array.dtype, array.dtype.size, array.content
    assert isinstance(content, bytes)
    if dtype in INTEGER_CODES:
        return list(
            map(str, struct.unpack(f"<{len(content) // size}{INTEGER_CODES[dtype]}", content))
        )
    text_of = functools.cache(_element_text)
    items = (content[at : at + size] for at in range(0, len(content), size))
    if not array.shape:
        return [text_of(item, dtype) for item in items]
    return [
        text_of(item, dtype) if text is None else text
        for item, text in zip(items, _usual_texts(array), strict=True)
    ]


def _usual_texts(array: Array) -> list[str | None]:
    """Return the texts of finite numbers, as `_element_text` gives them, or None for elements that
    need it."""
    from tffc.language.notation.numbers import complex_text, finite_texts

    numbers = array.numpy().ravel()
    if array.dtype in FLOAT_CODES:
        return finite_texts(numbers)
    if array.dtype not in COMPLEX_CODES:
        return [None] * len(numbers)
    pairs = zip(finite_texts(numbers.real), finite_texts(numbers.imag), strict=True)
    return [None if one is None or two is None else complex_text(one, two) for one, two in pairs]


def nested(texts: list[str], shape: tuple[int, ...], separator: str) -> str:
    """Return the texts in brackets that show the shape; `[]` for no texts."""
    if not texts:
        return "[]"
    for size in reversed(shape):
        groups = (texts[at : at + size] for at in range(0, len(texts), size))
        texts = [f"[{separator.join(group)}]" for group in groups]
    return texts[0]


def _element_text(item: bytes, dtype: DType) -> str:
    from tffc.language.notation.numbers import scalar_text

    text = scalar_text(Array(dtype, (), item).numpy())
    return text if element_content(text, dtype) == item else f"0x{item[::-1].hex()}"


def default_dtype(text: str) -> DType | None:
    """Return the element type of a scalar whose text states none; None if it must be stated."""
    if text in ("True", "False"):
        return DType.BOOL
    if text[0] == "b":
        return DType.STRING
    if text.startswith("0x"):
        return None
    if text.endswith(("j", "j)")):
        return DType.COMPLEX128
    return DType.INT32 if text.removeprefix("-").isdecimal() else DType.FLOAT32


def element_content(text: str, dtype: DType) -> bytes:
    """Return the element that a word denotes, as `Array` stores it.

    Raises:
      ValueError, OverflowError: it is not an element of that type.
    """
    if text[0] == "b":
        if dtype is not DType.STRING:
            raise ValueError(text)
        return ast.literal_eval(text)
    if text.startswith("0x"):
        return int(text[2:], 16).to_bytes(dtype.size, "little")
    if text in ("True", "False"):
        if dtype is not DType.BOOL:
            raise ValueError(text)
        return bytes([text == "True"])
    if dtype.is_integer:
        return int(text).to_bytes(dtype.size, "little", signed=dtype.kind == "int")
    return _number_content(text, dtype)


def _number_content(text: str, dtype: DType) -> bytes:
    if dtype in COMPLEX_CODES:
        number = complex(text)
        return struct.pack(COMPLEX_CODES[dtype], number.real, number.imag)
    if dtype in FLOAT_CODES:
        return struct.pack(FLOAT_CODES[dtype], float(text))
    if dtype is not DType.BFLOAT16:
        raise ValueError(text)
    import numpy as np

    with np.errstate(over="ignore"):
        return np.array(float(text)).astype(dtype.dtype).tobytes()


def array_of(words: list[str], skeleton: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return the constant of these elements; `skeleton` has their brackets, and a dot for each
    element.

    Raises:
      ValueError, OverflowError: an element is not of that type, or the brackets do not show the
        shape.
    """
    if len(words) != math.prod(shape):
        raise ValueError(f"{len(words)} elements")
    content: Any = [element_content(word, dtype) for word in words]
    content = tuple(content) if dtype is DType.STRING else b"".join(content)
    array = Array(dtype, shape, content)
    if skeleton != nested(["."] * len(words), shape, ""):
        raise ValueError("brackets")
    return array
