"""A form hands from one side to the other only what the program does, and with its types."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.proof.edits import Draft
from tffc.assurance.proof.prove import Answer, Proof, prove
from tffc.backends import compile_form
from tffc.language import Compiled, Node
from tffc.language.dtypes import DType
from tffc.language.notation import parse, sections, typed
from tffc.language.types import FunctionType, StructType, TensorType, Type
from tffc.language.wire import StructBinding, TensorBinding

PERSON = tff.StructType([("user", np.float32), ("score", np.float32)])
STATE = tff.StructType([("secret", np.float32), ("limit", tff.TensorType(np.float32, [None]))])
SCALAR, VECTOR = TensorType(DType.FLOAT32), TensorType(DType.FLOAT32, (None,))


@tff.tf_computation(PERSON, STATE["limit"])
def share(person: Any, limit: Any) -> Any:
    return person["score"] / tf.cast(tf.size(limit), tf.float32)


def round_of(aggregate: Callable[[Any], Any]) -> Node:
    """A round that broadcasts one part of the state, and aggregates what depends on it."""

    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(PERSON))
    def each(state: Any, data: Any) -> Any:
        limit = tff.federated_broadcast(state.limit)
        return state, aggregate(tff.federated_map(share, (data, limit)))

    return each.node


@tff.tf_computation(np.float32)
def rounded(x: Any) -> Any:
    return tf.cast(x, tf.int32)


@tff.tf_computation(np.float32)
def sign(x: Any) -> Any:
    return tf.cast(tf.sign(x), tf.int32)


AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "sum": tff.federated_sum,
    "mean": tff.federated_mean,
    "maximum": tff.federated_max,
    "secure sum": lambda x: (
        tff.federated_secure_sum_bitwidth(tff.federated_map(rounded, x), 8),
        tff.federated_sum(tff.federated_map(sign, x)),
        tff.federated_sum(x),
    ),
}


@functools.cache
def compiled(aggregate: str, form: str) -> tuple[Node, dict[str, Any]]:
    program = round_of(AGGREGATES[aggregate])
    return program, dict(compile_form(program, form).components())


def attempt(aggregate: str, form: str, **parts: Node) -> Proof:
    program, components = compiled(aggregate, form)
    return prove(program, form, {**components, **parts})


def drafted(made: Compiled) -> Draft:
    return Draft(made, random.Random(0))


def section(
    made: Compiled,
    *,
    parameter: Type | None = None,
    result: Type | None = None,
    takes: tuple[str, ...] = (),
    gives: tuple[tuple[int, ...], str] | None = None,
) -> Compiled:
    """Return a section of another type that also takes scalars, as the last part of its argument,
    and also gives a tensor as the last part of the struct at a path of its result."""
    assert isinstance(made.type, FunctionType)
    draft = drafted(made)
    changes: dict[str, Any] = {}
    for name in takes:
        node = draft.graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = SCALAR.element_type.number
        node.attr["shape"].shape.SetInParent()
        whole: Any = draft.content.parameter
        parts = (*whole.elements[:-1], _with(whole.elements[-1], (), f"{name}:0"))
        changes["parameter"] = StructBinding(parts)
    if gives is not None:
        changes["result"] = _with(draft.content.result, *gives)
    kind = FunctionType(parameter or made.type.parameter, result or made.type.result)
    return dataclasses.replace(draft.finish(**changes), type=kind)


def _with(whole: Any, path: tuple[int, ...], tensor: str) -> StructBinding:
    if not path:
        return StructBinding((*whole.elements, TensorBinding(tensor)))
    parts = list(whole.elements)
    parts[path[0]] = _with(parts[path[0]], path[1:], tensor)
    return StructBinding(tuple(parts))


def longer(kind: Any, path: tuple[int, ...] = (), more: Type = SCALAR) -> StructType:
    """Return a struct type with one more part in the struct at a path."""
    parts = list(kind.types)
    if path:
        parts[path[0]] = longer(parts[path[0]], path[1:], more)
    else:
        parts.append(more)
    return StructType.of((*kind.names, *(() if path else (None,))), tuple(parts))


def argument_of(made: Compiled, name: str) -> str:
    """Return the tensor of the placeholder with a name like this."""
    graph = drafted(made).graph
    (found,) = [n.name for n in graph.node if n.op == "Placeholder" and name in n.name]
    return f"{found}:0"


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_proved_without_an_edit(aggregate: str, form: str) -> None:
    assert attempt(aggregate, form).answer is Answer.PROVED


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_an_update_that_nothing_uses(aggregate: str) -> None:
    parts = compiled(aggregate, "mapreduce")[1]
    work, accumulate = parts["work"], parts["accumulate"]
    raw = argument_of(work, "user")
    edits = {
        "work": section(work, result=longer(work.type.result, (0,)), gives=((0,), raw)),
        "accumulate": section(
            accumulate, parameter=longer(accumulate.type.parameter, (1,)), takes=("raw",)
        ),
    }
    _refused(attempt(aggregate, "mapreduce", **edits), "data{0}")


def test_a_value_of_a_secure_sum_in_the_open() -> None:
    parts = compiled("secure sum", "mapreduce")[1]
    work, accumulate = parts["work"], parts["accumulate"]
    whole: Any = drafted(work).content.result
    tensor = whole.elements[1].elements[0].tensor
    number = TensorType(DType.INT32)
    edits = {
        "work": section(work, result=longer(work.type.result, (0,), number), gives=((0,), tensor)),
    }
    taking = section(
        accumulate, parameter=longer(accumulate.type.parameter, (1,), number), takes=("raw",)
    )
    draft = drafted(taking)
    draft.graph.node[-1].attr["dtype"].type = number.element_type.number
    found = attempt("secure sum", "mapreduce", **edits, accumulate=draft.finish())
    assert (found.answer, found.construct) == (
        Answer.UNDECIDED,
        "a value that the program does not send",
    )


def test_a_context_that_nothing_uses() -> None:
    parts = compiled("sum", "mapreduce")[1]
    prepare, work = parts["prepare"], parts["work"]
    secret = argument_of(prepare, "secret")
    edits = {
        "prepare": section(prepare, result=longer(prepare.type.result), gives=((), secret)),
        "work": section(work, parameter=longer(work.type.parameter, (1,)), takes=("secret",)),
    }
    _refused(attempt("sum", "mapreduce", **edits), "state{0}")


def test_a_context_of_a_form_without_aggregation() -> None:
    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(PERSON))
    def each(state: Any, data: Any) -> Any:
        return tff.federated_map(share, (data, tff.federated_broadcast(state.limit)))

    parts: dict[str, Any] = dict(compile_form(each.node, "broadcast").components())
    assert prove(each.node, "broadcast", parts).answer is Answer.PROVED
    prepare, work = parts["compute_server_context"], parts["client_processing"]
    draft = drafted(work)
    context, data = work.type.parameter.types
    node = draft.graph.node.add(name="secret", op="Placeholder")
    node.attr["dtype"].type = SCALAR.element_type.number
    node.attr["shape"].shape.SetInParent()
    whole: Any = draft.content.parameter
    taken = StructBinding((_with(whole.elements[0], (), "secret:0"), whole.elements[1]))
    kind = FunctionType(StructType([longer(context), data]), work.type.result)
    parts["client_processing"] = dataclasses.replace(draft.finish(parameter=taken), type=kind)
    secret = argument_of(prepare, "secret")
    parts["compute_server_context"] = section(
        prepare, result=longer(prepare.type.result), gives=((), secret)
    )
    _refused(prove(each.node, "broadcast", parts), "state{0}")


def _refused(found: Proof, value: str) -> None:
    assert (found.answer, found.construct, found.detail) == (
        Answer.UNDECIDED,
        "a value that the program does not send",
        value,
    )


def test_what_clients_collect_and_nothing_uses() -> None:
    edits = rewritten(
        client_work=[("\n>))", "\n, client_work_arg[0]>))")],
        client_to_server_aggregation=[
            ("<{float32}@CLIENTS>", "<{float32}@CLIENTS,{<user=float32,score=float32>}@CLIENTS>")
        ],
    )
    _refused(attempt("sum", "distribute-aggregate", **edits), "data{0}")


def test_a_broadcast_that_nothing_uses() -> None:
    state = "<secret=float32,limit=float32[?]>"
    edits = rewritten(
        server_prepare=[("v_1\n", "v_1, server_prepare_arg\n")],
        server_to_client_broadcast=[
            ("<float32[?]@SERVER>", f"<float32[?]@SERVER,{state}@SERVER>"),
            (
                "\n in <",
                f",\n again: {state}@CLIENTS=federated_broadcast:({state}@SERVER -> "
                f"{state}@CLIENTS)(server_to_client_broadcast_arg[1])\n in <",
            ),
            ("\n>))", "\n, again>))"),
        ],
        client_work=[("<float32[?]@CLIENTS>", f"<float32[?]@CLIENTS,{state}@CLIENTS>")],
    )
    _refused(attempt("sum", "distribute-aggregate", **edits), "state{0}")


def rewritten(**edits: list[tuple[str, str]]) -> dict[str, Node]:
    """Return components of a DistributeAggregateForm whose texts have been edited."""
    parts = compiled("sum", "distribute-aggregate")[1]
    made: dict[str, Node] = {}
    for name, pairs in edits.items():
        text = typed(parts[name])
        for before, after in pairs:
            assert before in text
            text = text.replace(before, after)
        made[name] = parse(text, sections(parts[name]))
    return made


# Types.


@pytest.mark.parametrize(
    "kind", [TensorType(DType.INT32, (None,)), TensorType(DType.FLOAT32, (2,))]
)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_type_that_the_program_does_not_declare(aggregate: str, kind: TensorType) -> None:
    """Both sides of a connection say so, and so does the placeholder."""
    parts = compiled(aggregate, "mapreduce")[1]
    prepare, work = parts["prepare"], parts["work"]
    taken = StructType([work.type.parameter.types[0], StructType([kind])])
    draft = drafted(section(work, parameter=taken))
    context: Any = draft.content.parameter
    name, _, _ = context.elements[1].elements[0].tensor.partition(":")
    (node,) = [each for each in draft.graph.node if each.name == name]
    node.attr["dtype"].type = kind.element_type.number
    node.attr["shape"].shape.dim[0].size = 2 if kind.is_fully_defined() else -1
    edits = {"prepare": section(prepare, result=StructType([kind])), "work": draft.finish()}
    _has_another_type(attempt(aggregate, "mapreduce", **edits))


def test_another_type_in_a_program_of_the_language() -> None:
    edits = rewritten(
        client_work=[
            ("<float32[?]@CLIENTS>", "<float32[2]@CLIENTS>"),
            ("{float32[?]}@CLIENTS", "{float32[2]}@CLIENTS"),
            (",float32[?]>}@CLIENTS", ",float32[2]>}@CLIENTS"),
        ]
    )
    _has_another_type(attempt("sum", "distribute-aggregate", **edits))


def _has_another_type(found: Proof) -> None:
    assert (found.answer, found.construct) == (
        Answer.UNDECIDED,
        "a type that the program does not declare",
    )
