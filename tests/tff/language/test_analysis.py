"""Questions of `federated_language.framework` about programs, answered as the package does."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.support.errors import LanguageValueError
from tffc.tff.federated_language import analysis
from tffc.tff.intrinsic_defs import AggregationKind, IntrinsicDef

framework: Any = importlib.import_module("tffc.tff.federated_language.framework")

I = tff.TensorType(np.int32)  # noqa: E741
AT_CLIENTS = tff.FederatedType(I, tff.CLIENTS)
AT_SERVER = tff.FederatedType(I, tff.SERVER)


@tff.federated_computation(AT_CLIENTS)
def total(x: Any) -> Any:
    return tff.federated_sum(x)


@tff.federated_computation(AT_CLIENTS)
def secret(x: Any) -> Any:
    return tff.federated_secure_sum_bitwidth(x, 4)


@tff.federated_computation(I, I)
def first(x: Any, y: Any) -> Any:
    return x


@tff.federated_computation(AT_CLIENTS)
def twice(x: Any) -> Any:
    bound = tff.federated_broadcast(tff.federated_sum(x))
    zipped = tff.federated_zip([x, bound])
    return tff.federated_sum(tff.federated_map(first, zipped))


def block(name: str = "x", type: Any = I) -> Any:
    return framework.Reference(name, type)


@pytest.mark.parametrize(
    ("computation", "secure", "unsecure"),
    [(total, False, True), (secret, True, False), (first, False, False)],
)
def test_aggregations(computation: Any, secure: bool, unsecure: bool) -> None:
    assert framework.computation_contains_secure_aggregation(computation) is secure
    assert framework.computation_contains_unsecure_aggregation(computation) is unsecure


def test_an_aggregation_of_no_tensors_is_none() -> None:
    empty = tff.StructType([])
    at_clients = tff.FederatedType(empty, tff.CLIENTS)
    type_ = tff.FunctionType(at_clients, tff.FederatedType(empty, tff.SERVER))
    call = framework.Call(framework.Intrinsic("federated_sum", type_), block("x", at_clients))
    assert framework.find_aggregations_in_tree(call) == []


def test_kinds_of_aggregations() -> None:
    node = total.to_building_block()
    calls = framework.find_aggregations_in_tree(node)
    assert [str(call) for call in calls] == ["federated_sum(total_arg)"]
    assert framework.is_called_aggregation(calls[0], AggregationKind.DEFAULT)
    secure = framework.find_aggregations_in_tree(node, lambda kind: kind is AggregationKind.SECURE)
    assert secure == []


def test_a_call_that_cannot_be_seen() -> None:
    unseen = framework.Call(
        block("g", tff.FunctionType(AT_CLIENTS, AT_SERVER)), block("x", AT_CLIENTS)
    )
    with pytest.raises(LanguageValueError, match=r"the call `g\(x\)` aggregates cannot be seen"):
        framework.find_aggregations_in_tree(unseen)


def test_what_depends_on_an_aggregation() -> None:
    node = twice.to_building_block()
    for check in (
        framework.check_broadcast_not_dependent_on_aggregate,
        framework.check_aggregate_not_dependent_on_aggregate,
    ):
        with pytest.raises(ValueError, match="depends on an aggregation"):
            check(node)
        check(total.to_building_block())


def test_names() -> None:
    x, y = block("x"), block("y")
    function = framework.Lambda("x", I, framework.Struct([x, y]))
    names = framework.get_map_of_unbound_references(function)
    assert names == {x: {"x"}, y: {"y"}, function.result: {"x", "y"}, function: {"y"}}
    assert framework.contains_no_unbound_references(function, excluding="y")
    assert not framework.contains_no_unbound_references(function)
    framework.check_contains_no_new_unbound_references(y, function)
    with pytest.raises(ValueError, match="uses what it does not bind"):
        framework.check_contains_no_new_unbound_references(x, function)
    framework.check_has_unique_names(function)
    with pytest.raises(framework.NonuniqueNameError):
        framework.check_has_unique_names(framework.Block([("y", y)], y))


def test_visits_of_repeated_nodes() -> None:
    x = block("x")
    pair = framework.Struct([x, x])
    before: list[str] = []
    framework.visit_preorder(pair, lambda node: before.append(str(node)))
    after: list[str] = []
    framework.visit_postorder(pair, lambda node: after.append(str(node)))
    assert (before, after) == (["<x,x>", "x", "x"], ["x", "x", "<x,x>"])
    assert framework.computation_count(pair) == 3


def test_placements_and_operators() -> None:
    node = total.to_building_block()
    with pytest.raises(ValueError, match="expected everything at SERVER"):
        framework.check_has_single_placement(node, tff.SERVER)
    with pytest.raises(ValueError, match="federated_sum is not reducible"):
        framework.check_contains_only_reducible_intrinsics(node)
    framework.check_contains_only_reducible_intrinsics(secret.to_building_block())


def test_what_is_no_building_block() -> None:
    for question in (analysis.count, analysis.contains_called_intrinsic):
        with pytest.raises(NotImplementedError):
            question(1)  # pyright: ignore[reportArgumentType]


def test_definitions_of_operators() -> None:
    names = [definition.name for definition in framework.get_aggregation_intrinsics()]
    assert {"FEDERATED_SUM", "FEDERATED_SECURE_SUM"} < set(names)
    assert repr(framework.FEDERATED_SUM) == "IntrinsicDef('federated_sum')"
    assert isinstance(framework.FEDERATED_WEIGHTED_MEAN, IntrinsicDef)
