"""Graphs and bodies of functions in one form: nodes in order, edges with the numbers of outputs.

In a graph the edge `node:number` comes from one of the output tensors of a node.  In a function it
is the name of an argument, or `node:output:index`, which counts the tensors of each named output
for itself; without an index it is all tensors of that output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tffc.graphs.node import NodeView, control_edges, data_edges, inputs_first, port_of, source
from tffc.graphs.operations import op_table

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef


ANY_PORT = -1
"""The number in an edge from an unknown output of a node; it may be any of its outputs."""


class Edge(NamedTuple):
    """An output of a node, by its number."""

    node: str
    port: int


class Body(NamedTuple):
    """A graph, or the body of a function.

    `nodes` are by name, in topological order except for loops.  `arguments` are the edges of the
    parameters, in order; `inputs` the data edges and `controls` the sources of the control edges
    into each node, in the order in which the graph has the nodes.  A function returns when the
    nodes `awaited` have run.
    """

    name: str
    arguments: tuple[Edge, ...]
    nodes: Mapping[str, NodeView]
    inputs: Mapping[str, tuple[Edge, ...]]
    controls: Mapping[str, tuple[str, ...]]
    results: tuple[Edge, ...]
    awaited: tuple[str, ...]
    has_loops: bool

    def before(self, name: str) -> list[str]:
        """Return the nodes of the body that a node waits for, by edges of both kinds."""
        names = [*(edge.node for edge in self.inputs[name]), *self.controls[name]]
        return [name for name in names if name in self.nodes]


def body_of_graph(
    nodes: Mapping[str, NodeView], arguments: Iterable[str] = (), results: Iterable[str] = ()
) -> Body:
    """Return the body of a graph's nodes, whose arguments and results are edges."""
    return _body("", nodes, arguments, results, (), graph_edge)


def graph_edge(text: str) -> Edge:
    """Return the edge that a text in a graph says."""
    port = port_of(text)
    return Edge(source(text), ANY_PORT if port is None else port)


def body_of_function(
    function: FunctionDef, nodes: Mapping[str, NodeView], functions: Mapping[str, FunctionDef]
) -> Body:
    """Return the body of a function of these nodes; `functions` are those of its library by name.

    TensorFlow runs the nodes of a function that have effects even if no result needs them, so the
    body has all nodes.
    """
    ports: dict[str, dict[str, int]] = {}

    def edge(text: str) -> Edge:
        name, _, output = text.partition(":")
        if name not in nodes:
            return graph_edge(text)
        if name not in ports:
            ports[name] = ports_of(nodes[name], functions)
        return Edge(name, ports[name].get(output, ANY_PORT))

    signature = function.signature
    arguments = [argument.name for argument in signature.input_arg]
    results = [function.ret.get(output.name, "") for output in signature.output_arg]
    awaited = function.control_ret.values()
    return _body(signature.name, nodes, arguments, results, awaited, edge)


def outputs_of(
    node: NodeView, functions: Mapping[str, FunctionDef]
) -> list[tuple[str, int, int | None]] | None:
    """Return the output tensors of a node: for each its output, its index there, and its type if
    known; None if the operation is not known."""
    operation = op_table.find(node.op)
    if operation is not None:
        return operation.ports(node.attr)
    if node.op not in functions:
        return None
    outputs = functions[node.op].signature.output_arg
    if any(output.number_attr or output.type_list_attr for output in outputs):
        return None
    return [(output.name, 0, output.type) for output in outputs]


def ports_of(node: NodeView, functions: Mapping[str, FunctionDef]) -> dict[str, int]:
    """Return the numbers of a node's outputs by the names that edges of a function use."""
    ports: dict[str, int] = {}
    for port, (output, index, _) in enumerate(outputs_of(node, functions) or ()):
        ports[f"{output}:{index}"] = port
        if index:
            ports.pop(output, None)
        else:
            ports[output] = port
    return ports


def _body(
    name: str,
    nodes: Mapping[str, NodeView],
    arguments: Iterable[str],
    results: Iterable[str],
    awaited: Iterable[str],
    edge: Callable[[str], Edge],
) -> Body:
    body = Body(
        name,
        tuple(map(edge, arguments)),
        nodes,
        {name: tuple(map(edge, data_edges(node))) for name, node in nodes.items()},
        {name: tuple(text[1:] for text in control_edges(node)) for name, node in nodes.items()},
        tuple(map(edge, results)),
        tuple(awaited),
        has_loops=False,
    )
    order = inputs_first(nodes, body.before)
    places = {name: place for place, name in enumerate(order)}
    return body._replace(
        nodes={name: nodes[name] for name in order},
        has_loops=any(
            places[earlier] > place
            for name, place in places.items()
            for earlier in body.before(name)
        ),
    )
