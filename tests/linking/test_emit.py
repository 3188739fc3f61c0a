"""Expressions evaluated into a graph."""

from __future__ import annotations

from tffc.ir.nodes import Lambda
from tffc.ir.notation import parse
from tffc.ir.types import StructType
from tffc.linking.emit import Emitter
from tffc.linking.operand import elements_of


def test_selections_structs_and_blocks() -> None:
    text = "(p: <int32,<float32,str>> -> (let y=p[1] in <y[1],<p[0],y[0]>>))"
    program = parse(text)
    assert isinstance(program, Lambda)
    assert isinstance(program.parameter_type, StructType)
    emitter = Emitter()
    given = emitter.builder.parameter(program.parameter_type)
    first, inner = elements_of(given) or ()
    second, third = elements_of(inner) or ()
    assert emitter.apply(program, given) == (third, (first, second))
