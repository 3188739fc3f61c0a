"""Forms of components that a user wrote, and the arguments of the functions that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError

load_tensorflow()
mapreduce: Any = tff.backends.mapreduce
INT = np.int32
STATE, DATA = tff.types.at_server(INT), tff.types.at_clients(INT)
ROUND = tff.FunctionType([("state", STATE), ("data", DATA)], [STATE, STATE])


def tfc(*args: Any) -> Any:
    return tff.tensorflow.computation(*args)


def by_hand(work: Any, bound: Any, update: Any) -> Any:
    nothing = tfc(lambda: ())
    return mapreduce.MapReduceForm(
        ROUND,
        prepare=tfc(lambda state: state, INT),
        work=work,
        zero=tfc(lambda: 0),
        accumulate=tfc(lambda total, value: total + value, INT, INT),
        merge=tfc(lambda one, other: one + other, INT, INT),
        report=tfc(lambda total: total, INT),
        secure_sum_bitwidth=bound,
        secure_sum_max_input=nothing,
        secure_modular_sum_modulus=nothing,
        update=update,
    )


def test_functions_of_named_parameters_and_single_tensors() -> None:
    form = by_hand(
        tfc(lambda data, context: (data + context, (), (), ()), INT, INT),
        tfc(lambda: ()),
        tfc(lambda state, sums: (state + 1, sums[0]), INT, [INT, (), (), ()]),
    )
    written = mapreduce.get_computation_for_map_reduce_form(form)
    assert str(written.type_signature) == (
        "(<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,int32@SERVER>)"
    )
    assert written(10, [1, 2]) == [11, 23]
    assert (form.server_state_label, form.client_data_label) == ("state", "data")


def test_a_single_tensor_is_summed_securely() -> None:
    form = by_hand(
        tfc(lambda data, context: (data, data, (), ()), INT, INT),
        tfc(lambda: 5),
        tfc(lambda state, sums: (state, sums[0] * 100 + sums[1]), INT, [INT, INT, (), ()]),
    )
    assert form.securely_aggregates_tensors
    written = mapreduce.get_computation_for_map_reduce_form(form)
    tff.test.assert_contains_secure_aggregation(written)
    assert written(0, [1, 2]) == [0, 303]


def test_a_broadcast_form_names_its_parameters() -> None:
    components = tfc(lambda s: s * 2, INT), tfc(lambda context, data: context + data, INT, INT)
    form = mapreduce.BroadcastForm(*components, server_data_label="s", client_data_label="d")
    assert (form.server_data_label, form.client_data_label) == ("s", "d")
    written = mapreduce.get_computation_for_broadcast_form(form)
    assert str(written.type_signature) == "(<s=int32@SERVER,d={int32}@CLIENTS> -> {int32}@CLIENTS)"
    assert written(5, [1, 2]) == [11, 12]
    unnamed = mapreduce.BroadcastForm(*components)
    assert (unnamed.server_data_label, unnamed.client_data_label) == (None, None)


def test_components_of_a_broadcast_form_are_functions() -> None:
    work = tfc(lambda context, data: data, INT, INT)
    assert refusal(LanguageTypeError, mapreduce.BroadcastForm, tfc(lambda: 5), work) == (
        "compute_server_context takes what the server has, but is of type `( -> int32)`, without "
        "argument [E501]"
    )
    assert refusal(LanguageTypeError, mapreduce.BroadcastForm, tff.to_value(5, INT).comp, work) == (
        "a component of a form is a function, but this is of type `int32` [E501]\n"
        "  help: give what tff.tensorflow.computation returns"
    )


def test_a_program_is_changed_before_it_is_compiled() -> None:
    seen: list[Any] = []

    def second(node: Any) -> Any:
        seen.append(node)
        return other.to_building_block()

    server, clients = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
    first = tff.federated_computation(lambda s, c: (s, tff.federated_sum(c)), server, clients)
    other = tff.federated_computation(lambda s, c: (s, tff.federated_max(c)), server, clients)
    expected = mapreduce.get_map_reduce_form_for_computation(other)
    found = mapreduce.get_map_reduce_form_for_computation(first, tff_internal_preprocessing=second)
    assert seen == [first.to_building_block()]
    assert found.form == expected.form
    assert found.type_signature is first.type_signature


def test_what_grappler_is_to_do_makes_no_difference() -> None:
    @tff.federated_computation(STATE, DATA)
    def summing(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(data)

    form = mapreduce.get_map_reduce_form_for_computation(summing, object())
    assert mapreduce.get_computation_for_map_reduce_form(mrf=form)(5, [1, 2]) == (5, 3)
    first = tff.federated_computation(lambda: tff.federated_value(0, tff.SERVER))
    assert mapreduce.get_state_initialization_computation(first, object())() == 0
    same = tff.federated_computation(lambda x: x, INT)
    assert mapreduce.parse_tff_to_tf(same.to_building_block(), object())(3) == 3


def test_a_broadcast_after_an_aggregation_is_an_error_of_value_too() -> None:
    @tff.federated_computation(STATE, DATA)
    def twice(state: Any, data: Any) -> Any:
        total = tff.federated_broadcast(tff.federated_sum(data))
        again = tff.federated_map(tfc(lambda x, y: x + y, INT, INT), (data, total))
        return state, tff.federated_sum(again)

    with pytest.raises(ValueError, match="E511"):
        mapreduce.get_map_reduce_form_for_computation(twice)
