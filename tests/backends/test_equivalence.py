"""The guarantee: what is emitted computes what was written.

Generated rounds are run by the reference interpreter, as they are and as what each form makes of
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.forms import run_mapreduce
from tests.programs import rounds, values
from tffc.backends import MapReduceForm, compile_form, computation_of
from tffc.backends.forms import Form, local_type
from tffc.errors import FormError
from tffc.execution.interpreter import run
from tffc.execution.values import flatten, to_python, to_value
from tffc.ir import Node, SequenceType, StructType, Type
from tffc.ir.types import leaves
from tffc.ir.verify import CALL_DOMINANT, CLOSED, verify
from tffc.ir.wire import from_bytes, to_bytes
from tffc.passes import call_dominant

EXAMPLES = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def rounds_with_inputs(draw: Any, *, secure: bool = False) -> tuple[Node, Any, list[Any]]:
    """A round, a state for it and the data of one to four clients."""
    program = draw(rounds(secure=secure))
    state, data = (local_type(t) for t in parameter_of(program))
    clients = draw(st.lists(values(data), min_size=1, max_size=4))
    return program, draw(values(state)), clients


def compiled(program: Node, kind: str) -> Form:
    """A form of the program.

    Random numbers that two parts of a MapReduceForm need are drawn by both on request only.  What
    generated rounds draw does not tell.
    """
    try:
        return compile_form(program, kind)
    except FormError as error:
        if (kind, error.code) != ("mapreduce", "E532"):
            raise
        return compile_form(program, kind, allow_impure_duplicates=True)


def parameter_of(program: Node) -> StructType:
    parameter, _ = program.type.children()
    assert isinstance(parameter, StructType)
    return parameter


def result_of(program: Node) -> Type:
    return local_type(program.type.children()[1])


def assert_same(type_: Type, found: Any, expected: Any) -> None:
    """Equal numbers of equal types; NaN equals NaN."""
    ones, others = (flatten(to_value(value, type_), type_) for value in (found, expected))
    for leaf, one, other in zip(leaves(type_), ones, others, strict=True):
        if isinstance(leaf, SequenceType):
            for a, b in zip(one, other, strict=True):
                assert_same(leaf.element, to_python(a, leaf.element), to_python(b, leaf.element))
        else:
            np.testing.assert_array_equal(one, other, strict=True)


@EXAMPLES
@given(rounds_with_inputs())
def test_call_dominant_form(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    flat = call_dominant(program)
    verify(flat, (CLOSED, CALL_DOMINANT))
    assert flat.type == program.type
    assert call_dominant(flat) == flat
    expected = run(program, (state, clients))
    assert_same(result_of(program), run(flat, (state, clients)), expected)


@EXAMPLES
@given(rounds_with_inputs(secure=True))
def test_map_reduce_form(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    form = compiled(program, "mapreduce")
    assert isinstance(form, MapReduceForm)
    result = result_of(program)
    found = to_python(run_mapreduce(form, state, clients), result)
    assert_same(result, found, run(program, (state, clients)))


@EXAMPLES
@given(rounds_with_inputs(secure=True), st.sampled_from(["mapreduce", "distribute-aggregate"]))
def test_there_and_back(case: tuple[Node, Any, list[Any]], kind: str) -> None:
    program, state, clients = case
    form = compiled(program, kind)
    back = from_bytes(to_bytes(computation_of(form)))
    assert back.type.is_equivalent_to(program.type)
    again = compiled(back, kind).components()
    assert {k: v.type for k, v in again.items()} == {
        k: v.type for k, v in form.components().items()
    }
    expected = run(program, (state, clients))
    assert_same(result_of(program), run(back, (state, clients)), expected)
