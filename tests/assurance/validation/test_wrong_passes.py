"""Passes with typical faults: verification finds and names each, and shows an example."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.validation.parts import inline
from tests.refusals import refusal
from tffc.assurance.validation import Report, validate
from tffc.assurance.validation.arguments import cases
from tffc.language import (
    Block,
    Call,
    Compiled,
    FunctionType,
    Intrinsic,
    Node,
    Reference,
    Selection,
    StructNode,
    at_clients,
)
from tffc.language.notation import parse
from tffc.language.traverse import rewrite
from tffc.language.types import FederatedType
from tffc.language.wire import TensorFlowSection, read_tensorflow, write_tensorflow
from tffc.linking.section import read_section
from tffc.passes import Pipeline
from tffc.passes.pipeline import Pass, PassStep
from tffc.support.errors import ValidationError, VerificationError

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


@tff.tf_computation(np.int32, np.int32)
def least(x, y):
    return tf.minimum(x, y)


@tff.tf_computation(np.int32)
def same(x):
    return tf.identity(x)


@tff.tf_computation
def zero():
    return 0


@tff.tf_computation
def draw():
    return tf.random.uniform([], 0, 1_000_000, tf.int32)


@tff.tf_computation(np.int32)
def assigned(x):
    kept = tf.Variable(tf.constant(0))
    kept.assign(x)
    return kept.read_value()


@tff.federated_computation(STATE, DATA)
def twice(state, data):
    moved = tff.federated_map(add, (data, tff.federated_broadcast(state)))
    return state, tff.federated_sum(tff.federated_map(add, (moved, moved)))


@tff.federated_computation(STATE, DATA)
def counted(state, data):
    return state, tff.federated_aggregate(data, zero(), add, add, same)


@tff.federated_computation
def drawn():
    number = tff.federated_eval(draw, tff.SERVER)
    return number, number


@tff.federated_computation(STATE)
def kept(state):
    return tff.federated_map(assigned, state)


def run(program: Node, function: Callable[..., Node], form: str | None = None) -> Report:
    """Validate a program with one pass, which is named `wrong`."""
    assert isinstance(program.type, FunctionType)
    pipeline = Pipeline("planted", (PassStep(Pass("wrong", function)),))
    return validate(program, cases(program.type.parameter, 20, seed=0), pipeline, form)


def each(change: Callable[[Any], Node | None], kind: type[Node] = Block) -> Callable[[Node], Node]:
    """A pass that changes nodes of one kind."""
    return lambda root: rewrite(root, lambda node: change(node) if isinstance(node, kind) else None)


def drop_binding(block: Block) -> Node | None:
    """Omit the second map: its users get its operand."""
    for index, local in enumerate(block.locals):
        for later in block.locals[index + 1 :]:
            if later.value.type == local.value.type and isinstance(later.value, Call):
                first = Reference(local.name, local.value.type)
                locals_ = [
                    dataclasses.replace(each, value=first) if each is later else each
                    for each in block.locals
                ]
                return Block(tuple(locals_), block.result)
    return None


def swap(struct: StructNode) -> Node | None:
    """Swap two operands of the same type."""
    if len(struct.values) == 2 and struct.values[0].type == struct.values[1].type:
        return StructNode(struct.values[::-1], struct.names)
    return None


def next_element(selection: Selection) -> Node | None:
    """Select the element after the right one, if it has the same type."""
    names = selection.source.type.children()
    index = selection.index + 1
    if index < len(names) and names[index] == selection.type:
        return Selection(selection.source, index)
    return None


def move(call: Call) -> Node | None:
    """Make a value at the clients instead of at the server."""
    if isinstance(call.function, Intrinsic) and call.function.uri == "federated_eval_at_server":
        assert isinstance(call.type, FederatedType)
        assert call.argument is not None
        type_ = FunctionType(call.argument.type, at_clients(call.type.member))
        return Call(Intrinsic("federated_eval_at_clients", type_), call.argument)
    return None


def forget_order(section: Compiled) -> Node | None:
    """Remove the control edges from a graph."""
    content = read_tensorflow(section.payload)
    assert isinstance(content, TensorFlowSection)
    graph = read_section(section).graph
    for node in graph.node:
        edges = [name for name in node.input if not name.startswith("^")]
        del node.input[:]
        node.input.extend(edges)
    payload = write_tensorflow(content._replace(graph_def=graph.SerializeToString()))
    return dataclasses.replace(section, payload=payload)


def merge_wrongly(call: Call) -> Node | None:
    """Merge partial sums by their minimum."""
    if isinstance(call.function, Intrinsic) and call.function.uri == "federated_aggregate":
        assert isinstance(call.argument, StructNode)
        operands = list(call.argument.values)
        operands[3] = least.node
        return Call(call.function, StructNode(tuple(operands), call.argument.names))
    return None


def capture(block: Block) -> Node | None:
    """Replace `y` with `x`, even where another `x` is bound."""
    if block.locals[0].name != "y":
        return None
    other = Reference("x", block.locals[0].value.type)
    return rewrite(
        block.result,
        lambda node: other if isinstance(node, Reference) and node.name == "y" else None,
    )


PAIR = parse("(p: <int32,int32,int32> -> <p[0],p[1]>)")
SHADOWED = parse("(x: int32 -> (let y=x in (let x=7 in <y,x>)))")


@pytest.mark.parametrize(
    ("program", "function", "argument"),
    [
        (twice.node, each(drop_binding), "for the argument <state=0,data={1}>"),
        (PAIR, each(swap, StructNode), "for the argument <0,1,0>"),
        (SHADOWED, each(capture), "for the argument 0"),
        (PAIR, each(next_element, Selection), "for the argument <0,0,1>"),
        (kept.node, each(forget_order, Compiled), "for the argument 0"),
        (counted.node, each(merge_wrongly, Call), "for the argument <state=0,data={1}>"),
    ],
    ids=[
        "dropped binding",
        "swapped selection",
        "wrong capture",
        "off by one",
        "lost control dependency",
        "wrong merge",
    ],
)
def test_another_result(program: Node, function: Callable[..., Node], argument: str) -> None:
    with pytest.raises(ValidationError) as caught:
        run(program, function)
    assert caught.value.code == "E902"
    assert caught.value.message == "the pass wrong, step 1 computes something else than the program"
    assert caught.value.notes[0] == argument


def test_lost_sharing_of_a_random_call() -> None:
    with pytest.raises(ValidationError) as caught:
        run(drawn.node, each(inline))
    assert caught.value.notes[1:] == (
        "the pass wrong, step 1 gives no result: a section of type `( -> int32)`, which does not "
        "always give the same, runs more often",
        "the first difference is in whether there is a result",
    )


def test_wrong_placement() -> None:
    with pytest.raises(VerificationError) as caught:
        run(drawn.node, each(move, Call))
    assert caught.value.message == (
        "`fc_drawn_symbol_0` is bound to a value of type `{int32}@CLIENTS` "
        "but used as `int32@SERVER`"
    )
    assert caught.value.notes[-1] == "after the pass wrong, step 1"


def test_message() -> None:
    assert refusal(ValidationError, run, counted.node, each(merge_wrongly, Call)) == (
        "the pass wrong, step 1 computes something else than the program [E902]\n"
        "  note: for the argument <state=0,data={1}>\n"
        "  note: with 2 partial aggregates merged\n"
        "  note: the program gives <0,1>\n"
        "  note: the pass wrong, step 1 gives <0,0>\n"
        "  note: the first difference is in [1]\n"
        "  help: if the pass is yours, fix it; otherwise report this as a defect of tffc"
    )


def test_a_pass_that_is_right() -> None:
    report = run(twice.node, each(inline))
    assert report.stages == ("the pass wrong, step 1",)
    assert report.trials == 20
    assert report.warnings == ()


def test_a_pass_that_changes_nothing() -> None:
    assert run(twice.node, lambda root: root).stages == ()
