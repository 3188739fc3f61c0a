"""Writes the compiled sections that the cases beside this file share, and prints their table.

python -m tests.passes.write_sections
"""

from __future__ import annotations

import pathlib

from tffc.language import Array, Compiled, DType, StructNode, StructType, TensorType
from tffc.language.notation import typed, write_sections
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.attributes import type_attribute
from tffc.linking.builder import GraphBuilder

FOLDER = pathlib.Path(__file__).parent / "sections"
INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)


def add() -> Compiled:
    """The section `(<int32,int32> -> int32)` that adds."""
    builder = GraphBuilder()
    operands = builder.parameter(StructType([INT, INT]))
    assert isinstance(operands, tuple)
    return builder.finish(GraphArithmetic(builder).plus(*operands), INT)


def seven() -> Compiled:
    """The section `( -> int32)` of a constant."""
    builder = GraphBuilder()
    number = Array(DType.INT32, (), (7).to_bytes(4, "little"))
    return builder.finish(builder.constant(number), INT)


def draw() -> Compiled:
    """The section `( -> float32)` that draws a random number without a seed."""
    builder = GraphBuilder()
    shape = builder.constant(Array(DType.INT32, (0,), b""))
    assert not isinstance(shape, tuple)
    attributes = {"T": type_attribute(INT), "dtype": type_attribute(FLOAT)}
    return builder.finish(builder.add("RandomUniform", [shape], attributes, [FLOAT])[0], FLOAT)


def noise() -> Compiled:
    """The section `(float32 -> float32)` that adds a random number to each number."""
    builder = GraphBuilder()
    number = builder.parameter(FLOAT)
    return builder.finish(GraphArithmetic(builder).plus(number, builder.call(draw(), None)), FLOAT)


def main() -> None:
    named = {"add": add(), "seven": seven(), "draw": draw(), "noise": noise()}
    program = StructNode(
        tuple(
            Compiled(section.kind, section.payload, section.type, name)
            for name, section in named.items()
        )
    )
    write_sections(program, FOLDER)
    print(typed(program))


if __name__ == "__main__":
    main()
