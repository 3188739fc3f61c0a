"""HLO modules as plain data, read without JAX.

The numbers of fields are those of XLA's messages HloModuleProto, HloComputationProto,
HloInstructionProto, ShapeProto and LiteralProto.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Mapping
from typing import Any

from tffc.graphs.proto.encoding import Kind, Place, read_message, schema, signed
from tffc.language.dtypes import DType
from tffc.support.errors import WireError, reader

MODULE = schema(computations=(3, Kind.MESSAGES), entry=(6, Kind.INTEGER))
COMPUTATION = schema(
    instructions=(2, Kind.MESSAGES), number=(5, Kind.INTEGER), root=(6, Kind.INTEGER)
)
INSTRUCTION = schema(
    opcode=(2, Kind.STRING),
    shape=(3, Kind.MESSAGE),
    literal=(8, Kind.MESSAGE),
    parameter=(9, Kind.INTEGER),
    tuple_index=(13, Kind.INTEGER),
    dimensions=(14, Kind.INTEGERS),
    slices=(17, Kind.MESSAGES),
    padding=(21, Kind.MESSAGE),
    target=(28, Kind.STRING),
    dot=(30, Kind.MESSAGE),
    number=(35, Kind.INTEGER),
    operands=(36, Kind.INTEGERS),
    called=(38, Kind.INTEGERS),
    direction=(63, Kind.STRING),
)
SHAPE = schema(
    element=(2, Kind.INTEGER),
    dimensions=(3, Kind.INTEGERS),
    elements=(4, Kind.MESSAGES),
    layout=(5, Kind.MESSAGE),
    dynamic=(6, Kind.INTEGERS),
)
LAYOUT = schema(order=(1, Kind.INTEGERS))
LITERAL = schema(shape=(1, Kind.MESSAGE))
RANGE = schema(first=(1, Kind.INTEGER), second=(2, Kind.INTEGER), third=(3, Kind.INTEGER))
PADDING = schema(dimensions=(1, Kind.MESSAGES))
DOT = schema(
    left=(1, Kind.INTEGERS),
    right=(2, Kind.INTEGERS),
    left_batch=(3, Kind.INTEGERS),
    right_batch=(4, Kind.INTEGERS),
)
OF_DOT = "left", "right", "left_batch", "right_batch"

ELEMENTS = {
    1: (DType.BOOL, 2, "?"),
    2: (DType.INT8, 15, ""),
    3: (DType.INT16, 17, ""),
    4: (DType.INT32, 4, "i"),
    5: (DType.INT64, 5, "q"),
    6: (DType.UINT8, 3, ""),
    7: (DType.UINT16, 16, ""),
    8: (DType.UINT32, 6, "I"),
    9: (DType.UINT64, 7, "Q"),
    10: (DType.FLOAT16, 11, ""),
    11: (DType.FLOAT32, 8, ""),
    12: (DType.FLOAT64, 9, ""),
    15: (DType.COMPLEX64, 12, ""),
    16: (DType.BFLOAT16, 13, ""),
    18: (DType.COMPLEX128, 18, ""),
}
"""For each XLA element type: ours, the field of a literal with its elements, and their `struct`
format if they are encoded as varints."""

TUPLE = 13
"""The element type of tuples."""

Range = tuple[int, int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class HloShape:
    """The shape of an array, or of a tuple of `elements`.

    The element type or the sizes are None if tffc does not know them, or if they change.  Tuples in
    a tuple are not looked into.
    """

    element: DType | None = None
    sizes: tuple[int, ...] | None = None
    elements: tuple[HloShape, ...] = ()
    is_tuple: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HloInstruction:
    """An instruction; `operands` are instructions of its computation by number, and `called`
    computations.

    A constant has its value as `literal`, if that can be told.  `slices` are begin, end and step of
    each dimension, `padding` what is added before, behind and between its elements, and `dot` the
    dimensions of a product of arrays: those that are added up and those that stay, for both.  A
    `custom-call` calls the function `target`.
    """

    number: int
    opcode: str
    shape: HloShape
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()
    literal: Any = None
    parameter: int = 0
    tuple_index: int = 0
    dimensions: tuple[int, ...] = ()
    slices: tuple[Range, ...] = ()
    padding: tuple[Range, ...] = ()
    dot: tuple[tuple[int, ...], ...] = ()
    direction: str = ""
    target: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HloComputation:
    """A computation; what an instruction takes stands before it."""

    instructions: tuple[HloInstruction, ...]
    root: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HloModule:
    """Computations by number, and the number of the one that a call of the module computes."""

    computations: Mapping[int, HloComputation]
    entry: int


@reader("a module of HLO", WireError)
def read_hlo(module: bytes) -> HloModule:
    """Return the content of a serialized HloModuleProto.

    Raises:
      WireError: it is malformed, or has two computations or instructions of one number.
    """
    fields = read_message(module, Place(0, len(module)), MODULE)
    computations: dict[int, HloComputation] = {}
    for place in fields.get("computations", ()):
        inside = read_message(module, place, COMPUTATION)
        number = inside.get("number", 0)
        if number in computations:
            place.refuse("E203", f"two computations have the number {number}")
        computations[number] = _computation(module, inside)
    return HloModule(computations, fields.get("entry", 0))


def _computation(data: bytes, fields: dict[str, Any]) -> HloComputation:
    instructions: dict[int, HloInstruction] = {}
    for place in fields.get("instructions", ()):
        instruction = _instruction(data, place)
        if instruction.number in instructions:
            place.refuse("E203", f"two instructions have the number {instruction.number}")
        instructions[instruction.number] = instruction
    return HloComputation(tuple(instructions.values()), fields.get("root", 0))


def _instruction(data: bytes, place: Place) -> HloInstruction:
    fields = read_message(data, place, INSTRUCTION)
    padding, dot = fields.get("padding"), fields.get("dot")
    listed: list[Place] = (
        [] if padding is None else read_message(data, padding, PADDING).get("dimensions", [])
    )
    products = {} if dot is None else read_message(data, dot, DOT)
    return HloInstruction(
        fields.get("number", 0),
        fields.get("opcode", ""),
        _shape(data, fields["shape"]) if "shape" in fields else HloShape(),
        tuple(fields.get("operands", ())),
        tuple(fields.get("called", ())),
        _literal(data, fields["literal"]) if "literal" in fields else None,
        fields.get("parameter", 0),
        fields.get("tuple_index", 0),
        _signed(fields.get("dimensions", ())),
        tuple(_range(data, each) for each in fields.get("slices", ())),
        tuple(_range(data, each) for each in listed),
        tuple(
            _signed(products.get(name, ()))
            for name in ("left", "right", "left_batch", "right_batch")
        ),
        fields.get("direction", ""),
        fields.get("target", ""),
    )


def _signed(numbers: Any) -> tuple[int, ...]:
    return tuple(signed(number) for number in numbers)


def _range(data: bytes, place: Place) -> Range:
    fields = read_message(data, place, RANGE)
    first, second, third = (signed(fields.get(n, 0)) for n in ("first", "second", "third"))
    return first, second, third


def _shape(data: bytes, place: Place, *, is_inner: bool = False) -> HloShape:
    fields = read_message(data, place, SHAPE)
    element = fields.get("element", 0)
    if element == TUPLE:
        inner: list[Place] = [] if is_inner else fields.get("elements", [])
        shapes = tuple(_shape(data, each, is_inner=True) for each in inner)
        return HloShape(elements=shapes, is_tuple=True)
    sizes = _signed(fields.get("dimensions", ()))
    is_fixed = not any(fields.get("dynamic", ())) and all(size >= 0 for size in sizes)
    dtype = ELEMENTS[element][0] if element in ELEMENTS else None
    return HloShape(dtype, sizes if is_fixed and dtype is not None else None)


def _literal(data: bytes, place: Place) -> Any:
    """Return the array of a literal, or None if it is none of numbers in the order of its rows."""
    fields = read_message(data, place, LITERAL)
    if "shape" not in fields or not _is_in_rows(data, fields["shape"]):
        return None
    shape = _shape(data, fields["shape"])
    if shape.element is None or shape.sizes is None:
        return None
    _, field, code = next(row for row in ELEMENTS.values() if row[0] is shape.element)
    kind = Kind.INTEGERS if code else Kind.BYTES
    held = read_message(data, place, schema(elements=(field, kind))).get("elements", b"")
    elements = packed_literal(held, code) if code else held
    if len(elements) != math.prod(shape.sizes) * shape.element.size:
        return None
    import numpy as np  # late, so that commands without literals stay light

    if shape.element is DType.BFLOAT16:
        wide = np.frombuffer(elements, "<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(shape.sizes)
    dtype = np.dtype(shape.element.dtype).newbyteorder("<")
    return np.frombuffer(elements, dtype).reshape(shape.sizes)


def _is_in_rows(data: bytes, place: Place) -> bool:
    """Tell whether the last dimension of a shape is the one whose elements are side by side."""
    fields = read_message(data, place, SHAPE)
    if "layout" not in fields:
        return True
    order = _signed(read_message(data, fields["layout"], LAYOUT).get("order", ()))
    return order in ((), tuple(reversed(range(len(fields.get("dimensions", ()))))))


def packed_literal(values: list[int], code: str) -> bytes:
    """Return elements of a literal, which are encoded as varints, in a format of `struct`."""
    bits = 8 * struct.calcsize(f"<{code}")
    if code in "iq":
        values = [signed(value & (1 << bits) - 1, bits) for value in values]
    return struct.pack(f"<{len(values)}{code}", *values)
