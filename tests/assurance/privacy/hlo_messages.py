"""HLO modules written field by field, as somebody could who means harm, without XLA."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tffc.graphs.proto.encoding import content_field, integer_field, packed_field, string_field
from tffc.language.nodes import Compiled
from tffc.language.wire import read_xla, write_xla

FLOAT, INT, TUPLE = 11, 4, 13


def shape(sizes: Sequence[int] = (), element: int = FLOAT) -> bytes:
    return integer_field(2, element) + packed_field(3, sizes)


def tuple_of(*shapes: bytes) -> bytes:
    return integer_field(2, TUPLE) + b"".join(content_field(4, each) for each in shapes)


def instruction(
    number: int,
    opcode: str,
    of: bytes,
    operands: Sequence[int] = (),
    called: Sequence[int] = (),
    **fields: int,
) -> bytes:
    """A serialized HloInstructionProto; `parameter`, `index` and `dimension` are its fields."""
    numbers = {"parameter": 9, "index": 13, "dimension": 14}
    return b"".join(
        (
            string_field(2, opcode),
            content_field(3, of),
            *(integer_field(numbers[name], value) for name, value in fields.items()),
            integer_field(35, number),
            packed_field(36, operands),
            packed_field(38, called),
        )
    )


def computation(number: int, root: int, *instructions: bytes) -> bytes:
    whole = b"".join(content_field(2, each) for each in instructions)
    return whole + integer_field(5, number) + integer_field(6, root)


def module(entry: int, *computations: bytes) -> bytes:
    """A serialized HloModuleProto."""
    return b"".join(content_field(3, each) for each in computations) + integer_field(6, entry)


def with_hlo(section: Compiled, hlo: bytes) -> Compiled:
    """The section with another HLO module, and without StableHLO."""
    content = read_xla(section.payload)._replace(hlo_module=hlo, stablehlo=b"")
    return dataclasses.replace(section, payload=write_xla(content))
