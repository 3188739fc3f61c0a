"""Reductions of datasets as loops of the graph.

The operation `ReduceDataset` prepares its function anew whenever it runs, which takes longer than
most clients' arithmetic.  A `While` loop over an iterator does the same, in the same order, and its
body is prepared once, together with the graph.
"""

from __future__ import annotations

from typing import Any

REDUCE = "ReduceDataset"


def loops_for_reductions(graph: Any) -> None:
    """Replaces each reduction of a GraphDef of TensorFlow's own, also inside its functions."""
    functions = {function.signature.name: function for function in graph.library.function}
    signatures = {name: function.signature for name, function in functions.items()}
    _rewrite(graph, graph.node, signatures, "")
    for function in functions.values():
        if _rewrite(graph, function.node_def, signatures, function.signature.name):
            _rename_outputs(function)


def _rewrite(graph: Any, nodes: Any, signatures: dict[str, Any], inside: str) -> list[str]:
    """Replaces the reductions among some nodes of a graph; their names stay."""
    found = [node for node in nodes if node.op == REDUCE]
    for node in found:
        loop = _Loop(node, signatures[node.attr["f"].func.name], inside)
        loop.add_functions(graph.library)
        loop.add_nodes(nodes)
        loop.replace()
    return [node.name for node in found]


def _rename_outputs(function: Any) -> None:
    """Adapts what uses the loops in a function: their outputs have another name."""
    loops = {node.name for node in function.node_def if node.op == "While"}

    def renamed(edge: str) -> str:
        name, _, output = edge.partition(":components:")
        return f"{name}:output:{output}" if output and name in loops else edge

    for node in function.node_def:
        node.input[:] = map(renamed, node.input)
    for name, edge in function.ret.items():
        function.ret[name] = renamed(edge)


class _Loop:
    """The loop for one reduction.

    Its variables are the state, the next element if there is one, the iterator, and whatever else
    the reduction's function takes.
    """

    def __init__(self, node: Any, signature: Any, inside: str) -> None:
        self.node = node
        self.inside = inside
        self.name = f"{inside}_{node.name}".replace("/", "_").strip("_")
        self.function = type(node.attr["f"])()
        self.function.CopyFrom(node.attr["f"])
        self.state = list(node.attr["Tstate"].list.type)
        self.others = list(node.attr["Targuments"].list.type)
        types = [argument.type for argument in signature.input_arg]
        self.elements = types[len(self.state) : len(types) - len(self.others)]

    @property
    def _types(self) -> list[int]:
        return [*self.state, _VARIANT, _RESOURCE, *self.others]

    def add_functions(self, library: Any) -> None:
        """Adds the loop's condition and body."""
        condition = self._function(library, "condition")
        _result(condition, "again", _BOOL, "more:has_value:0")
        self._add(condition.node_def, "more", "OptionalHasValue", ["element"])
        body = self._function(library, "body")
        elements = self._add(body.node_def, "value", "OptionalGetValue", ["element"])
        self._describe(elements)
        values = [f"value:components:{index}" for index in range(len(self.elements))]
        states = [f"state_{index}" for index in range(len(self.state))]
        others = [f"other_{index}" for index in range(len(self.others))]
        step = self._add(
            body.node_def, "step", "StatefulPartitionedCall", [*states, *values, *others]
        )
        step.attr["Tin"].list.type.extend([*self.state, *self.elements, *self.others])
        step.attr["Tout"].list.type.extend(self.state)
        step.attr["f"].CopyFrom(self.function)
        following = self._add(body.node_def, "following", "IteratorGetNextAsOptional", ["iterator"])
        self._describe(following)
        for index, type in enumerate(self.state):
            _result(body, f"next_state_{index}", type, f"step:output:{index}")
        _result(body, "next_element", _VARIANT, "following:optional:0")
        _result(body, "next_iterator", _RESOURCE, "iterator")
        for index, type in enumerate(self.others):
            _result(body, f"next_other_{index}", type, f"other_{index}")

    def _function(self, library: Any, part: str) -> Any:
        """A new function of the loop's variables."""
        function = library.function.add()
        function.signature.name = f"{self.name}_{part}"
        function.signature.is_stateful = True
        states = [(f"state_{index}", type) for index, type in enumerate(self.state)]
        others = [(f"other_{index}", type) for index, type in enumerate(self.others)]
        pair = [("element", _VARIANT), ("iterator", _RESOURCE)]
        for name, type in [*states, *pair, *others]:
            function.signature.input_arg.add(name=name, type=type)
        return function

    def add_nodes(self, nodes: Any) -> None:
        """Adds what makes the iterator and its first element."""
        name, dataset = self.node.name, self.node.input[0]
        handle = ":handle:0" if self.inside else ""
        iterator = self._add(nodes, f"{name}/iterator", "AnonymousIteratorV3", [])
        self._describe(iterator)
        controls = [edge for edge in self.node.input if edge.startswith("^")]
        iterator.input.extend(controls)
        inputs = [dataset, f"{name}/iterator{handle}"]
        self._add(nodes, f"{name}/begin", "MakeIterator", inputs)
        first = self._add(nodes, f"{name}/first", "IteratorGetNextAsOptional", inputs[1:])
        first.input.append(f"^{name}/begin")
        self._describe(first)

    def replace(self) -> None:
        """Turns the reduction's node into the loop."""
        node = self.node
        data = [edge for edge in node.input if not edge.startswith("^")]
        controls = [edge for edge in node.input if edge.startswith("^")]
        states, others = data[1 : 1 + len(self.state)], data[1 + len(self.state) :]
        optional, handle = (":optional:0", ":handle:0") if self.inside else ("", "")
        pair = [f"{node.name}/first{optional}", f"{node.name}/iterator{handle}"]
        node.op = "While"
        node.input[:] = [*states, *pair, *others, *controls]
        node.attr.clear()
        node.attr["T"].list.type.extend(self._types)
        node.attr["cond"].func.name = f"{self.name}_condition"
        node.attr["body"].func.name = f"{self.name}_body"
        node.attr["parallel_iterations"].i = 1
        node.attr["_lower_using_switch_merge"].b = True
        for _ in self._types:
            node.attr["output_shapes"].list.shape.add(unknown_rank=True)

    def _add(self, nodes: Any, name: str, operation: str, inputs: list[str]) -> Any:
        return nodes.add(name=name, op=operation, input=inputs)

    def _describe(self, node: Any) -> None:
        """Says what the elements of the dataset are; their shapes need not be known."""
        node.attr["output_types"].list.type.extend(self.elements)
        for _ in self.elements:
            node.attr["output_shapes"].list.shape.add(unknown_rank=True)


_BOOL, _RESOURCE, _VARIANT = 10, 20, 21


def _result(function: Any, name: str, type: int, edge: str) -> None:
    function.signature.output_arg.add(name=name, type=type)
    function.ret[name] = edge
