"""The guarantee: compiled forms compute what the program does.

The reference interpreter runs generated rounds, and what each form decompiles to.
`--hypothesis-profile=thorough` tries thousands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forms import (
    groupings,
    run_broadcast,
    run_distribute_aggregate,
    run_mapreduce,
    run_mergeable,
)
from tests.programs import broadcast_rounds, rounds, values
from tffc.backends import compile_form
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import Form
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.backends.forms.mergeable import MergeableForm
from tffc.language import FederatedType, Node, SequenceType, StructType, Type
from tffc.language.invariants import CALL_DOMINANT, CLOSED
from tffc.language.type_parts import leaves, local_type
from tffc.language.values.concrete import flatten, to_python, to_value
from tffc.language.verify import verify
from tffc.language.wire import from_bytes, to_bytes
from tffc.passes import call_dominant
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import FormError

pytestmark = pytest.mark.slow


@st.composite
def with_inputs(draw: Any, programs: st.SearchStrategy[Node]) -> tuple[Node, Any, list[Any]]:
    """A round, a state for it and the data of one to four clients."""
    program = draw(programs)
    state, data = (local_type(t) for t in parameter_of(program))
    clients = draw(st.lists(values(data), min_size=1, max_size=4))
    return program, draw(values(state)), clients


def compiled(program: Node, kind: str) -> Form:
    """A form of the program.

    If two components need the same random numbers, only DistributeAggregateForm passes them on; in
    other forms both components draw, if that is allowed.  The draws of generated rounds do not show
    in their results.
    """
    try:
        return compile_form(program, kind)
    except FormError as error:
        if kind == "distribute-aggregate" or error.code != "E532":
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


@given(with_inputs(rounds()))
def test_call_dominant_form(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    flat = call_dominant(program)
    verify(flat, (CLOSED, CALL_DOMINANT))
    assert flat.type == program.type
    assert call_dominant(flat) == flat
    expected = run(program, (state, clients))
    assert_same(result_of(program), run(flat, (state, clients)), expected)


@given(with_inputs(rounds(secure=True)))
def test_map_reduce_form(case: tuple[Node, Any, list[Any]]) -> None:
    check_map_reduce_form(case)


def check_map_reduce_form(case: tuple[Node, Any, list[Any]]) -> None:
    """Check that the form computes what the program does."""
    program, state, clients = case
    form = compiled(program, "mapreduce")
    assert isinstance(form, MapReduceForm)
    result = result_of(program)
    found = to_python(run_mapreduce(form, state, clients), result)
    assert_same(result, found, run(program, (state, clients)))


@given(with_inputs(rounds(secure=True)))
def test_distribute_aggregate_form(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    form = compiled(program, "distribute-aggregate")
    assert isinstance(form, DistributeAggregateForm)
    placed_state, data = to_value((state, clients), parameter_of(program))
    found = run_distribute_aggregate(form, placed_state, data, len(clients))
    expected = run(program, (state, clients))
    assert_same(result_of(program), to_python(found, program.type.children()[1]), expected)


@given(with_inputs(rounds(secure=True)), st.data())
def test_mergeable_form(case: tuple[Node, Any, list[Any]], data: st.DataObject) -> None:
    program, state, clients = case
    form = compiled(program, "mergeable")
    assert isinstance(form, MergeableForm)
    placed = to_value((state, clients), parameter_of(program))
    expected = run(program, (state, clients))
    sizes = data.draw(st.sampled_from(groupings(len(clients))))
    placed_state, placed_clients = placed
    found = run_mergeable(form, placed_state, placed_clients, len(clients), sizes)
    assert_same(result_of(program), to_python(found, program.type.children()[1]), expected)


@given(with_inputs(broadcast_rounds()))
def test_broadcast_form(case: tuple[Node, Any, list[Any]]) -> None:
    check_broadcast_form(case)


def check_broadcast_form(case: tuple[Node, Any, list[Any]]) -> None:
    """Check that the form computes what the program does."""
    program, state, clients = case
    form = compiled(program, "broadcast")
    assert isinstance(form, BroadcastForm)
    found = [to_python(one, result_of(program)) for one in run_broadcast(form, state, clients)]
    assert_same_at_clients(program, found, run(program, (state, clients)))


@given(
    with_inputs(rounds(secure=True)),
    st.sampled_from(["mapreduce", "distribute-aggregate", "mergeable"]),
)
def test_there_and_back(case: tuple[Node, Any, list[Any]], kind: str) -> None:
    program, state, clients = case
    back = there_and_back(program, kind)
    expected = run(program, (state, clients))
    assert_same(result_of(program), run(back, (state, clients)), expected)


@given(with_inputs(broadcast_rounds()))
def test_there_and_back_without_aggregations(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    back = there_and_back(program, "broadcast")
    expected = run(program, (state, clients))
    assert_same_at_clients(program, run(back, (state, clients)), expected)


def assert_same_at_clients(program: Node, found: Any, expected: Any) -> None:
    """Equal numbers at every client, for a result that may be shared by all of them."""
    _, result = program.type.children()
    assert isinstance(result, FederatedType)
    if result.all_equal:
        expected = [expected] * len(found)
    for one, other in zip(found, expected, strict=True):
        assert_same(result.member, one, other)


def there_and_back(program: Node, kind: str) -> Node:
    """The decompiled form of the program, whose own form has components of the same types."""
    form = compiled(program, kind)
    back = from_bytes(to_bytes(form.decompile()))
    # What all clients share comes back as what each of them has.
    assert back.type.is_assignable_from(program.type)
    if kind != "broadcast":
        assert program.type.is_assignable_from(back.type)
    again = compiled(back, kind)
    assert types_of(again) == types_of(form)
    return back


def types_of(form: Form) -> dict[str, Type]:
    return {name: part.type for name, part in form.components().items()}
