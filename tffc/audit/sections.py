"""Dependency analysis of a compiled section: an abstract interpretation of its graph.

It computes with flows instead of tensors.  State may be read and written through handles in any
order, so a graph with state is analysed until nothing is added; this terminates, because the sets
are finite and only grow.  Every output of an unknown operation depends on every input.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tffc.audit.bodies import ANY_PORT, Body, Edge, body_of_function, body_of_section
from tffc.audit.flow import NOTHING, Flow, dataset, join, join_all, total_of, union
from tffc.graphdef.functions import named_functions
from tffc.graphdef.state import NAME_ATTRIBUTES, has_named_state
from tffc.ir.nodes import Compiled
from tffc.ir.types import FunctionType, SequenceType, Type
from tffc.linking.operand import leaf_types
from tffc.linking.section import read_section
from tffc.operations import op_table
from tffc.operations.effects import Effect, effect_of, read_table

RESOURCE, FIRST_REFERENCE = 20, 101
"""TensorFlow's numbers for the type of handles, and for the first type of references to
variables."""

DEEPEST_CALL = 40
"""The depth up to which calls of functions are followed; beyond it, every result depends on every
argument."""

DRAWS = re.compile(
    "(?!StatelessRandomGet)(Stateless|Stateful)?(Random|TruncatedNormal|StandardNormal|Uniform|UniformInt|"
    "UniformFullInt|Multinomial|Parameterized|RandomBinomial|Binomial).*"
    "|ParameterizedTruncatedNormal|Multinomial|.*CandidateSampler"
)
"""Matches operations that draw random numbers; datasets that match are ignored, because they only
draw an order."""

TABLE = pathlib.Path(__file__).with_name("operations.txt")
"""The table of operations, under a heading for each rule of `RULES` and
`SectionWalk._operation`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Draw:
    """An operation that draws random numbers: its function (empty for the graph), its node, and
    whether it draws new numbers in each run."""

    operation: str
    function: str
    node: str
    is_fresh: bool


class SectionWalk:
    """The analysis of one section; `source_of` returns the bit of a draw."""

    def __init__(self, section: Compiled, source_of: Callable[[Draw], int]) -> None:
        self._source_of = source_of
        self._type = section.type
        self._is_graph = section.kind == "tensorflow"
        if self._is_graph:
            content = read_section(section)
            self._functions = {f.signature.name: f for f in content.graph.library.function}
            self._graph = body_of_section(content)
        self._bodies: dict[str, Body] = {}
        self._memory: dict[str, Flow] = {}
        self._known: dict[tuple[str, tuple[Flow, ...]], tuple[Flow, ...]] = {}
        self._running: set[tuple[str, tuple[Flow, ...]]] = set()
        self._grew = False

    def results(self, arguments: Sequence[Flow]) -> list[Flow]:
        """Return the flows of the result's leaves, given those of the parameter."""
        assert isinstance(self._type, FunctionType)
        leaves = leaf_types(self._type.result)
        if not self._is_graph:
            return [Flow(total_of(arguments))] * len(leaves)
        self._memory.clear()
        found: tuple[Flow, ...] = ()
        self._grew = True
        while self._grew:
            self._grew = False
            self._known.clear()
            found = self._run(self._graph, tuple(arguments), 0)
        return list(map(self._returned, leaves, found))

    def _returned(self, leaf: Type, flow: Flow) -> Flow:
        """Return the flow of a result: a tensor does not hold a dataset or a handle."""
        if isinstance(leaf, SequenceType) or (flow.elements is None and not flow.handles):
            return flow
        return Flow(flow.total() | self._behind(flow))

    # Bodies.

    def _run(self, body: Body, arguments: tuple[Flow, ...], depth: int) -> tuple[Flow, ...]:
        outputs: dict[str, tuple[Flow, ...]] = {}
        given = dict(zip(body.arguments, arguments, strict=False))
        again = True
        while again:
            again = False
            for node in body.nodes:
                inputs = [self._at(edge, given, outputs) for edge in body.inputs[node.name]]
                found = self._node(node, inputs, body, depth)
                # Nodes in a loop are evaluated again until their flows are stable; joining makes
                # them grow only.
                if body.has_loops and found != outputs.get(node.name):
                    before = outputs.get(node.name)
                    if before is not None and len(before) == len(found):
                        found = tuple(map(join, before, found))
                    again = again or found != before
                outputs[node.name] = found
        return tuple(self._at(edge, given, outputs) for edge in body.results)

    @staticmethod
    def _at(
        edge: Edge, given: Mapping[Edge, Flow], outputs: Mapping[str, tuple[Flow, ...]]
    ) -> Flow:
        if edge in given:
            return given[edge]
        found = outputs.get(edge.node, (NOTHING,))
        if len(found) == 1:
            return found[0]
        if edge.port == ANY_PORT or edge.port >= len(found):
            return join_all(found)
        return found[edge.port]

    def _call(self, name: str, arguments: Sequence[Flow], depth: int) -> tuple[Flow, ...]:
        """Return the results of a function, at least one."""
        key = name, tuple(arguments)
        if key in self._known:
            return self._known[key]
        body = self._body(name)
        if body is None or depth >= DEEPEST_CALL or key in self._running:
            return (self._unknown(arguments),)
        self._running.add(key)
        found = self._run(body, key[1], depth + 1) or (NOTHING,)
        self._running.discard(key)
        self._known[key] = found
        return found

    def _body(self, name: str) -> Body | None:
        """Return the body of a function, or None if the section lacks it."""
        if name not in self._bodies and name in self._functions:
            self._bodies[name] = body_of_function(self._functions[name], self._functions)
        return self._bodies.get(name)

    # Nodes.

    def _node(self, node: Any, inputs: list[Flow], body: Body, depth: int) -> tuple[Flow, ...]:
        handles = self._handles(node, body)
        if not handles and has_named_state(node):
            inputs = [*inputs, Flow(handles=frozenset((_state_name(node, body),)))]
        heading = read_table(TABLE).get(node.op, "")
        rule = RULES.get(heading)
        if rule is not None:
            found = rule(self, node, inputs, depth)
        elif node.op in self._functions and op_table.find(node.op) is None:
            found = self._call(node.op, inputs, depth)
        else:
            found = self._operation(node, heading, inputs, depth)
        if handles:
            found = tuple(dataclasses.replace(flow, handles=handles) for flow in found)
        draw = self._draw(node, body)
        if draw:
            found = tuple(Flow(flow.value | draw, flow.shape) for flow in found)
        return found

    def _operation(
        self, node: Any, heading: str, inputs: list[Flow], depth: int
    ) -> tuple[Flow, ...]:
        heading, _, places = heading.partition(" by ")
        shapes = union(each.shape for each in inputs)
        if any(flow.handles for flow in inputs) and heading != "same":
            return self._with_state(node, inputs)
        match heading:
            case "same" if inputs:
                return (inputs[0],)
            case "elementwise":
                return (Flow(union(each.value for each in inputs), shapes),)
            case "rearranged" if inputs:
                return (Flow(inputs[0].value, shapes | total_of(inputs[1:])),)
            case "shape":
                made = node.op in ("OnesLike", "ZerosLike")
                each = (Flow(0, f.shape) if made else Flow(f.shape) for f in inputs)
                return tuple(each) or (NOTHING,)
            case "shaped":
                at = (p for p in map(int, places.split()) if -len(inputs) <= p < len(inputs))
                return (Flow(total_of(inputs), shapes | total_of(inputs[p] for p in at)),)
            case "selection" if inputs:
                return (_resized(inputs[0], inputs[0].value | total_of(inputs[1:])),)
            case _:
                pass
        given = [*inputs, *self._within(node, inputs, depth)]
        return (self._unknown(given),) if given else (NOTHING,)

    def _within(self, node: Any, inputs: list[Flow], depth: int) -> list[Flow]:
        """Return the results of the functions of an unknown operation, whose arguments may depend
        on all its inputs."""
        every = self._unknown(inputs)
        return [
            flow
            for call in named_functions(node.attr)
            if call.name in self._functions
            for flow in self._call(call.name, [every] * self._width(call.name, 0), depth)
        ]

    def _unknown(self, inputs: Sequence[Flow]) -> Flow:
        found = total_of(inputs)
        for flow in inputs:
            found |= self._behind(flow)
            self._write(flow.handles, Flow(total_of(inputs), total_of(inputs)))
        return Flow(found, found)

    # State.

    def _handles(self, node: Any, body: Body) -> frozenset[str]:
        """Return the name of the state that a node creates or finds, if any."""
        operation = op_table.find(node.op)
        types = () if operation is None else (t for _, _, t in operation.ports(node.attr))
        if not any(t == RESOURCE or (t or 0) >= FIRST_REFERENCE for t in types):
            return frozenset()
        if node.input and not has_named_state(node):
            return frozenset()
        return frozenset((_state_name(node, body),))

    def _behind(self, flow: Flow) -> int:
        return total_of(self._memory.get(name, NOTHING) for name in flow.handles)

    def _write(self, handles: frozenset[str], flow: Flow) -> None:
        for name in handles:
            before = self._memory.get(name, NOTHING)
            after = join(before, flow)
            if after != before:
                self._memory[name] = after
                self._grew = True

    def _with_state(self, node: Any, inputs: list[Flow]) -> tuple[Flow, ...]:
        """Return the results of an operation on state; an unknown one is assumed to read and write
        the state."""
        handles = frozenset[str]().union(*(flow.handles for flow in inputs))
        held = join_all(self._memory.get(name, NOTHING) for name in handles)
        match node.op:
            case "ReadVariableOp":
                return (held,)
            case "IteratorGetNext":
                return _one_element(node, held)
            case "AssignVariableOp" | "MakeIterator":
                self._write(handles, join_all(flow for flow in inputs if not flow.handles))
                return (NOTHING,)
            case _:
                found = self._unknown(inputs)
                return (dataclasses.replace(found, handles=handles),)

    # Draws.

    def _draw(self, node: Any, body: Body) -> int:
        if not DRAWS.fullmatch(node.op) or node.op.endswith("Dataset"):
            return 0
        is_fresh = effect_of(node, {}) is Effect.RANDOM
        return self._source_of(Draw(node.op, body.name, node.name, is_fresh))

    # Calls of functions.

    def functions_of(self, node: Any, attribute: str) -> list[str]:
        """Return the functions that an attribute names."""
        value = node.attr[attribute]
        return [each.name for each in value.list.func] or [value.func.name]

    def call(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        return self._call(self.functions_of(node, "f")[0], inputs, depth)

    def branches(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return the join of all branches' results, chosen by the first input."""
        chosen, *rest = inputs
        names = [
            name
            for attribute in ("then_branch", "else_branch", "branches")
            if attribute in node.attr
            for name in self.functions_of(node, attribute)
        ]
        found = [self._call(name, rest, depth) for name in names]
        width = max(map(len, found), default=1)
        columns = zip(*(_widened(each, width) for each in found), strict=True)
        return tuple(join_all(column).with_value(chosen.total()) for column in columns)

    def loop(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return the result of a while loop; its condition determines the number of iterations."""
        condition, body = self.functions_of(node, "cond")[0], self.functions_of(node, "body")[0]

        def step(state: tuple[Flow, ...]) -> tuple[int, tuple[Flow, ...]]:
            decides = total_of(self._call(condition, state, depth))
            return decides, self._call(body, state, depth)

        return self._repeated(tuple(inputs), step, self._kept(body))

    def _repeated(
        self,
        state: tuple[Flow, ...],
        step: Callable[[tuple[Flow, ...]], tuple[int, tuple[Flow, ...]]],
        kept: frozenset[int],
    ) -> tuple[Flow, ...]:
        """Return the state after any number of steps: the fixed point of joining it with the next
        state.

        `step` returns the sources that determine the number of steps, and the next state.  Values
        at `kept` positions are the same in all steps, so they do not depend on that number.
        """
        while True:
            decides, made = step(state)
            pairs = zip(state, _widened(made, len(state)), strict=True)
            after = tuple(
                before if position in kept else join(before, each).with_value(decides)
                for position, (before, each) in enumerate(pairs)
            )
            if after == state:
                return state
            state = after

    def _kept(self, function: str) -> frozenset[int]:
        """Return the positions at which a function returns its argument unchanged."""
        body = self._body(function)
        if body is None:
            return frozenset()
        same = {node.name: node for node in body.nodes if node.op == "Identity"}
        found: set[int] = set()
        for position, edge in enumerate(body.results):
            while edge.node in same:
                edge = body.inputs[edge.node][0]
            if position < len(body.arguments) and edge == body.arguments[position]:
                found.add(position)
        return frozenset(found)

    # Datasets.

    def components(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return a dataset with one element, whose components are the inputs."""
        return (dataset(0, inputs),)

    def slices(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return a dataset with an element for each row."""
        return (dataset(union(each.shape for each in inputs), inputs),)

    def batches(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return a dataset of batches; the size of the last one depends on the number of
        elements."""
        count = inputs[0].value | total_of(inputs[1:])
        padded = node.op.startswith("Padded")

        def batch(each: Flow) -> Flow:
            return Flow(each.total() if padded else each.value, each.shape | count, each.elements)

        return (_resized(inputs[0], count, batch),)

    def mapped(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        first, found = self._of_elements(node, inputs, "f", depth)
        return (dataset(first.value, found),)

    def filtered(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        first, kept = self._of_elements(node, inputs, "predicate", depth)
        return (_resized(first, first.value | total_of(kept)),)

    def flattened(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        first, found = self._of_elements(node, inputs, "f", depth)
        inner = join_all(found)
        # The function's captured inputs are followed by the parameters of interleaving.
        others = inputs[1 + len(node.attr["Targuments"].list.type) :]
        return (_resized(inner, first.value | inner.value | total_of(others)),)

    def _of_elements(
        self, node: Any, inputs: list[Flow], attribute: str, depth: int
    ) -> tuple[Flow, tuple[Flow, ...]]:
        """Return the dataset that a node reads, and the results of the node's function for its
        elements."""
        first, *rest = inputs
        name = self.functions_of(node, attribute)[0]
        captured = rest[: len(node.attr["Targuments"].list.type)]
        width = self._width(name, len(captured))
        return first, self._call(name, [*_elements(first, width), *captured], depth)

    def _width(self, function: str, captured: int) -> int:
        """Return the number of components of the elements that a function takes."""
        found = self._functions.get(function)
        return 1 if found is None else max(len(found.signature.input_arg) - captured, 0)

    def reduced(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return the state after any number of elements."""
        first = inputs[0]
        states = len(node.attr["Tstate"].list.type)
        initial, captured = inputs[1 : 1 + states], inputs[1 + states :]
        name = self.functions_of(node, "f")[0]
        width = self._width(name, states + len(captured))
        elements = _elements(first, width)

        def step(state: tuple[Flow, ...]) -> tuple[int, tuple[Flow, ...]]:
            return first.value, self._call(name, [*state, *elements, *captured], depth)

        return self._repeated(tuple(initial), step, self._kept(name)) or (NOTHING,)

    def zipped(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        if any(each.elements is None for each in inputs):
            return (Flow(total_of(inputs)),)
        elements = [element for each in inputs for element in each.elements or ()]
        return (dataset(union(each.value for each in inputs), elements),)

    def concatenated(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        return (join_all(inputs),)

    def windows(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        count = inputs[0].value | total_of(inputs[1:])
        return (_resized(inputs[0], count, lambda each: dataset(count, (each,))),)

    def counted(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        first = inputs[0]
        return (Flow(first.total() if first.elements is None else first.value),)

    def only_element(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        """Return the components of a dataset's only element."""
        return _one_element(node, inputs[0])

    def ports(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        return tuple(inputs) or (NOTHING,)

    def switch(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        return (inputs[0].with_value(total_of(inputs[1:])),)

    def merge(self, node: Any, inputs: list[Flow], depth: int) -> tuple[Flow, ...]:
        joined = join_all(inputs)
        return joined, Flow(joined.total())


def _widened(flows: tuple[Flow, ...], width: int) -> tuple[Flow, ...]:
    """Return `width` flows; if there are fewer or more, all become their join."""
    if len(flows) == width:
        return flows
    return (join_all(flows),) * width


def _elements(flow: Flow, width: int) -> tuple[Flow, ...]:
    """Return the flows of the components of a dataset's elements."""
    if flow.elements is not None and len(flow.elements) == width:
        return flow.elements
    return (Flow(flow.total(), flow.total()),) * width


def _one_element(node: Any, flow: Flow) -> tuple[Flow, ...]:
    """Return the components of the element that a node takes from a dataset."""
    elements = _elements(flow, len(node.attr["output_types"].list.type))
    return tuple(each.with_value(flow.value) for each in elements) or (NOTHING,)


def _resized(flow: Flow, count: int, change: Callable[[Flow], Flow] = lambda each: each) -> Flow:
    """Return a dataset of changed elements of another; `count` determines their number."""
    if flow.elements is None:
        return Flow(flow.total() | count)
    return dataset(count, list(map(change, flow.elements)))


def _state_name(node: Any, body: Body) -> str:
    """Return the identity of a node's state: its shared name, or the node's own name."""
    names = [node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr]
    shared = next(filter(None, names), b"") if has_named_state(node) else b""
    return f"shared {shared!r}" if shared else f"{body.name}/{node.name}"


Rule: TypeAlias = Callable[[SectionWalk, Any, list[Flow], int], tuple[Flow, ...]]

RULES: dict[str, Rule] = {
    "call": SectionWalk.call,
    "branches": SectionWalk.branches,
    "loop": SectionWalk.loop,
    "ports": SectionWalk.ports,
    "switch": SectionWalk.switch,
    "merge": SectionWalk.merge,
    "components": SectionWalk.components,
    "slices": SectionWalk.slices,
    "batches": SectionWalk.batches,
    "windows": SectionWalk.windows,
    "mapped": SectionWalk.mapped,
    "filtered": SectionWalk.filtered,
    "flattened": SectionWalk.flattened,
    "zipped": SectionWalk.zipped,
    "concatenated": SectionWalk.concatenated,
    "reduced": SectionWalk.reduced,
    "counted": SectionWalk.counted,
    "only element": SectionWalk.only_element,
}
"""The rules for operations that call functions, hold datasets, or control execution, by their
headings in the table."""
