"""Compiled sections as the reference side reads them: a graph, and the tensors that hold the
parameter and the result.

`tffc.linking.section` reads sections too, for the compiler.  Here they are read anew: what runs a
program unchanged shares no code with what is compared with it, so that a fault in either is seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tffc.graphs import reading
from tffc.graphs.operations.effects import overwriting
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    read_tensorflow,
)
from tffc.language.wire.python_functions import unknown_calls
from tffc.support.errors import GraphError

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef, NodeDef


class UnreadableGraph(ValueError):
    """A section does not hold a graph that fits its type; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class GraphContent:
    """The content of a section: its nodes by name, and the names of tensors, `node:port`.

    `parameter` and `result` pair those of the leaves of the type, in order, with the leaves.
    `initialize_op` and `session_token` are empty where there is none.
    """

    graph: GraphDef
    nodes: dict[str, NodeDef]
    parameter: tuple[tuple[str, TensorType | SequenceType], ...]
    result: tuple[tuple[str, TensorType | SequenceType], ...]
    initialize_op: str
    session_token: str


def read_graph(section: Compiled) -> GraphContent:
    """Return the content of a TensorFlow section.

    Raises:
      UnreadableGraph: it has no graph that fits its type.
      WireError: its message is malformed.
    """
    assert isinstance(section.type, FunctionType)
    content = read_tensorflow(section.payload)
    try:
        graph = reading.read_graph(content.graph_def)
    except GraphError as error:
        raise UnreadableGraph(error.message) from None
    if unknown_calls(graph):
        raise UnreadableGraph("it calls a function of Python that this process does not have")
    operation = overwriting(graph)
    if operation:
        raise UnreadableGraph(f"it writes over a tensor that others may read, by {operation}")
    nodes = {node.name: node for node in graph.node}
    parameter = tuple(_bound(content.parameter, section.type.parameter, "parameter"))
    result = tuple(_bound(content.result, section.type.result, "result"))
    if len({name for name, _ in parameter}) < len(parameter):
        raise UnreadableGraph("its parameter binds a tensor twice")
    token = content.session_token_tensor_name
    named = [name for name, _ in (*parameter, *result)] + ([_tensor(token)] if token else [])
    initial = [content.initialize_op] if content.initialize_op else []
    for name in (*named, *initial):
        if name.partition(":")[0] not in nodes:
            raise UnreadableGraph(f"it is bound to {name!r}, which the graph does not have")
    session_token = _tensor(token) if token else ""
    return GraphContent(graph, nodes, parameter, result, content.initialize_op, session_token)


def _bound(
    binding: SectionBinding | None, type: Type | None, role: str
) -> Iterator[tuple[str, TensorType | SequenceType]]:
    """Yield the tensor of each leaf of a type, in order, with the leaf."""
    # None stands for what is not there; a graph holds no leaves but tensors and sequences.
    stack: list[tuple[SectionBinding | None, Type | None]] = [(binding, type)]
    while stack:
        match stack.pop():
            case None, None:
                pass
            case TensorBinding(str() as name), TensorType() as leaf:
                yield _tensor(name), leaf
            case SequenceBinding(variant=name), SequenceType() as leaf:
                yield _tensor(name), leaf
            case StructBinding(elements), StructType() as struct if len(elements) == len(struct):
                stack.extend(zip(reversed(elements), reversed(struct.types), strict=True))
            case _:
                raise UnreadableGraph(f"its {role} is bound otherwise than its type says")


def _tensor(name: str) -> str:
    """Return the name of a tensor with its port."""
    node, _, port = name.partition(":")
    return f"{node}:{port or 0}"
