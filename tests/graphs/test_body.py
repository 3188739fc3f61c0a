"""Graphs and functions as bodies, and the order of what their nodes do to state."""

from __future__ import annotations

from typing import Any

import pytest

from tffc.graphs.body import ANY_PORT, Edge, body_of_graph, outputs_of
from tffc.graphs.functions import Library
from tffc.graphs.order import Accesses
from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef


def split(name: str, count: int) -> Any:
    node = NodeDef(name=name, op="Split", input=["axis", "value"])
    node.attr["num_split"].i = count
    return node


def library(*nodes: Any, result: str = "", lists: bool = False) -> Library:
    """A library with a function `f` of these nodes, and a function `g` of two results."""
    graph = GraphDef()
    function = FunctionDef(node_def=nodes, ret={"out": result})
    function.signature.name = "f"
    function.signature.input_arg.add(name="axis")
    function.signature.input_arg.add(name="value")
    function.signature.output_arg.add(name="out")
    function.signature.control_output.append("done")
    function.control_ret["done"] = "last"
    called = graph.library.function.add()
    called.signature.name = "g"
    called.signature.output_arg.add(name="one", type=1)
    called.signature.output_arg.add(name="two", type=3, number_attr="N" if lists else "")
    graph.library.function.append(function)
    return Library(graph.library)


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("value", Edge("value", 0)),
        ("value:1", Edge("value", 1)),
        ("s:output:2", Edge("s", 2)),
        ("s:output", Edge("s", ANY_PORT)),
        ("s:output:3", Edge("s", ANY_PORT)),
        ("s:other:0", Edge("s", ANY_PORT)),
        ("s", Edge("s", ANY_PORT)),
        ("single:output", Edge("single", 0)),
        ("call:two:0", Edge("call", 1)),
        ("call:two", Edge("call", 1)),
        ("unknown:output:0", Edge("unknown", ANY_PORT)),
    ],
)
def test_edges_of_functions(text: str, edge: Edge) -> None:
    call, unknown = NodeDef(name="call", op="g"), NodeDef(name="unknown", op="NoSuchOperation")
    nodes = split("s", 3), split("single", 1), call, unknown
    assert library(*nodes, result=text).body("f").results == (edge,)


def test_lists_of_results_have_unknown_numbers() -> None:
    call = NodeDef(name="call", op="g")
    functions = library(call, result="call:one:0", lists=True)
    assert functions.body("f").results == (Edge("call", ANY_PORT),)
    assert outputs_of(call, functions.functions) is None


def test_a_function_is_ordered() -> None:
    last = NodeDef(name="last", op="Identity", input=["s:output:1", "^first", "^axis"])
    body = library(last, split("s", 2), NodeDef(name="first", op="NoOp"), result="last").body("f")
    assert list(body.nodes) == ["first", "s", "last"]
    assert body.arguments == (Edge("axis", 0), Edge("value", 0))
    assert body.inputs["last"] == (Edge("s", 1),)
    assert body.controls["last"] == ("first", "axis")
    assert body.before("last") == ["s", "first"]
    assert body.awaited == ("last",)
    assert not body.has_loops


def test_edges_of_graphs() -> None:
    nodes = {
        "a": NodeDef(name="a", op="Merge", input=["x:2", "b", "y:z"]),
        "b": NodeDef(name="b", op="NextIteration", input=["a:0"]),
    }
    body = body_of_graph(nodes, ["x:2"], ["a:1"])
    assert body.inputs["a"] == (*body.arguments, Edge("b", 0), Edge("y", ANY_PORT))
    assert body.results == (Edge("a", 1),)
    assert body.has_loops


READ, CHANGE = {"state": False}, {"state": True}


@pytest.mark.parametrize(
    ("accesses", "is_determined"),
    [
        ([("a", "", READ), ("b", "", READ)], True),
        ([("a", "", READ), ("b", "", CHANGE)], False),
        ([("a", "", CHANGE), ("b", "", READ)], False),
        ([("a", "", CHANGE), ("b", "", {"other": True})], True),
        ([("a", "", READ), ("b", "a", CHANGE)], True),
        ([("a", "", READ), ("b", "", READ), ("c", "a", CHANGE)], False),
        ([("a", "", READ), ("b", "", READ), ("c", "ab", CHANGE)], True),
        ([("a", "", CHANGE), ("b", "a", {}), ("c", "b", CHANGE)], True),
        ([("a", "", CHANGE), ("b", "a", READ), ("c", "a", READ), ("d", "b", CHANGE)], False),
    ],
)
def test_the_order_of_accesses(
    accesses: list[tuple[str, str, dict[Any, bool]]], is_determined: bool
) -> None:
    order = Accesses()
    determined = [order.enter(*each) for each in accesses]
    assert all(determined) is is_determined
