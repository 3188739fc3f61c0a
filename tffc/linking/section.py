"""Compiled sections, read and checked: a graph, and its tensors that hold the parameter and the
result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tffc.graphs.body import Body, body_of_graph, outputs_of
from tffc.graphs.node import port_of, reached, source
from tffc.graphs.operations.effects import overwriting
from tffc.graphs.reading import read_graph
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    read_tensorflow,
)
from tffc.linking.attributes import type_number
from tffc.linking.operand import leaf_types, matched
from tffc.support.errors import GraphError

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef, NodeDef


REFERENCE_TYPES = 100
"""The number of an element type plus this is the type of references to such tensors."""


class SectionContent(NamedTuple):
    """A section's content.

    Tensors are written like inputs of nodes: `node` for port 0, else `node:port`.  `parameter` and
    `result` have those of the leaves of the type, in order; `initialize_op` and `session_token` are
    empty where there is none.
    """

    graph: GraphDef
    nodes: dict[str, NodeDef]
    parameter: tuple[str, ...]
    result: tuple[str, ...]
    initialize_op: str
    session_token: str

    def argument_edges(self) -> frozenset[str]:
        """Return the edges from the parameter, control edges included."""
        return frozenset(_edges_of(self.parameter))

    def given_edges(self) -> frozenset[str]:
        """Return the edges from the parameter and from the session token."""
        return self.argument_edges().union(_edges_of((self.session_token,)))

    def own_nodes(self) -> dict[str, NodeDef]:
        """Return the nodes by name, without those that an argument or the session token
        replaces."""
        replaced = {source(edge) for edge in self.given_edges()}
        return {name: node for name, node in self.nodes.items() if name not in replaced}

    def needed(self) -> dict[str, list[str]]:
        """Return the nodes that results and initialization need, in order, each with its inputs.

        Replaced nodes are not among them.
        """
        given_edges = self.given_edges()
        roots = [edge for edge in self.result if edge not in given_edges]
        edges: dict[str, list[str]] = {}

        def needs(name: str) -> Iterator[str]:
            edges[name] = [edge.removesuffix(":0") for edge in self.nodes[name].input]
            for edge in edges[name]:
                if edge not in given_edges:
                    yield source(edge)

        reached([*map(source, roots), *filter(None, (self.initialize_op,))], needs)
        return {name: edges[name] for name in self.nodes if name in edges}

    def body(self) -> Body:
        """Return the graph as far as results and initialization need it."""
        nodes = {name: self.nodes[name] for name in self.needed()}
        return body_of_graph(nodes, self.parameter, self.result)


def _edges_of(tensors: Iterable[str]) -> Iterator[str]:
    """Yield the data and control edges from some tensors; there may be an empty name among them."""
    for name in filter(None, tensors):
        yield name
        yield f"^{source(name)}"


def read_section(section: Compiled) -> SectionContent:
    """Return the content of a TensorFlow section.

    Raises:
      GraphError: it has no TensorFlow graph, or one that does not fit its type.
      WireError: its message is malformed.
    """
    return _SectionReader(section).read()


class _SectionReader:
    def __init__(self, section: Compiled) -> None:
        self._section = section
        self._nodes: dict[str, NodeDef] = {}

    def read(self) -> SectionContent:
        if self._section.kind != "tensorflow":
            raise self._refusal("E304", "a TensorFlow graph was expected, not an XLA module")
        signature = self._section.type
        assert isinstance(signature, FunctionType)
        content = read_tensorflow(self._section.payload)
        graph = self._graph(content.graph_def)
        parameter = self._leaves(content.parameter, signature.parameter, "parameter")
        self._check_bound_once(parameter)
        init = content.initialize_op
        if init and init not in self._nodes:
            raise self._refusal(
                "E301", f"the graph does not have the node {init!r}, which is to initialize it"
            )
        token = content.session_token_tensor_name
        return SectionContent(
            graph,
            self._nodes,
            parameter,
            result=self._leaves(content.result, signature.result, "result"),
            initialize_op=init,
            session_token=self._tensor(token, "session token", None) if token else "",
        )

    def _refusal(self, code: str, message: str, notes: tuple[str, ...] = ()) -> GraphError:
        note = f"in a compiled section of type `{self._section.type}`"
        return GraphError(code, message, notes=(*notes, note))

    def _graph(self, encoded: bytes) -> GraphDef:
        try:
            graph = read_graph(encoded)
        except GraphError as error:
            raise self._refusal(error.code, error.message, error.notes) from None
        self._nodes = {node.name: node for node in graph.node}
        operation = overwriting(graph)
        if operation:
            raise GraphError(
                "E330",
                f"the graph writes over a tensor, by {operation}",
                notes=(f"in a compiled section of type `{self._section.type}`",),
                help="use one that returns a new tensor, such as tf.tensor_scatter_nd_update",
            )
        return graph

    def _leaves(
        self, binding: SectionBinding | None, kind: Type | None, role: str
    ) -> tuple[str, ...]:
        if binding is None and kind is None:
            return ()
        if binding is None or kind is None:
            raise self._refusal(
                "E301",
                f"a {role} is bound, which the type does not have"
                if kind is None
                else f"no {role} is bound, which the type has",
            )
        leaf_types(kind)
        edges: list[str] = []
        for bound, expected in matched(binding, kind):
            match bound, expected:
                case TensorBinding(str() as name), TensorType():
                    edges.append(self._tensor(name, role, expected))
                case SequenceBinding(variant=name), SequenceType():
                    edges.append(self._tensor(name, role, expected))
                case _:
                    raise self._refusal(
                        "E301", f"the {role} binds {_describe(bound)} for a `{expected}`"
                    )
        return tuple(edges)

    def _tensor(self, name: str, role: str, expected: TensorType | SequenceType | None) -> str:
        """Return the tensor `node:port` as an input, checked to be there and of the expected
        type."""
        node_name = name.partition(":")[0]
        node = self._nodes.get(node_name)
        ports = None if node is None else output_types(node)
        index = port_of(name)
        if node is None or index is None or (ports is not None and index >= len(ports)):
            raise self._refusal(
                "E301", f"the {role} is bound to {name!r}, a tensor that the graph does not have"
            )
        dtype = None if ports is None else ports[index]
        if expected is not None and dtype not in (None, type_number(expected)):
            raise self._refusal(
                "E301",
                f"the {role} is bound to {name!r}, a tensor of type {dtype} in TensorFlow's "
                f"numbering, for a `{expected}`, which has {type_number(expected)}",
            )
        return f"{node_name}:{index}" if index else node_name

    def _check_bound_once(self, parameter: Sequence[str]) -> None:
        seen: set[str] = set()
        for name in parameter:
            if name in seen:
                raise self._refusal("E301", f"the parameter binds the tensor {name!r} twice")
            seen.add(name)


def output_types(node: NodeDef) -> list[int | None] | None:
    """Return the element types of a node's outputs, None for one that its attributes do not tell;
    None for an operation that TensorFlow does not have."""
    outputs = outputs_of(node, {})
    if outputs is None:
        return None
    return [None if dtype is None else dtype % REFERENCE_TYPES for _, _, dtype in outputs]


def _describe(binding: SectionBinding) -> str:
    match binding:
        case StructBinding():
            return f"a struct of {len(binding.elements)}"
        case SequenceBinding():
            return f"the sequence {binding.variant!r}"
        case TensorBinding():
            return f"the tensor {binding.tensor!r}"
