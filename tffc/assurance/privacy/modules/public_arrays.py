"""What instructions of HLO compute of arrays whose elements are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities.quantity import Shape
from tffc.assurance.privacy.quantities.word_functions import OPERATIONS
from tffc.language.dtypes import DType
from tffc.linking.hlo_modules import HloInstruction

EXACT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "and": np.bitwise_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": np.negative,
    "or": np.bitwise_or,
    "select": np.where,
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
}
"""The operations that are computed of public arrays: NumPy's are those of XLA, to the last bit."""


def elementwise(instruction: HloInstruction, values: Sequence[Any], kind: DType) -> Any:
    """Return what an instruction computes of public numbers, None if that is not known."""
    opcode = instruction.opcode
    if opcode == "convert":
        value = np.asarray(values[0])
        if value.dtype.kind == "f":
            return value.astype(kind.dtype) if kind.is_floating and kind.size >= 4 else None
        return value.astype(kind.dtype) if value.dtype.kind in "biu" and kind.is_integer else None
    if opcode == "compare":
        return OPERATIONS[instruction.direction](*values)
    if opcode.startswith("shift"):
        return _shifted(opcode, *values)
    if opcode not in EXACT:
        return None
    result = EXACT[opcode](*values)
    return np.asarray(result, kind.dtype)


def _shifted(opcode: str, value: Any, bits: Any) -> Any:
    """Return shifted integers: zero where all bits leave them."""
    if opcode == "shift-right-arithmetic":
        return None
    kind = np.asarray(value).dtype
    unsigned = np.asarray(value).view(f"u{kind.itemsize}")
    by = np.asarray(bits).view(f"u{kind.itemsize}")
    width = unsigned.dtype.type(8 * kind.itemsize)
    shift = np.left_shift if opcode == "shift-left" else np.right_shift
    moved = np.where(by < width, shift(unsigned, np.minimum(by, width - 1)), 0)
    return moved.astype(unsigned.dtype).view(kind)


# How instructions move the elements of an array.


def _reshaped(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    return array.reshape(sizes)


def _broadcast(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    axes = instruction.dimensions
    if list(axes) != sorted(set(axes)) or [sizes[axis] for axis in axes] != list(array.shape):
        raise ValueError(axes)
    shape = tuple(size if axis in axes else 1 for axis, size in enumerate(sizes))
    return np.broadcast_to(array.reshape(shape), sizes)


def _sliced(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    if len(instruction.slices) != array.ndim or any(
        s[0] < 0 or s[2] < 1 for s in instruction.slices
    ):
        raise ValueError(instruction.slices)
    return array[tuple(slice(*each) for each in instruction.slices)]


def _sliced_from(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    """XLA moves the start of a slice until it is within the array."""
    if len(places) != array.ndim or len(sizes) != array.ndim:
        raise ValueError(places)
    starts = [
        min(max(start, 0), length - size)
        for start, length, size in zip(places, array.shape, sizes, strict=True)
    ]
    if min(starts, default=0) < 0:
        raise ValueError(places)
    return array[tuple(slice(s, s + size) for s, size in zip(starts, sizes, strict=True))]


def _transposed(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    return array.transpose(instruction.dimensions)


def _reversed(array: Any, instruction: HloInstruction, sizes: Shape, places: list[int]) -> Any:
    return np.flip(array, instruction.dimensions) if instruction.dimensions else array


MOVES: dict[str, Callable[..., Any]] = {
    "reshape": _reshaped,
    "broadcast": _broadcast,
    "slice": _sliced,
    "dynamic-slice": _sliced_from,
    "transpose": _transposed,
    "reverse": _reversed,
}
