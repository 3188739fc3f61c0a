"""Functions of a graph's library, built by linking as graphs are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tffc.graphs.functions import NAME_LENGTH, Function
from tffc.graphs.node import GraphNode, encoded, port_of, source
from tffc.graphs.operations import op_table
from tffc.graphs.operations.iterations import is_steady
from tffc.graphs.operations.kernels import remembers_runs
from tffc.graphs.proto import FunctionDef, NodeDef, OpDef
from tffc.graphs.resources import ResourceNode
from tffc.linking.attributes import shapes_attribute, type_number
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, rebuild
from tffc.support.errors import GraphError
from tffc.support.printable import printable


class FunctionBuilder(GraphBuilder):
    """One function under construction, which the graph of `parent` is going to call.

    It takes its parameter and then the tensors of the parent that it captures.  Sections called in
    it are initialized each time the function runs.
    """

    is_self_contained = True

    def __init__(self, parent: GraphBuilder) -> None:
        super().__init__(parent.templates)
        self.prefix = parent.new_function_prefix()
        self._parent = parent
        self._captured: dict[str, tuple[Tensor, Tensor]] = {}

    def capture(self, operand: Operand) -> Operand:
        """Return an operand of the parent as one of this function."""
        return rebuild(operand, self._capture)

    def session_token(self) -> Tensor:
        """Return the parent's session token, captured."""
        return self._capture(self._parent.session_token())

    def resource(self, resource: ResourceNode) -> Tensor:
        """Return a resource of the parent, captured: nothing can be fed to a node of a function."""
        return self._capture(self._parent.resource(resource))

    @property
    def captured(self) -> list[Tensor]:
        """The parent's tensors that the function takes after its parameter; once it is defined,
        only those that its result needs."""
        return [outer for outer, _ in self._captured.values()]

    def define(self, parameter: Sequence[Tensor], result: Sequence[Tensor]) -> Function:
        """Return the function of these leaves of its parameter, and the captured tensors, that
        gives `result`.

        It is added to the library of the parent's graph.

        Raises:
          GraphError: it uses an output that its node does not have, or one of an operation that
            TensorFlow does not have, or it keeps state from element to element.
        """
        self._share_sequences(result)
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
        edges = {tensor.node: [f"argument_{index}"] for index, tensor in enumerate(arguments)}
        inside = needed.difference(edges)
        nodes = [node for node in self._nodes.values() if node.name in inside]
        messages = {node.name: node.message(inside) for node in nodes}

        def data(edge: str) -> str:
            """Return a data edge as it is written in a function."""
            name, port = source(edge), port_of(edge)
            if name not in edges:
                edges[name] = self._edges_from(messages[name])
            assert port is not None
            return edges[name][port]

        for message in messages.values():
            # Arguments exist before any node runs, so nothing has to wait for them.
            waits = [edge for edge in message.input if edge[0] == "^" and edge[1:] in messages]
            inputs = [data(edge) for edge in message.input if edge[0] != "^"]
            message.input[:] = [*inputs, *waits]
            function.node_def.append(message)
        for index, tensor in enumerate(result):
            function.signature.output_arg.append(_argument(f"result_{index}", tensor))
            function.ret[f"result_{index}"] = data(tensor.edge)
        function.signature.is_stateful = any(op_table.is_stateful(node.op) for node in nodes)
        name = f"f_{hashlib.sha256(encoded(function)).hexdigest()[:NAME_LENGTH]}"
        function.signature.name = name
        calls = tuple(dict.fromkeys(call for node in nodes for call in node.functions))
        self._check_that_runs_are_new(nodes)
        varies = any(self._functions[call].varies for call in calls) or not all(
            node.op in self._functions or is_steady(node, messages) for node in messages.values()
        )
        defined = Function(
            name, encoded(function), calls, gradient="", remembers=False, varies=varies
        )
        self._parent.adopt([defined, *self._functions.values()], self.versions)
        return defined

    def _check_that_runs_are_new(self, nodes: Sequence[GraphNode]) -> None:
        """Check that the function computes each element as if it were the first.

        Raises:
          GraphError: a kernel in it remembers the elements before.
        """
        for node in nodes:
            called = [self._functions[name] for name in node.functions]
            if any(function.remembers for function in called) or (
                node.op not in self._functions and remembers_runs(node.rest)
            ):
                raise GraphError(
                    "E745",
                    "a computation that is applied to each element of a sequence keeps state that "
                    f"the graph of all elements would share: {printable(node.op)}",
                    notes=(
                        "each call of a computation starts anew, so a draw with a seed gives every "
                        "element the same number",
                    ),
                    help="draw with tf.random.stateless_uniform and its like, apply the "
                    "computation to the whole sequence, or compile to distribute-aggregate",
                )

    def _capture(self, tensor: Tensor) -> Tensor:
        if tensor.name not in self._captured:
            self._captured[tensor.name] = (tensor, self._placeholder("captured", tensor.type))
        return self._captured[tensor.name][1]

    def _edges_from(self, node: NodeDef) -> list[str]:
        """Return the edges from a node as functions write them.

        A graph numbers all output tensors of a node; a function names the output that a tensor is
        part of, and numbers the tensors in it: `node:name:index`.
        """
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


def _argument(name: str, tensor: Tensor) -> OpDef.ArgDef:
    return OpDef.ArgDef(name=name, type=type_number(tensor.type))
