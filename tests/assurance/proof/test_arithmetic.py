"""Proofs of rounds with arithmetic, for every operator and kind of number."""

from __future__ import annotations

import pytest

from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.language import Node
from tffc.language.notation import parse

OPERATORS = ("generic_plus", "generic_multiply", "generic_divide")
QUOTIENTS = {"int8": "float32", "uint16": "float32", "int32": "float64", "int64": "float64"}
"""What integers of these types give when they are divided."""


def round_of(operator: str, operand: str, result: str, *, swaps: bool = False) -> Node:
    """A round whose output is an operator of the two parts of its state."""
    state = f"<{operand},{operand}>"
    operands = "<x[1],x[0]>" if swaps else "<x[0],x[1]>"
    return parse(f"""
        (arg: <state={state}@SERVER,data={{int32}}@CLIENTS> -> <
          arg[0],
          <
            federated_apply:(<({state} -> {result}),{state}@SERVER> -> {result}@SERVER)(<
              (x: {state} -> {operator}:({state} -> {result})({operands})),
              arg[0]
            >),
            federated_sum:({{int32}}@CLIENTS -> int32@SERVER)(arg[1])
          >
        >)""")


def answer(program: Node, compiled: Node) -> Answer:
    """Whether a program is the compiled form of another."""
    components = compile_form(compiled, "mapreduce").components()
    return prove(program, "mapreduce", components).answer


@pytest.mark.parametrize("dtype", [*QUOTIENTS, "bfloat16", "float16", "float64", "complex64"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str, dtype: str) -> None:
    number = QUOTIENTS.get(dtype, dtype) if operator == "generic_divide" else dtype
    program = round_of(operator, f"<a={dtype}[2],b={dtype}>", f"<a={number}[2],b={number}>")
    assert answer(program, program) is Answer.PROVED


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_operands_that_change_places(dtype: str) -> None:
    given = "generic_divide", dtype, QUOTIENTS.get(dtype, dtype)
    assert answer(round_of(*given), round_of(*given, swaps=True)) is Answer.DIFFERENT
