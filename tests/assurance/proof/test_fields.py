"""Every field of every message of a graph is compared, or in the table of those ignored."""

from __future__ import annotations

import dataclasses
import functools
import random
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.proof import rounds_to_break
from tests.assurance.proof.attack import field_change
from tests.assurance.proof.candidates import round_of
from tests.assurance.proof.edits import Draft
from tests.assurance.proof.field_edits import Opened, edited_at, sites
from tffc.assurance.proof.constants import constant_of_tensor
from tffc.assurance.proof.fields import EVALUATED, GRAPH, IGNORED
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.graphs.operations import failing, op_table
from tffc.graphs.operations.effects import Effect, effect_of
from tffc.graphs.proto import GraphDef, NodeDef, TensorProto, message
from tffc.language import Compiled
from tffc.language.wire import read_tensorflow
from tffc.support.errors import TffcError

COMPUTE_THE_SAME = {
    "GraphDef.node": "the order of nodes",
    "GraphDef.library": "an empty library",
    "GraphDef.versions": "other versions, whose fields are in the table",
    "FunctionDefLibrary.function": "the order of functions",
    "TensorShapeProto.unknown_rank": "a parameter that promises less",
    "AttrValue.shape": "a parameter that promises less",
}
"""Fields of which some other values mean the same."""

UNNEEDED = f"{tempfile.gettempdir()}/tffc-unneeded"


@functools.cache
def keeping() -> tuple[Any, dict[str, Any]]:
    program = rounds_to_break.keeping.node
    return program, dict(compile_form(program, "mapreduce").components())


def answer(parts: dict[str, Any]) -> Answer | None:
    program, _ = keeping()
    try:
        return prove(program, "mapreduce", parts).answer
    except TffcError:
        return None


def test_the_tables_name_fields_that_exist() -> None:
    for name, fields in EVALUATED.items():
        known = message(f"{GRAPH}{name}").DESCRIPTOR.fields_by_name
        assert set(fields) <= set(known)
    for title in IGNORED:
        name = title.partition("=")[0].partition(".attr.")[0]
        if name.startswith("TensorFlow."):
            known = message("tffc.v0.TensorFlow").DESCRIPTOR.fields_by_name
            assert name.partition(".")[2] in known
            continue
        owner, _, field = name.rpartition(".")
        assert not owner or owner in EVALUATED, title
        assert not owner or field in message(f"{GRAPH}{owner}").DESCRIPTOR.fields_by_name


@pytest.mark.parametrize("number", range(150))
def test_an_edit_of_a_field_is_not_proved(number: int) -> None:
    _, parts = keeping()
    changed = None
    attempts = (random.Random(f"{number}:{n}") for n in range(50))
    changed = next(filter(None, (field_change(parts, choose) for choose in attempts)))
    title, _, broken = changed
    if title.removeprefix("tffc.v0.") in IGNORED or title in COMPUTE_THE_SAME:
        pytest.skip("the field is ignored")
    assert answer(broken) is not Answer.PROVED, title


# The reasons of the table.


def outcome(section: Compiled) -> list[np.ndarray]:
    """What TensorFlow computes for the results of a section without a parameter."""
    content = read_tensorflow(section.payload)
    graph = tf.Graph()
    with graph.as_default():
        graph_def = tf.compat.v1.GraphDef.FromString(content.graph_def)
        tf.graph_util.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph) as session:
        if content.initialize_op:
            session.run(content.initialize_op)
        return session.run([leaf.tensor for leaf in content.result.elements])  # type: ignore[union-attr]  # structs only


@tff.tf_computation
def computed() -> Any:
    variable = tf.Variable(tf.constant(2.0))

    @tf.function
    def add(x: Any) -> Any:
        variable.assign_add(x)
        return variable.read_value() * 3.0

    numbers: Any = tf.data.Dataset.range(4)
    return add(tf.constant(1.0)), numbers.reduce(np.int64(0), lambda x, y: x + y)


def renamed_state(graph: Any) -> None:
    for node in graph.node:
        if node.op == "VarHandleOp":
            node.attr["shared_name"].s = b"another"


def on_the_device_of_datasets(graph: Any) -> None:
    for node in graph.node:
        if node.op == "RangeDataset":
            node.device = "/device:CPU:0"


def beside(graph: Any) -> None:
    first = graph.node[0].name.encode()
    for node in graph.node[1:]:
        node.attr["_class"].list.s.append(b"loc:@" + first)


def renamed_function(graph: Any) -> None:
    for function in graph.library.function:
        old, function.signature.name = function.signature.name, function.signature.name + "_new"
        for node in (*graph.node, *(n for f in graph.library.function for n in f.node_def)):
            for value in node.attr.values():
                if value.func.name == old:
                    value.func.name = function.signature.name


def alternatives(graph: Any) -> None:
    for function in graph.library.function:
        function.attr["api_implements"].s = b"something"
        function.attr["api_preferred_device"].s = b"GPU"
        function.attr["forward_function_name"].s = b"nothing"
        function.attr["backward_function_name"].s = b"nothing"


def versions(producer: int, least: int, bad: list[int]) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        graph.versions.producer, graph.versions.min_consumer = producer, least
        graph.versions.bad_consumers.extend(bad)

    return change


REASONS: dict[str, Callable[[Any], None]] = {
    "state is named otherwise": renamed_state,
    "a dataset is on the device of datasets": on_the_device_of_datasets,
    "nodes are beside another of the same device": beside,
    "functions are named otherwise": renamed_function,
    "functions offer others": alternatives,
    "gradients are registered": lambda graph: graph.library.registered_gradients.add(
        gradient_func="g", registered_op_type="o"
    ),
    "the oldest version": versions(100, 0, []),
    "a version of the future": versions(100_000, 0, []),
    "readers that there are": versions(1575, 1575, [1, 1574]),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_ignored_changes_nothing(reason: str) -> None:
    section = computed.node
    assert isinstance(section, Compiled)
    draft = Draft(section, random.Random(0))
    REASONS[reason](draft.graph)
    changed = draft.finish()
    assert changed != section
    assert [each.tolist() for each in outcome(changed)] == [9.0, 6]


def test_no_operation_is_deprecated_in_graphs_that_are_decided() -> None:
    from tensorflow.python.framework import op_def_registry

    definitions = (op_def_registry.get(name) for name in op_table._rows())
    assert all(each.deprecation.version < 100 for each in definitions if each is not None)


@pytest.mark.parametrize("op", sorted(failing.operations_under("no memory")))
def test_what_remembers_nothing_has_an_effect(op: str) -> None:
    """Nothing asks about any other operation."""
    assert effect_of(NodeDef(op=op), {}) is not None


def test_modules_that_call_something_may_remember() -> None:
    assert failing.remembers("XlaCallModule", Effect.OTHER)
    assert not failing.remembers("XlaCallModule", None)


@pytest.mark.parametrize("op", sorted(failing.operations_under("cannot fail")))
def test_what_cannot_fail_is_an_operation(op: str) -> None:
    assert op_table.find(op) is not None


@pytest.mark.parametrize(
    "op", ["Abs", "Neg", "OnesLike", "Rank", "Shape", "Sign", "Size", "Square", "ZerosLike"]
)
def test_what_cannot_fail_does_not(op: str) -> None:
    operation = getattr(tf.raw_ops, op)
    argument = {"Rank": "input", "Shape": "input", "Size": "input"}.get(op, "x")
    for shape in ((), (0,), (2, 0), (3, 2)):
        for dtype in (tf.float32, tf.int32, tf.complex64, tf.int64):
            for value in (0, -7, 2**30):
                if op in ("Abs",) and dtype is tf.complex64:
                    continue
                operation(**{argument: tf.cast(tf.fill(shape, value), dtype)})


# Constants.


@pytest.mark.parametrize("payload", [0x7FA00001, 0x7F800001, 0xFFBFFFFF])
def test_the_bits_of_what_is_no_number(payload: int) -> None:
    bits = payload.to_bytes(4, "little")
    quiet = (payload | 0x400000).to_bytes(4, "little")
    labels = [
        constant_of_tensor(TensorProto.FromString(b"\x08\x01\x12\x00" + field + content))
        for content in (bits, quiet)
        for field in (b"\x2a\x04", b"\x2d", b"\x22\x04")
    ]
    assert len(set(labels[:3])) == len(set(labels[3:])) == 1
    assert labels[0] != labels[3]


# Rounds that this compiler may compile wrongly or not fully.


def test_an_effect_that_a_form_leaves_out_is_not_proved() -> None:
    def both(x: Any) -> Any:
        with tf.control_dependencies([tf.io.write_file(UNNEEDED, tf.as_string(x))]):
            return x + 1.0, tf.identity(x)

    local = tff.tf_computation(both, np.float32)

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.float32))
    def leaving(state: Any, data: Any) -> Any:
        tff.federated_map(local, data)
        return state, tff.federated_sum(data)

    program = leaving.node
    for form in ("mapreduce", "distribute-aggregate"):
        parts = compile_form(program, form).components()
        assert prove(program, form, parts).answer is Answer.UNDECIDED


def test_joined_functions_whose_kernels_remember_are_not_proved() -> None:
    def twice(x: Any) -> Any:
        def add(y: Any) -> Any:
            return y + tf.random.uniform([], seed=5)

        one, two = (tf.function(add, experimental_attributes={"_noinline": True}) for _ in range(2))
        before = one(x)
        with tf.control_dependencies([before]):
            return before + 1000.0 * two(x)

    program = round_of(twice)
    parts = dict(compile_form(program, "mapreduce").components())
    work = parts["work"]
    assert isinstance(work, Compiled)
    draft = Draft(work, random.Random(0))
    functions = draft.graph.library.function
    name = functions[0].signature.name
    for node in draft.graph.node:
        if "f" in node.attr:
            node.attr["f"].func.name = name
    joined = GraphDef.FromString(draft.graph.SerializeToString())
    del functions[:]
    functions.add().CopyFrom(joined.library.function[0])
    parts["work"] = draft.finish()
    assert prove(program, "mapreduce", parts).answer is Answer.UNDECIDED


def test_every_kind_of_message_is_met() -> None:
    _, parts = keeping()
    opened = Opened(parts["work"])
    owners = {site.owner for site in sites(opened)}
    assert {"FunctionDef", "AttrValue.ListValue", "TensorProto", "OpDef.ArgDef"} <= owners
    site = next(s for s in sites(opened) if s.title == "NodeDef.device")
    assert dataclasses.is_dataclass(site)
    assert edited_at(opened, site, random.Random(0)) is not None
