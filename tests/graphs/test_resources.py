"""Resources in graphs: what their nodes must say, and what tells them apart."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.refusals import refusal
from tffc.graphs.canonical import canonical_graph
from tffc.graphs.proto import AttrValue, FunctionDef, GraphDef, NodeDef, TensorShapeProto
from tffc.graphs.reading import read_graph
from tffc.graphs.resources import ATTRIBUTE, ResourceNode, resource_attributes, resources_among
from tffc.support.errors import GraphError

DIGEST = hashlib.sha256(bytes(8)).hexdigest()
NO_DIGEST = "which is not the SHA-256 of an array"
HELP = "\n  help: make resources with tffc.resource, and trace the computation again"


def node_of(digest: str = DIGEST, dtype: int = 1, shape: tuple[int, ...] = (2,)) -> NodeDef:
    attributes = resource_attributes(ResourceNode(digest, dtype, shape))
    return NodeDef(name="x", op="Placeholder", attr=attributes)


def without(node: NodeDef, name: str, value: Any = None) -> NodeDef:
    del node.attr[name]
    if value is not None:
        node.attr[name].CopyFrom(value)
    return node


def test_resources_of_a_graph() -> None:
    graph = read_graph(GraphDef(node=[node_of()]).SerializeToString())
    assert list(resources_among(graph.node)) == [("x", ResourceNode(DIGEST, 1, (2,)))]
    assert ResourceNode(DIGEST, 1, (2,)).size == 8


UNKNOWN = AttrValue(shape=TensorShapeProto(unknown_rank=True))


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (node_of("../secret"), f"names '../secret', {NO_DIGEST}"),
        (node_of(DIGEST.upper()), f"names {DIGEST.upper()!r}, {NO_DIGEST}"),
        (node_of(DIGEST + "\n"), f"names '{DIGEST}\\n', {NO_DIGEST}"),
        (node_of("a" * 99), f"names '{'a' * 80}', {NO_DIGEST}"),
        (without(node_of(), ATTRIBUTE, AttrValue(i=1)), f"names '', {NO_DIGEST}"),
        (node_of(shape=(-1,)), "does not tell its shape"),
        (without(node_of(), "shape"), "does not tell its shape"),
        (without(node_of(), "shape", UNKNOWN), "does not tell its shape"),
        (node_of(dtype=7), "does not have numbers as elements"),
        (node_of(dtype=21), "does not have numbers as elements"),
        (node_of(shape=(2**40, 2**40)), "has more than 140737488355328 bytes"),
        (node_of(shape=(2**62, 0)), "has more than 140737488355328 bytes"),
    ],
)
def test_a_node_that_is_not_right(node: NodeDef, said: str) -> None:
    graph = GraphDef(node=[node]).SerializeToString()
    assert refusal(GraphError, read_graph, graph) == f"the resource 'x' {said} [E340]{HELP}"


def test_a_resource_that_waits() -> None:
    node = node_of()
    node.input.append("^y")
    graph = GraphDef(node=[NodeDef(name="y", op="NoOp"), node]).SerializeToString()
    assert refusal(GraphError, read_graph, graph) == (
        f"the resource 'x' waits for other nodes [E340]{HELP}"
    )


def test_a_resource_in_a_function() -> None:
    graph = GraphDef()
    graph.library.function.add().CopyFrom(FunctionDef(node_def=[node_of()]))
    graph.library.function[0].signature.name = "f"
    assert refusal(GraphError, read_graph, graph.SerializeToString()) == (
        "the resource 'x' is in a function, where nothing can be fed [E340]\n"
        f"  note: in the function 'f' of its library{HELP}"
    )


def test_what_tells_resources_apart() -> None:
    other = hashlib.sha256(b"x").hexdigest()
    plain = without(node_of(), ATTRIBUTE)
    nodes = [node_of(), node_of(other), node_of(dtype=3), node_of(shape=(1, 2)), plain]
    forms = {canonical_graph(GraphDef(node=[node]), [], ["x:0"], "") for node in nodes}
    assert len(forms) == len(nodes)
