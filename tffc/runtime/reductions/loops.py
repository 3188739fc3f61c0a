"""Replacing reductions of datasets by loops of the graph.

The operation `ReduceDataset` instantiates its function whenever it runs, which takes longer than
most clients' arithmetic.  A `While` loop computes the same in the same order, and its body is
instantiated once, with the graph.  If elements are rows of known tensors, the loop gathers them;
otherwise it reads them from an iterator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tffc.graphs.functions import Library, rename_outputs
from tffc.graphs.node import Nodes, control_edges
from tffc.graphs.rewrites.inlining import CALL, inline_calls, inline_given
from tffc.graphs.rewrites.waiting import let_readers_wait
from tffc.linking.attributes import VARIANT
from tffc.runtime.reductions.slices import Slices, find_slices, make_function
from tffc.runtime.reductions.steps import Step, find_steps

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef, OpDef
    from tffc.runtime.frameworks.tensorflow.load import Tensor


REDUCE = "ReduceDataset"


def loops_for_reductions(graph: GraphDef, columns: Mapping[str, Sequence[tuple[str, int]]]) -> None:
    """Replace each reduction in a GraphDef of TensorFlow's own class, also inside its functions.

    `columns` says which datasets have as elements the rows of placeholders, by the datasets' names:
    the placeholders' names and element types.

    A graph with a function whose kernels keep state stays as it is: a reduction makes the kernels
    of its function anew each time it runs, and a loop has the same ones as long as the graph.
    """
    library = Library(graph.library)
    if any(map(library.keeps_state, library.functions)):
        return
    # First, so that a reduction is in the same graph as its dataset's source and can gather its
    # rows.
    inline_given(graph, VARIANT)
    let_readers_wait(graph.node)
    for function in graph.library.function:
        let_readers_wait(function.node_def)
    functions = {function.signature.name: function for function in graph.library.function}
    signatures = {name: function.signature for name, function in functions.items()}
    _Rewriting(graph, graph.node, "", columns).replace_all(signatures)
    for name, function in functions.items():
        if _Rewriting(graph, function.node_def, name, {}).replace_all(signatures):
            # A reduction has become a loop, whose outputs have other names.
            rename_outputs(function, "While", "components")
    # Inline the calls in the loops' functions.  TensorFlow would do it too, but with additional
    # nodes that run in each step.
    everything = {function.signature.name: function for function in graph.library.function}
    for name, function in everything.items():
        if name not in functions:
            inline_calls(function, everything)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rewriting:
    """The nodes of a graph, or of the function named `inside`."""

    graph: GraphDef
    nodes: Nodes
    inside: str
    columns: Mapping[str, Sequence[tuple[str, int]]]

    def replace_all(self, signatures: Mapping[str, OpDef]) -> bool:
        """Replace the reductions, keeping their names; return whether there were any."""
        reductions = [node for node in self.nodes if node.op == REDUCE]
        by_name = {node.name: node for node in self.nodes} if reductions else {}
        for node in reductions:
            source, steps = find_steps(node, by_name, signatures)
            slices = find_slices(source, by_name, self.columns)
            loop = _Loop(self, node, source, steps)
            elements = _Iterator(loop) if slices is None else _Gathering(loop, slices, self.columns)
            loop.build(elements)
        return bool(reductions)


class _Elements(Protocol):
    """A source of a loop's elements; it has its own loop variables, in a fixed order."""

    @property
    def types(self) -> Sequence[int]: ...

    def begin(self) -> list[str]:
        """Add nodes for the initial values of the variables, next to the reduction."""
        ...

    def more(self, condition: FunctionDef) -> str:
        """Add nodes to the condition that compute whether there is another element."""
        ...

    def take(self, body: FunctionDef) -> tuple[list[str], list[str]]:
        """Add nodes to the body for the element's components, and for the next values of the
        variables."""
        ...


class _Loop:
    """The loop for one reduction.

    `steps` begins with the reduction's own, which is applied last.  The loop variables are the
    states of the steps, those of the elements' source, and the steps' captured inputs.
    """

    def __init__(
        self, place: _Rewriting, node: NodeDef, source: str, steps: Sequence[Step]
    ) -> None:
        self.place = place
        self.node = node
        self.source = source
        self.name = f"{place.inside}_{node.name}".replace("/", "_").strip("_")
        self.elements = steps[-1].given
        self.controls = control_edges(node)
        self._steps = steps
        self._state = [type for step in steps for type in step.state_types]
        self._others = [type for step in steps for type in step.other_types]

    def output(self, node: str, name: str, port: int = 0) -> str:
        """Return an edge from a node beside the reduction; graphs and functions write edges
        differently."""
        return f"{node}:{name}:{port}" if self.place.inside else f"{node}:{port}"

    def build(self, elements: _Elements) -> None:
        """Add the loop's functions, and turn the reduction's node into the loop."""
        types = [*self._state, *elements.types, *self._others]
        self._add_condition(elements)
        self._add_body(elements)
        states = [edge for step in self._steps for edge in step.states]
        others = [edge for step in self._steps for edge in step.others]
        node = self.node
        node.op = "While"
        node.input[:] = [*states, *elements.begin(), *others, *self.controls]
        node.attr.clear()
        node.attr["T"].list.type.extend(types)
        node.attr["cond"].func.name = f"{self.name}_condition"
        node.attr["body"].func.name = f"{self.name}_body"
        # One step at a time, as in a reduction; and lowered to nodes of the graph, because a While
        # operation would instantiate its functions whenever it runs.
        node.attr["parallel_iterations"].i = 1
        node.attr["_lower_using_switch_merge"].b = True
        # The shape of a state may change in each step.
        for _ in types:
            node.attr["output_shapes"].list.shape.add(unknown_rank=True)

    def _add_condition(self, elements: _Elements) -> None:
        condition = self._add_function("condition", elements)
        _result(condition, "again", _BOOL, elements.more(condition))

    def _add_body(self, elements: _Elements) -> None:
        body = self._add_function("body", elements)
        values, variables = elements.take(body)
        following = self._add_steps(body, list(zip(values, self.elements, strict=True)))
        for index, (type, edge) in enumerate(zip(self._state, following, strict=True)):
            _result(body, f"next_state_{index}", type, edge)
        for index, (type, edge) in enumerate(zip(elements.types, variables, strict=True)):
            _result(body, f"next_{index}", type, edge)
        for index, type in enumerate(self._others):
            _result(body, f"next_other_{index}", type, f"other_{index}")

    def _add_steps(self, body: FunctionDef, element: list[tuple[str, int]]) -> list[str]:
        """Add the steps to the body, starting from an element's components; return the next
        states."""
        following: list[str] = []
        # Elements pass the last step first, so the variables are counted from the end.
        states, others = len(self._state), len(self._others)
        for number, step in reversed(list(enumerate(self._steps))):
            states -= len(step.states)
            others -= len(step.others)
            before = [(f"state_{states + i}", type) for i, type in enumerate(step.state_types)]
            beside = [(f"other_{others + i}", type) for i, type in enumerate(step.other_types)]
            results = [*step.state_types, *step.results]
            call = _add_call(body.node_def, f"step_{number}", [*before, *element, *beside], results)
            call.attr["f"].func.CopyFrom(step.function)
            edges = [f"{call.name}:output:{port}" for port in range(len(results))]
            following[:0] = edges[: len(before)]
            element = list(zip(edges[len(before) :], step.results, strict=True))
        return following

    def _add_function(self, part: str, elements: _Elements) -> FunctionDef:
        """Add a new function of the loop's variables."""
        function = self.place.graph.library.function.add()
        function.signature.name = f"{self.name}_{part}"
        function.signature.is_stateful = True
        for prefix, types in (
            ("state", self._state),
            ("given", elements.types),
            ("other", self._others),
        ):
            for index, type in enumerate(types):
                function.signature.input_arg.add(name=f"{prefix}_{index}", type=type)
        return function


class _Iterator:
    """Elements read from an iterator over the dataset; see `_Elements`.

    Its variables are the next element, as an optional, and the iterator.
    """

    def __init__(self, loop: _Loop) -> None:
        self.types = (VARIANT, _RESOURCE)
        self._loop = loop

    def begin(self) -> list[str]:
        loop, nodes = self._loop, self._loop.place.nodes
        name, dataset = loop.node.name, loop.source
        iterator = nodes.add(name=f"{name}/iterator", op="AnonymousIteratorV3", input=loop.controls)
        self._describe(iterator)
        handle = loop.output(iterator.name, "handle")
        begin = nodes.add(name=f"{name}/begin", op="MakeIterator", input=[dataset, handle])
        first = self._add_next(nodes, f"{name}/first", [handle, f"^{begin.name}"])
        return [loop.output(first, "optional"), handle]

    def more(self, condition: FunctionDef) -> str:
        condition.node_def.add(name="more", op="OptionalHasValue", input=["given_0"])
        return "more:has_value:0"

    def take(self, body: FunctionDef) -> tuple[list[str], list[str]]:
        value = body.node_def.add(name="value", op="OptionalGetValue", input=["given_0"])
        self._describe(value)
        following = self._add_next(body.node_def, "following", ["given_1"])
        elements = [f"value:components:{index}" for index in range(len(self._loop.elements))]
        return elements, [f"{following}:optional:0", "given_1"]

    def _add_next(self, nodes: Nodes, name: str, inputs: list[str]) -> str:
        node = nodes.add(name=name, op="IteratorGetNextAsOptional", input=inputs)
        self._describe(node)
        return name

    def _describe(self, node: NodeDef) -> None:
        """Set the attributes that describe the dataset's elements; their shapes need not be
        known."""
        node.attr["output_types"].list.type.extend(self._loop.elements)
        for _ in self._loop.elements:
            node.attr["output_shapes"].list.shape.add(unknown_rank=True)


class _Gathering:
    """Elements gathered from the rows of tensors; see `_Elements`.

    Its variables are an index, the row order that it points into, and the tensors.
    """

    def __init__(
        self, loop: _Loop, slices: Slices, columns: Mapping[str, Sequence[tuple[str, int]]]
    ) -> None:
        self._loop = loop
        self._slices = slices
        self._columns = columns[slices.source]
        self._variables = [_INT64] * slices.variables
        self.types = (*self._variables, *(type for _, type in self._columns))

    def begin(self) -> list[str]:
        loop, column = self._loop, self._columns[0]
        self._add("order", self._slices.order, [column[1]])
        order = _add_call(loop.place.nodes, f"{loop.node.name}/order", [column], self._variables)
        order.attr["f"].func.name = f"{loop.name}_order"
        order.input.extend(loop.controls)
        columns = [f"{name}:0" for name, _ in self._columns]
        return [*(f"{order.name}:{port}" for port in range(len(self._variables))), *columns]

    def more(self, condition: FunctionDef) -> str:
        self._add("more", self._slices.more, self._variables)
        inputs = [(f"given_{index}", type) for index, type in enumerate(self._variables)]
        more = _add_call(condition.node_def, "more", inputs, [_BOOL])
        more.attr["f"].func.name = f"{self._loop.name}_more"
        return "more:output:0"

    def take(self, body: FunctionDef) -> tuple[list[str], list[str]]:
        self._add("element", self._slices.element, self.types)
        inputs = [(f"given_{index}", type) for index, type in enumerate(self.types)]
        results = [_INT64, *self._loop.elements]
        element = _add_call(body.node_def, "element", inputs, results)
        element.attr["f"].func.name = f"{self._loop.name}_element"
        edges = [f"element:output:{port}" for port in range(len(results))]
        return edges[1:], [edges[0], *(name for name, _ in inputs[1:])]

    def _add(
        self, name: str, compute: Callable[..., Sequence[Tensor]], types: Sequence[int]
    ) -> None:
        function = make_function(f"{self._loop.name}_{name}", types, compute)
        self._loop.place.graph.library.function.append(function)


_INT64, _BOOL, _RESOURCE = 9, 10, 20


def _add_call(
    nodes: Nodes, name: str, inputs: Sequence[tuple[str, int]], types: list[int]
) -> NodeDef:
    """Add the call of a function, whose name is set later, with these edges and types as inputs."""
    edges = [edge for edge, _ in inputs]
    node = nodes.add(name=name, op=CALL, input=edges)
    node.attr["Tin"].list.type.extend(type for _, type in inputs)
    node.attr["Tout"].list.type.extend(types)
    return node


def _result(function: FunctionDef, name: str, type: int, edge: str) -> None:
    function.signature.output_arg.add(name=name, type=type)
    function.ret[name] = edge
