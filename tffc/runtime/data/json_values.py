"""Values as JSON, without loss.

    truth value, integer    true or false; the integer, exact
    float                   a number; "NaN", "Infinity" or "-Infinity" where it is not finite
    complex number          {"real": 1.0, "imag": -2.0}
    string                  its text; {"base64": "/w=="} where it is not UTF-8
    array                   a list, nested if it has more than one dimension
    sequence                a list of its elements
    struct in a sequence    an object with the tensors in it, by the paths to them

A path is the names of elements joined by dots, with positions for elements without a name.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import flatten
from tffc.support.guards import Array
from tffc.support.printable import json_text, printable
from tffc.support.trampoline import Task, run


def to_json(value: Any, type: Type) -> Any:
    """Convert a value to JSON; its type has no functions."""
    return run(_written(value, type))


def _written(value: Any, type: Type) -> Task[Any]:
    match type:
        case TensorType():
            return tensor_to_json(value, type.element_type)
        case SequenceType():
            elements: list[Any] = []
            for element in value:
                elements.append((yield _written(element, type.element)))
            return elements
        case _:
            pass
    parts: dict[str, Any] = {}
    for path, inner, part in zip(paths(type), leaves(type), flatten(value, type), strict=True):
        parts[path] = yield _written(part, inner)
    return parts


def paths(type: Type) -> list[str]:
    """Return the paths to the tensors and sequences in a type, in its order."""
    paths: list[str] = []
    stack: list[tuple[str, Type]] = [("", type)]
    while stack:
        path, part = stack.pop()
        if not isinstance(part, StructType):
            paths.append(path)
            continue
        steps = [str(i) if name is None else _step(name) for i, name in enumerate(part.names)]
        inner = [f"{path}.{step}" if path else step for step in steps]
        stack.extend(reversed(list(zip(inner, part, strict=True))))
    return paths


def _step(name: str) -> str:
    """Return an element's name, quoted where it could be taken for a path or a position."""
    step = name.replace("\\", "\\\\").replace(".", "\\.")
    return f"\\{step}" if step.isdecimal() else step


def tensor_to_json(value: Any, dtype: DType) -> Any:
    """Convert a tensor of an element type to JSON."""
    array = np.asarray(value, dtype=dtype.dtype)
    if dtype.is_floating:
        array = array.astype(np.float64)
        if np.isfinite(array).all():
            return array.tolist()
        return _each(array, finite)
    if dtype is DType.STRING:
        return _each(array, _string)
    if array.dtype.kind == "c":
        return _each(array, _complex)
    return array.tolist()


def finite(number: float) -> float | str:
    """Return a number, or its name as a string if it is not finite."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def cell(value: Any) -> Any:
    """Return a JSON value as a CSV cell: JSON text if it would begin with `"`, `[` or `{`."""
    if isinstance(value, str):
        is_plain = printable(value) == value and not value.startswith(('"', "[", "{"))
        return value if is_plain else json_text(value)
    return json_text(value) if isinstance(value, (list, dict)) else value


def _each(array: Array, write: Callable[[Any], object]) -> Any:
    """Return an array as nested lists, with `write` applied to every element."""
    written: Array = np.empty(array.size, dtype=object)
    written[:] = [write(item) for item in array.ravel().tolist()]
    return written.reshape(array.shape).tolist()


def _string(item: bytes) -> Any:
    try:
        return item.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(item).decode()}


def _complex(item: complex) -> dict[str, float | str]:
    return {"real": finite(item.real), "imag": finite(item.imag)}
