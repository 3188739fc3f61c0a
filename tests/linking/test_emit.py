"""Expressions evaluated into a graph."""

from __future__ import annotations

from tffc.language.nodes import Lambda
from tffc.language.notation import parse
from tffc.language.types import StructType
from tffc.linking.emit import Emitter
from tffc.linking.operand import elements_of


def test_selections_structs_and_blocks() -> None:
    text = "(p: <int32,<float32,str>> -> (let y=p[1] in <y[1],<p[0],y[0]>>))"
    program = parse(text)
    assert isinstance(program, Lambda)
    assert isinstance(program.parameter_type, StructType)
    emitter = Emitter()
    parameter = emitter.builder.parameter(program.parameter_type)
    outer = elements_of(parameter)
    assert outer is not None
    first, inner = outer
    pair = elements_of(inner)
    assert pair is not None
    second, third = pair
    assert emitter.apply(program, parameter) == (third, (first, second))
