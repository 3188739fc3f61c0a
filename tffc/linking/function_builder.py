"""Functions of a graph's library, built by linking as graphs are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tffc.errors import GraphError
from tffc.graphdef.functions import NAME_LENGTH, Function
from tffc.graphdef.node import encoded, port_of, source
from tffc.linking.attributes import shapes_attribute, type_number
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, map_tensors
from tffc.linking.section import missing_input
from tffc.operations import op_table
from tffc.proto import FunctionDef, OpDef


class FunctionBuilder(GraphBuilder):
    """One function under construction, which the graph of `parent` is going to call.

    It takes its parameter and, after that, the tensors of the parent that it captures.  Sections
    that are called in it are initialized anew each time that the function runs.
    """

    is_self_contained = True

    def __init__(self, parent: GraphBuilder) -> None:
        super().__init__(parent.templates)
        self.prefix = parent.new_function_prefix()
        self._parent = parent
        self._captured: dict[str, tuple[Tensor, Tensor]] = {}

    def capture(self, operand: Operand) -> Operand:
        """Return an operand of the parent as one of this function."""
        return map_tensors(operand, self._capture)

    def session_token(self) -> Tensor:
        """Return the parent's session token, captured."""
        return self._capture(self._parent.session_token())

    @property
    def captured(self) -> list[Tensor]:
        """The parent's tensors that the function takes after its parameter; once it is defined,
        only those that its result needs."""
        return [outer for outer, _ in self._captured.values()]

    def define(self, parameter: Sequence[Tensor], result: Sequence[Tensor]) -> Function:
        """Return the function from these leaves of its parameter, and what it captures, to
        `result`.

        The parent's graph has it in its library then.

        Raises:
          GraphError: it uses an output of an operation that TensorFlow does not have.
        """
        needed = self._needed(tensor.node for tensor in result)
        self._captured = {
            name: (outer, inner)
            for name, (outer, inner) in self._captured.items()
            if inner.node in needed
        }
        arguments = [*parameter, *(inner for _, inner in self._captured.values())]
        function = FunctionDef()
        for index, tensor in enumerate(arguments):
            function.signature.input_arg.append(_argument(f"argument_{index}", tensor))
            shape = shapes_attribute([tensor.type])
            function.arg_attr[index].attr["_output_shapes"].CopyFrom(shape)
        names = {tensor.node: f"argument_{index}" for index, tensor in enumerate(arguments)}
        inside = needed.difference(names)
        nodes = [node for node in self._nodes.values() if node.name in inside]
        messages = {node.name: node.message(inside) for node in nodes}
        edges = _Edges(names, messages, self._called(nodes))
        for message in messages.values():
            edges.rewrite_inputs(message)
            function.node_def.append(message)
        for index, tensor in enumerate(result):
            function.signature.output_arg.append(_argument(f"result_{index}", tensor))
            function.ret[f"result_{index}"] = edges.inside(tensor.edge, f"result_{index}")
        function.signature.is_stateful = any(op_table.is_stateful(node.op) for node in nodes)
        return self._named(function, tuple(dict.fromkeys(f for n in nodes for f in n.functions)))

    def _capture(self, tensor: Tensor) -> Tensor:
        if tensor.name not in self._captured:
            self._captured[tensor.name] = (tensor, self._placeholder("captured", tensor.type))
        return self._captured[tensor.name][1]

    def _named(self, function: Any, calls: tuple[str, ...]) -> Function:
        content = encoded(function)
        name = f"f_{hashlib.sha256(content).hexdigest()[:NAME_LENGTH]}"
        function.signature.name = name
        made = Function(name, encoded(function), calls, gradient="")
        self._parent.adopt([made, *self._functions.values()], self.versions)
        return made


class _Edges:
    """The edges of a function under construction, as functions write them.

    A graph counts the outputs of a node through; a function names the output that a tensor is part
    of, and counts within that: `node:name:index`.  Its arguments are known by their names alone.
    """

    def __init__(
        self, arguments: Mapping[str, str], nodes: Mapping[str, Any], functions: Iterable[Function]
    ) -> None:
        self._arguments = arguments
        self._nodes = nodes
        self._functions = {function.name: function for function in functions}
        self._edges: dict[str, list[str]] = {}

    def rewrite_inputs(self, node: Any) -> None:
        """Write the inputs of a node as in a function.  Arguments are there before any node runs,
        so that nothing has to wait for them."""
        waits = [edge for edge in node.input if edge.startswith("^") and edge[1:] in self._nodes]
        data = [self.inside(edge, node.name) for edge in node.input if not edge.startswith("^")]
        node.input[:] = [*data, *waits]

    def inside(self, edge: str, reader: str) -> str:
        """Return a data edge to a node as it is written in a function.

        Raises:
          GraphError: no node has such an output.
        """
        name, port = source(edge), port_of(edge)
        if name in self._arguments:
            return self._arguments[name]
        if name not in self._edges:
            self._edges[name] = self._edges_from(self._nodes[name])
        if port is None or port >= len(self._edges[name]):
            raise missing_input(reader, edge)
        return self._edges[name][port]

    def _edges_from(self, node: Any) -> list[str]:
        """Return the edges from a node, as they are written in a function."""
        if node.op in self._functions:
            signature = FunctionDef.FromString(self._functions[node.op].content).signature
            return [f"{node.name}:{output.name}:0" for output in signature.output_arg]
        if op_table.find(node.op) is None:
            raise GraphError(
                "E318",
                f"the outputs of the operation {node.op} of node {node.name!r} are not known, so "
                "that it cannot be part of a function",
                notes=("the function is applied to the elements of a sequence",),
            )
        return op_table.function_edges(node)


def _argument(name: str, tensor: Tensor) -> Any:
    return OpDef.ArgDef(name=name, type=type_number(tensor.type))
