"""Refusals of forms made of given components: another kind, or types that do not fit."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.assurance.diff.programs import is_same
from tffc.backends import compile_form, compile_initialize
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import assemble
from tffc.language import (
    Block,
    Call,
    Compiled,
    DType,
    FunctionType,
    Intrinsic,
    Lambda,
    Node,
    TensorType,
)
from tffc.language.notation import parse
from tffc.language.wire import TensorBinding, XlaSection, write_xla
from tffc.passes.local_processing import extract_local_processing
from tffc.support.errors import FormError, VerificationError

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
INTEGER = TensorType(DType.INT32)


def hlo_alone(parameter: TensorType | None) -> Compiled:
    """An XLA section that gives an integer, as TensorFlow Federated writes one."""
    given = None if parameter is None else TensorBinding(0)
    payload = write_xla(XlaSection(b"", given, TensorBinding(0)))
    return Compiled("xla", payload, FunctionType(parameter, INTEGER))


@tff.federated_computation(STATE, DATA)
def count(state, data):
    return state, tff.federated_sum(data)


@functools.cache
def compiled(kind: str) -> Form:
    return compile_form(count.node, kind)


def map_reduce(**parts: Node) -> Form:
    """The MapReduceForm of the round with some components replaced."""
    changes: dict[str, Any] = parts
    return dataclasses.replace(compiled("mapreduce"), **changes)


def distribute_aggregate(**parts: str) -> Form:
    """The DistributeAggregateForm of the round with some components replaced, given as text."""
    changes: dict[str, Any] = {name: parse(text) for name, text in parts.items()}
    return dataclasses.replace(compiled("distribute-aggregate"), **changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: map_reduce(zero=parse("( -> 0)")),
            "zero has to be a TensorFlow computation, found a Lambda of type `( -> int32)` [E501]",
        ),
        (
            lambda: map_reduce(accumulate=compiled("mapreduce").components()["zero"]),
            "the parameter of accumulate has to be a struct of 2, found `None` [E501]",
        ),
        (
            lambda: distribute_aggregate(
                server_prepare="federated_sum:({int32}@CLIENTS -> int32@SERVER)"
            ),
            "server_prepare has to be a lambda, found an Intrinsic [E501]",
        ),
        (
            lambda: distribute_aggregate(
                client_work="(x: <{int32}@CLIENTS,<>> -> <federated_value_at_server:"
                "(int32 -> int32@SERVER)(1)>)"
            ),
            "client_work runs at CLIENTS alone, found a value of type `int32@SERVER` [E501]"
            "\n  help: keep only values at CLIENTS in it; what runs elsewhere is another "
            "component of the form",
        ),
        (
            lambda: distribute_aggregate(
                client_to_server_aggregation="(x: <<int32@SERVER>,<{int32}@CLIENTS>> -> (let "
                "a=federated_sum:({int32}@CLIENTS -> int32@SERVER)(x[1][0]) in <a,a>))"
            ),
            "client_to_server_aggregation has to return the results of its operators, in order "
            "[E501]",
        ),
        (
            lambda: distribute_aggregate(
                server_to_client_broadcast="(x: <> -> (let a=federated_value_at_clients:"
                "(int32 -> int32@CLIENTS)(1) in <a>))"
            ),
            "server_to_client_broadcast holds broadcast operators only, found "
            "`federated_value_at_clients(1)` [E501]"
            "\n  help: compute the rest in the components before and after it",
        ),
        (
            lambda: compile_initialize(parse("( -> 1)")),
            "the computation of the first state returns a value placed at the server; found one "
            "of type `( -> int32)` [E510]\n  note: expected `( -> S@SERVER)`",
        ),
        (
            lambda: assemble("map-reduce", count.node.type, {}),
            "there is no form 'map-reduce' [E500]\n  help: did you mean 'mapreduce'?",
        ),
        (
            lambda: assemble("broadcast", count.node.type, {}),
            "the form broadcast has the components compute_server_context, client_processing; "
            "found none [E501]\n"
            "  help: add compute_server_context, client_processing",
        ),
    ],
)
def test_parts_that_no_form_has(make: Callable[[], object], message: str) -> None:
    assert refusal(FormError, make) == message


def test_parts_are_closed_and_bind_each_name_once() -> None:
    twice = parse("(x: int32@SERVER -> (let x: int32@SERVER=x in <<>,<x>>))")
    assert isinstance(twice, Lambda)
    assert isinstance(twice.result, Block)
    unbound = Lambda("y", twice.parameter_type, twice.result.result)
    for part, message in ((twice, "twice"), (unbound, "is used but not bound")):
        changes: dict[str, Any] = {"server_prepare": part}
        with pytest.raises(VerificationError, match=message):
            dataclasses.replace(compiled("distribute-aggregate"), **changes)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            Call(hlo_alone(None), None),
            "an XLA computation of type `( -> int32)` cannot be part of a TensorFlow graph [E521]\n"
            "  note: it has HLO alone, and graphs hold StableHLO, which tffc adds when it traces\n"
            "  help: trace the program with this tffc, or write this computation with "
            "tff.tensorflow.computation",
        ),
        (
            Call(Intrinsic("my_own_operator", FunctionType(None, INTEGER)), None),
            "the operator my_own_operator cannot be part of local code in this form [E522]",
        ),
    ],
)
def test_calls_that_no_graph_can_hold(function: Node, message: str) -> None:
    assert refusal(FormError, extract_local_processing, Lambda(None, None, function)) == message


def test_local_processing_that_is_no_lambda() -> None:
    with pytest.raises(FormError) as caught:
        extract_local_processing(Intrinsic("my_own_operator", FunctionType(INTEGER, INTEGER)))
    assert str(caught.value) == (
        "local processing is written out as a lambda; found an Intrinsic [E514]"
        "\n  help: write a function that calls it, as in `(x -> f(x))`"
    )


def test_where_a_section_of_xla_is_applied() -> None:
    section = tff.Computation.from_node(hlo_alone(INTEGER))

    def mapped(data: Any) -> Any:
        return tff.federated_map(section, data)

    program = tff.federated_computation(
        lambda state, data: (state, tff.federated_sum(mapped(data))), STATE, DATA
    )
    with pytest.raises(FormError, match="E521") as caught:
        compile_form(program.node, "mapreduce")
    assert caught.value.span is not None
    assert caught.value.span.line == mapped.__code__.co_firstlineno + 1


def named(state: str, data: str) -> Node:
    """A round in which the results of two calls have these names."""
    clients, sum = "{int32}@CLIENTS", "({int32}@CLIENTS -> int32@SERVER)"
    pair = "(<int32@SERVER,int32@SERVER> -> <int32,int32>@SERVER)"
    return parse(
        f"(round: <<int32,int32>@SERVER,{clients}> -> (let "
        f"{data}=federated_map:(<(int32 -> int32),{clients}> -> {clients})("
        "<(n: int32 -> n),round[1]>),"
        f"sum=federated_sum:{sum}({data}),other=federated_sum:{sum}(round[1]),"
        f"{state}=federated_zip_at_server:{pair}(<sum,other>) in <{state},round[0]>))"
    )


@pytest.mark.parametrize("kind", ["mapreduce", "distribute-aggregate"])
def test_names_of_bindings_mean_nothing(kind: str) -> None:
    expected = compile_form(named("a", "b"), kind).components()
    found = compile_form(named("state", "data"), kind).components()
    assert [name for name in expected if not is_same(found[name], expected[name])] == []


def test_the_name_of_a_parameter_means_nothing() -> None:
    def with_parameter(name: str) -> Node:
        total = "federated_sum:({int32}@CLIENTS -> int32@SERVER)"
        type = "<int32@SERVER,{int32}@CLIENTS>"
        return parse(f"({name}: {type} -> <{name}[0],{total}({name}[1])>)")

    expected = compile_form(with_parameter("round"), "distribute-aggregate")
    found = compile_form(with_parameter("server_prepare_arg"), "distribute-aggregate")
    assert found == expected


def test_a_round_of_a_deep_output_is_written_again() -> None:
    total = "federated_sum:({int32}@CLIENTS -> int32@SERVER)(round[1])"
    output = "<" * 3000 + total + ">" * 3000
    program = parse(f"(round: <int32@SERVER,{{int32}}@CLIENTS> -> <round[0],{output}>)")
    written = compile_form(program, "mapreduce").decompile()
    assert isinstance(written.type, FunctionType)
    assert isinstance(program.type, FunctionType)
    assert written.type.result == program.type.result
