"""Computations compiled to the mergeable form, and run in groups of clients."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.support.errors import FormError, LanguageTypeError
from tffc.tff.backends import native

compile_form = native.compile_to_mergeable_comp_form
INT, FLOAT = np.int32, np.float32
INTS, SERVER_INT = tff.FederatedType(INT, tff.CLIENTS), tff.FederatedType(INT, tff.SERVER)
FLOATS = tff.FederatedType(FLOAT, tff.CLIENTS)


@tff.tensorflow.computation(INT, INT)
def add(x, y):
    return x + y


@tff.federated_computation(SERVER_INT, INTS)
def round_of(state, data):
    moved = tff.federated_map(add, (data, tff.federated_broadcast(state)))
    return tff.federated_map(add, (state, tff.federated_sum(moved))), tff.federated_max(data)


def types_of(comp: Any) -> list[str]:
    form = compile_form(comp)
    return [str(p.type_signature) for p in (form.up_to_merge, form.merge, form.after_merge)]


@pytest.mark.parametrize(
    ("comp", "types"),
    [
        (
            tff.federated_computation(lambda x: tff.federated_sum(x), FLOATS),
            [
                "({float32}@CLIENTS -> <float32>@SERVER)",
                "(<<float32>,<float32>> -> <float32>)",
                "(<top_level_arg={float32}@CLIENTS,merge_result=<float32>@SERVER> -> "
                "float32@SERVER)",
            ],
        ),
        (
            tff.federated_computation(lambda: tff.federated_value(INT(1), tff.SERVER)),
            ["( -> <>@SERVER)", "(<<>,<>> -> <>)", "(<>@SERVER -> int32@SERVER)"],
        ),
        (
            tff.federated_computation(lambda x, y: (tff.federated_sum(x), y), INTS, INT),
            [
                "(<x={int32}@CLIENTS,y=int32> -> <int32>@SERVER)",
                "(<<int32>,<int32>> -> <int32>)",
                "(<top_level_arg=<x={int32}@CLIENTS,y=int32>,merge_result=<int32>@SERVER> -> "
                "<int32@SERVER,int32>)",
            ],
        ),
    ],
)
def test_types_are_those_of_tensorflow_federated(comp: Any, types: list[str]) -> None:
    assert types_of(comp) == types


def in_groups(comp: Any, groups: int, *arguments: Any) -> Any:
    contexts = [native.create_async_local_cpp_execution_context() for _ in range(2)]
    context = native.create_mergeable_comp_execution_context(contexts, groups)
    with tff.framework.get_context_stack().install(context):
        return comp(*arguments)


@pytest.mark.parametrize("groups", [1, 2, 3, 7])
def test_computations_run_in_groups(groups: int) -> None:
    assert in_groups(round_of, groups, 10, [1, 2, 3, 4, 5]) == (75, 5)
    mean = tff.federated_computation(lambda x: tff.federated_mean(x), FLOATS)
    assert in_groups(mean, groups, [1.0, 2.0, 6.0]) == 3.0


@tff.federated_computation(collections.OrderedDict(limit=SERVER_INT, held=[INTS, INTS]), INT)
def several(given, number):
    one, other = given["held"]
    doubled = tff.federated_map(tff.tensorflow.computation(lambda x: x * 2), one)
    sums = tff.federated_sum(one), tff.federated_secure_sum_bitwidth(other, 9)
    return collections.OrderedDict(own=doubled, sums=sums, number=number, limit=given["limit"])


def test_clients_have_results_and_containers_stay() -> None:
    given = collections.OrderedDict(limit=7, held=[[1, 2, 3], [4, 5, 6]])
    expected = several(given, 8)
    assert isinstance(expected, collections.OrderedDict)
    for groups in (1, 2, 3):
        found = in_groups(several, groups, given, 8)
        assert found == expected
        assert isinstance(found, collections.OrderedDict)


def test_what_has_no_clients_runs_whole() -> None:
    assert in_groups(add, 3, 1, 2) == 3


def test_refusals() -> None:
    @tff.federated_computation(INTS)
    def twice(x):
        total = tff.federated_broadcast(tff.federated_sum(x))
        return tff.federated_sum(tff.federated_map(add, (x, total)))

    assert "[E511]" in refusal(FormError, lambda: compile_form(twice))
    message = refusal(LanguageTypeError, lambda: compile_form(3))
    assert message.startswith("expected a computation, found 3 [E417]")
    assert message.endswith(
        "help: decorate the function with tff.federated_computation and the types of its parameters"
    )
