"""Graphs and functions of a section in a common form: ordered nodes, edges with output numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tffc.graphs.node import inputs_first, port_of, source
from tffc.graphs.operations import op_table
from tffc.linking.section import SectionContent

ANY_PORT = -1
"""The number in an edge from an unknown output of a node; it may be any of its outputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Edge:
    """An output of a node, by its number."""

    node: str
    port: int


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """A graph, or the body of a function.

    `nodes` are by name, in topological order except for loops.  `arguments` are the edges of the
    parameters, in order; `inputs` the data edges and `controls` the sources of the control edges
    into each node.
    """

    name: str
    arguments: tuple[Edge, ...]
    nodes: Mapping[str, Any]
    inputs: Mapping[str, tuple[Edge, ...]]
    controls: Mapping[str, tuple[str, ...]]
    results: tuple[Edge, ...]
    has_loops: bool


def body_of_section(content: SectionContent) -> Body:
    """Return the graph of a section: its results, and its initialisation."""
    nodes = {name: content.nodes[name] for name in content.needed()}
    return _body("", nodes, content.parameter, content.result, _edge)


def _edge(text: str) -> Edge:
    port = port_of(text)
    return Edge(source(text), ANY_PORT if port is None else port)


def body_of_function(function: Any, functions: Mapping[str, Any]) -> Body:
    """Return the body of a function, with the names of outputs in its edges replaced by numbers.

    TensorFlow runs the nodes of a function that have effects even if no result needs them, so the
    body has all nodes.
    """
    nodes = {node.name: node for node in function.node_def}
    ports = {name: _ports(node, functions) for name, node in nodes.items()}

    def edge(text: str) -> Edge:
        name, _, output = text.partition(":")
        return Edge(name, ports[name].get(output, ANY_PORT) if name in nodes else 0)

    signature = function.signature
    arguments = [argument.name for argument in signature.input_arg]
    results = [function.ret.get(output.name, "") for output in signature.output_arg]
    return _body(signature.name, nodes, arguments, results, edge)


def _body(
    name: str,
    nodes: Mapping[str, Any],
    arguments: Iterable[str],
    results: Iterable[str],
    edge: Callable[[str], Edge],
) -> Body:
    inputs = {
        each: tuple(edge(text) for text in node.input if not text.startswith("^"))
        for each, node in nodes.items()
    }
    controls = {
        each: tuple(text[1:] for text in node.input if text.startswith("^"))
        for each, node in nodes.items()
    }

    def before(each: str) -> list[str]:
        names = [*(edge.node for edge in inputs[each]), *controls[each]]
        return [name for name in names if name in nodes]

    order = inputs_first(nodes, before)
    places = {each: place for place, each in enumerate(order)}
    return Body(
        name,
        tuple(map(edge, arguments)),
        {each: nodes[each] for each in order},
        inputs,
        controls,
        tuple(map(edge, results)),
        any(places[earlier] > place for each, place in places.items() for earlier in before(each)),
    )


def _ports(node: Any, functions: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of a node's outputs by the names that edges of a function use."""
    operation = op_table.find(node.op)
    if operation is not None:
        outputs = operation.ports(node.attr)
        return {f"{name}:{index}": port for port, (name, index, _) in enumerate(outputs)}
    if node.op in functions:
        outputs = functions[node.op].signature.output_arg
        return {f"{output.name}:0": port for port, output in enumerate(outputs)}
    return {}
