"""The module with TFF's names, whose functions take and return computations."""

from __future__ import annotations

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.support.errors import FormError, LanguageTypeError
from tffc.tff.backends import mapreduce

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


@tff.federated_computation(STATE, DATA)
def count(state, data):
    moved = tff.federated_map(add, (data, tff.federated_broadcast(state)))
    total = tff.federated_sum(moved)
    return tff.federated_map(add, (state, total)), total


@tff.federated_computation(STATE, DATA)
def move(state, data):
    return tff.federated_map(add, (data, tff.federated_broadcast(state)))


@tff.federated_computation
def initialize():
    return tff.federated_value(7, tff.SERVER)


def test_map_reduce_form_there_and_back() -> None:
    form = mapreduce.get_map_reduce_form_for_computation(count)
    assert form.prepare(3) == (3,)
    assert form.work((10, (3,))) == ((13,), (), (), ())
    assert form.zero() == (0,)
    assert form.update(1, ((5,), (), (), ())) == (6, 5)
    assert not form.securely_aggregates_tensors
    assert (form.server_state_label, form.client_data_label) == ("state", "data")
    back = mapreduce.get_computation_for_map_reduce_form(form)
    assert back(1, [10, 20]) == count(1, [10, 20]) == (33, 32)
    again = mapreduce.get_map_reduce_form_for_computation(back)
    assert again.form.summary() == form.form.summary()


def test_distribute_aggregate_form_there_and_back() -> None:
    form = mapreduce.get_distribute_aggregate_form_for_computation(count)
    prepared = form.server_prepare(3)
    assert prepared == {"intrinsic_args_from_before_comp": (3,), "intermediate_state": (3,)}
    back = mapreduce.get_computation_for_distribute_aggregate_form(form)
    assert back(1, [10, 20]) == (33, 32)


def test_broadcast_form_there_and_back() -> None:
    form = mapreduce.get_broadcast_form_for_computation(move)
    assert (form.server_data_label, form.client_data_label) == ("state", "data")
    assert form.client_processing((2,), 5) == 7
    assert mapreduce.get_computation_for_broadcast_form(form)(2, [3, 4]) == [5, 6]


def test_form_of_given_parts() -> None:
    form = mapreduce.get_map_reduce_form_for_computation(count)
    parts = {name: getattr(form, name) for name in form.form.components()}
    made = mapreduce.MapReduceForm(count.type_signature, **parts)
    assert mapreduce.get_computation_for_map_reduce_form(made)(1, [10, 20]) == (33, 32)
    with pytest.raises(FormError) as caught:
        mapreduce.MapReduceForm(count.type_signature, **{**parts, "report": parts["zero"]})
    assert str(caught.value) == (
        "merge's result of type `<int32>` does not fit report, which takes `None` [E501]"
    )


def test_summary() -> None:
    lines: list[str] = []
    mapreduce.get_broadcast_form_for_computation(move).summary(lines.append)
    assert lines == [
        "compute_server_context: (int32 -> <int32>)",
        "client_processing     : (<<int32>,int32> -> int32)",
    ]


def test_first_state() -> None:
    made = mapreduce.get_state_initialization_computation(initialize)
    assert str(made.type_signature) == "( -> int32)"
    assert made() == 7
    with pytest.raises(FormError) as caught:
        mapreduce.get_state_initialization_computation(count)
    assert caught.value.code == "E510"
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_check_gives_the_call_dominant_program() -> None:
    node = mapreduce.check_computation_compatible_with_map_reduce_form(count)
    assert str(node).startswith("(count_arg -> (let fc_count_symbol_0=federated_broadcast(")
    with pytest.raises(FormError):
        mapreduce.check_computation_compatible_with_map_reduce_form(move)


def test_local_processing() -> None:
    @tff.federated_computation(DATA)
    def double(data):
        return tff.federated_map(add, (data, data))

    made = mapreduce.consolidate_and_extract_local_processing(double)
    assert str(made.type_signature) == "(int32 -> int32)"
    assert made(4) == 8

    @tff.federated_computation(np.int32)
    def twice(x):
        return [x, add(x, x)]

    assert mapreduce.parse_tff_to_tf(twice)(4) == (4, 8)
    with pytest.raises(FormError) as caught:
        mapreduce.consolidate_and_extract_local_processing(count)
    assert caught.value.code == "E520"
    assert refusal(FormError, mapreduce.consolidate_and_extract_local_processing, _value()) == (
        "local processing is a function; found `int32` [E413]"
        "\n  help: make it a function without parameters, of type `( -> int32)`"
    )


def _value():
    from tffc.language import Literal, TensorType, to_array

    return Literal(to_array(1), TensorType(np.int32))


def test_what_is_no_computation() -> None:
    with pytest.raises(LanguageTypeError) as caught:
        # Wrong on purpose.
        mapreduce.get_map_reduce_form_for_computation(len)  # pyright: ignore[reportArgumentType]  # wrong on purpose
    assert str(caught.value) == (
        "expected a computation, found <built-in function len> [E417]\n"
        "  help: decorate the function with tff.federated_computation and the types of its "
        "parameters"
    )
    form = mapreduce.get_broadcast_form_for_computation(move)
    with pytest.raises(LanguageTypeError) as caught:
        # Wrong on purpose.
        mapreduce.get_computation_for_map_reduce_form(form)  # pyright: ignore[reportArgumentType]  # wrong on purpose
    assert str(caught.value) == "expected a MapReduceForm, found a BroadcastForm [E500]"
