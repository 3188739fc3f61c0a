"""Edges between nodes, and which nodes need a name for their state."""

from __future__ import annotations

from typing import Any

import pytest

from tffc.graphs.node import inputs_first, port_of, reached, rename_colocations, source
from tffc.graphs.proto import NodeDef
from tffc.graphs.state import is_named_like_node, separable


@pytest.mark.parametrize(
    ("edge", "port"),
    [("x", 0), ("x:0", 0), ("x:2", 2), ("a/b:17", 17), ("x:", None), ("x:y", None), ("x:-1", None)],
)
def test_ports(edge: str, port: int | None) -> None:
    assert port_of(edge) == port


def test_sources() -> None:
    assert list(map(source, ("x", "x:2", "^x", "a/b:1"))) == ["x", "x", "x", "a/b"]


INPUTS = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}


def test_a_walk_through_inputs() -> None:
    assert inputs_first(["a"], INPUTS.__getitem__) == ["d", "c", "b", "a"]
    assert list(reached(["b", "a"], INPUTS.__getitem__)) == ["b", "d", "a", "c"]


def made(name: str, op: str, shared_name: str = "") -> Any:
    node = NodeDef(name=name, op=op)
    node.attr["shared_name"].s = shared_name.encode()
    return node


def test_state_that_two_nodes_name_needs_its_name() -> None:
    nodes = [
        made("a", "VarHandleOp", "one"),
        made("b", "VarHandleOp", "one"),
        made("c", "VarHandleOp", "two"),
        made("d", "HashTableV2", "three"),
        made("e", "HashTableV2", "four"),
        made("f", "HashTableV2", "four"),
        made("g", "FIFOQueueV2", "five"),
    ]
    assert [node.name for node in separable(nodes)] == ["c", "d"]


def test_state_is_named_like_its_node_unless_an_attribute_names_it() -> None:
    assert is_named_like_node(made("q", "FIFOQueueV2"))
    assert not is_named_like_node(made("q", "FIFOQueueV2", "name"))
    assert not is_named_like_node(made("v", "VarHandleOp"))


def test_colocations_follow_the_names_of_nodes() -> None:
    node = NodeDef(name="n", op="NoOp")
    node.attr["_class"].list.s.extend([b"loc:@a", b"other", b"loc:@gone"])
    rename_colocations(node, lambda name: None if name == "gone" else f"c1/{name}")
    assert list(node.attr["_class"].list.s) == [b"loc:@c1/a", b"other"]
