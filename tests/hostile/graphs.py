"""Compiled sections written node by node, as somebody could who means harm, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tffc.graphs import proto
from tffc.graphs.operations import op_table
from tffc.graphs.proto.encoding import content_field, string_field
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, TensorType
from tffc.language.wire import (
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    write_tensorflow,
    write_xla,
)

INT = TensorType(DType.INT32)


def add(
    nodes: Any, name: str, op: str, inputs: Sequence[str] = (), **attributes: bytes | str
) -> Any:
    """Adds a node; of its attributes, texts name functions and bytes are strings.

    If it has fewer inputs than its operation takes, others fill the places that are left.
    """
    node = nodes.add(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        if isinstance(value, str):
            node.attr[key].func.name = value
        else:
            node.attr[key].s = value
    operation = op_table.find(op)
    if operation is not None:
        _complete(nodes, node, operation)
    return node


def _complete(nodes: Any, node: Any, operation: op_table.Operation) -> None:
    controls = [edge for edge in node.input if edge.startswith("^")]
    data = [edge for edge in node.input if not edge.startswith("^")]
    single = sum(int(text) for text in operation.inputs if text.isdigit())
    for text in operation.inputs:
        rest = max(len(data) - single, 0)
        if text.startswith("@") and text[1:] not in node.attr:
            node.attr[text[1:]].list.type.extend([7] * rest)
        elif text.startswith("*") and text[1:] not in node.attr:
            node.attr[text[1:].partition("=")[0]].i = rest
        single += 0 if text.isdigit() else rest
    while len(data) < (operation.input_count(node.attr) or 0):
        data.append(_filling(nodes))
    node.input[:] = [*data, *controls]


def _filling(nodes: Any) -> str:
    names = {node.name for node in nodes}
    if "x" in names:
        return "x"
    if "filling" not in names:
        add_text(nodes, "filling", b"")
    return "filling:output:0"


def add_text(nodes: Any, name: str, text: bytes) -> Any:
    """Adds a constant string."""
    node = nodes.add(name=name, op="Const")
    node.attr["dtype"].type = 7
    node.attr["value"].tensor.dtype = 7
    node.attr["value"].tensor.string_val.append(text)
    return node


def add_function(graph: Any, name: str, *parameters: str) -> Any:
    """Adds a function with these parameters to a graph's library, and gives its nodes."""
    function = graph.library.function.add()
    function.signature.name = name
    for parameter in parameters:
        function.signature.input_arg.add(name=parameter, type=7)
    return function.node_def


def new_graph() -> Any:
    """A graph that gives its parameter `x`."""
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    return graph


def section(graph: Any, initialize_op: str = "", result: str = "x") -> Compiled:
    """The section `(int32 -> int32)` of a graph from `new_graph`."""
    content = TensorFlowSection(
        graph.SerializeToString(deterministic=True),
        TensorBinding("x:0"),
        TensorBinding(f"{result}:0"),
        initialize_op,
        "",
    )
    return Compiled("tensorflow", write_tensorflow(content), FunctionType(INT, INT))


def reading(name: bytes = b"secret") -> Compiled:
    """A section that gives its parameter once it has read a file."""
    graph = new_graph()
    add_text(graph.node, "name", name)
    add(graph.node, "read", "ReadFile", ["name"])
    add(graph.node, "y", "Identity", ["x", "^read"]).attr["T"].type = 3
    return section(graph, result="y")


def hlo(*instructions: Mapping[int, str]) -> Compiled:
    """An XLA section of these instructions, each text fields by their numbers."""
    encoded = (
        content_field(2, b"".join(string_field(number, text) for number, text in each.items()))
        for each in instructions
    )
    module = content_field(3, b"".join(encoded))
    payload = write_xla(XlaSection(module, TensorBinding(0), TensorBinding(0)))
    return Compiled("xla", payload, FunctionType(INT, INT))
