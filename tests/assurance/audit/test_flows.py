"""An element of a client's data that is in no channel never changes one.

Generated rounds are compiled to MapReduceForm, and the clients' work is run on data in which one
leaf at a time is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.assurance.audit.exchanges import exchanges
from tests.programs import rounds, values
from tffc.assurance.audit.audit import Audit, audit
from tffc.backends import compile_form
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.language import FunctionType, Node, StructType, Type
from tffc.language.type_parts import local_type
from tffc.language.values.concrete import to_value
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import FormError

PLACES = {
    "federated_secure_sum_bitwidth": 1,
    "federated_secure_sum": 2,
    "federated_secure_modular_sum": 3,
}


@st.composite
def rounds_with_data(draw: Any) -> tuple[Node, Any, Any, Any]:
    """A round, a state, and the data of two clients."""
    program = draw(rounds(secure=True))
    state, data = map(local_type, parameter_types(program))
    return program, draw(values(state)), draw(values(data)), draw(values(data))


@given(rounds_with_data())
def test_what_is_in_no_channel_changes_none(case: tuple[Node, Any, Any, Any]) -> None:
    program, state, held, other = case
    try:
        found = audit(program, "mapreduce")
        form = compile_form(program, "mapreduce")
    except FormError as error:
        if error.code != "E532":
            raise
        return
    assert isinstance(form, MapReduceForm)
    state_type, data = map(local_type, parameter_types(program))
    context = run_section(form.prepare, to_value(state, state_type))
    first = list(contributions(form, found, to_value(held, data), context))
    for exchange in exchanges(data, to_value(held, data), to_value(other, data)):
        second = contributions(form, found, exchange.data, context)
        for channel, before, after in zip(found.channels, first, second, strict=True):
            if not exchange.is_named(channel.depends):
                same(before, after, f"{exchange.path} changes {channel.name} in {program}")


def parameter_types(program: Node) -> tuple[Type, ...]:
    assert isinstance(program.type, FunctionType)
    assert isinstance(program.type.parameter, StructType)
    return program.type.parameter.types


def contributions(form: MapReduceForm, found: Audit, data: Any, context: Any) -> Iterator[Any]:
    """Yield a client's contribution to each channel."""
    update = run_section(form.work, (data, context))
    parts = {place: iter(update[place]) for place in range(4)}
    for channel in found.channels:
        yield next(parts[PLACES.get(channel.operator, 0)])


def same(before: Any, after: Any, message: str) -> None:
    if isinstance(before, tuple | list):
        for one, another in zip(before, after, strict=True):
            same(one, another, message)
    else:
        np.testing.assert_array_equal(before, after, message)
