"""Evaluation plans of graphs and functions: the needed nodes, in topological order.

Names of nodes only refer to nodes, so a plan does not contain them.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from tffc.graphdef.functions import SYMBOLIC_GRADIENT
from tffc.graphdef.node import PORT
from tffc.graphdef.state import ANONYMOUS_TABLES, LOOP_ENTRIES, NAME_ATTRIBUTES, has_named_state
from tffc.operations import op_table
from tffc.operations.effects import Effect as NodeEffect
from tffc.operations.effects import effect_of, is_told_by_inputs
from tffc.proof.constants import constant_of_tensor
from tffc.proof.terms import IMPURE, OWN, PURE
from tffc.proof.undecided import Undecided

HINTS = frozenset({"_class", "_output_shapes"})
"""Attributes that do not change results: placement hints and inferred shapes."""

STATE_NAMES = frozenset({*NAME_ATTRIBUTES, "container", "use_node_name_sharing"})
NAMED_TABLES = {anonymous: named for named, anonymous in ANONYMOUS_TABLES.items()}
NEAR = frozenset({"", "/device:CPU:0"})
"""The names of the device that holds datasets; naming it makes no difference."""

BRANCHES = frozenset({"Switch", "RefSwitch", "Merge", "RefMerge"})
"""Operations that may keep their successors, by data or by control, from running."""

CALLS = frozenset({"Case", "If", "StatefulPartitionedCall", "While"})
"""Operations that have only the effects of the functions that they call."""

MAPPED = frozenset({"MapDataset", "ReduceDataset"})
"""Dataset operations whose function is evaluated with the values that it captures."""

REFERENCE = 100
"""TensorFlow's number for a reference to a variable is that of its element type plus this."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeFacts:
    """The operation and attributes of a node, without its name and inputs.

    `functions` are those that the attributes name.  `state` is the attribute that names the state
    which the node creates or finds; if it is empty, the name of the node is the name of the state.
    """

    op: str
    label: Hashable
    taint: int
    functions: tuple[str, ...] = ()
    state: Hashable = None


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A node to evaluate.  `data` are its inputs, each a value and one of its outputs; `controls`
    are the values it waits for."""

    facts: NodeFacts
    data: tuple[tuple[int, int], ...]
    controls: tuple[int, ...]
    state: Hashable = None


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order.  Values are numbered: first the arguments, then the steps.

    No result depends on the steps from `extra` on.
    """

    arguments: int
    steps: tuple[Step, ...]
    results: tuple[tuple[int, int], ...]
    extra: int
    has_state: bool
    names: frozenset[str]


class Node:
    """A node with the attributes that `effect_of` reads; `rest` encodes all but name, operation and
    inputs."""

    __slots__ = ("attr", "device", "input", "name", "op", "rest")

    def __init__(self, message: Any) -> None:
        self.name: str = message.name
        self.op: str = message.op
        self.input: list[str] = list(message.input)
        self.device: str = message.device
        for field in ("name", "op", "input"):
            message.ClearField(field)
        self.rest: bytes = message.SerializeToString(deterministic=True)
        self.attr = message.attr

    def with_input(self, edges: list[str]) -> Node:
        """Return a copy of the node with other inputs."""
        made = copy.copy(self)
        made.input = edges
        return made


class Library:
    """The functions of one graph."""

    def __init__(self, library: Any) -> None:
        self.functions = {each.signature.name: each for each in library.function}
        self.gradients = {each.function_name: each.gradient_func for each in library.gradient}
        self.plans: dict[str, Plan] = {}
        self.terms: dict[str, int | None] = {}
        self.states: dict[str, list[tuple[Hashable, Hashable]]] = {}
        self.entered: set[str] = set()


class Reader:
    """A reader of graphs, which analyses nodes with the same attributes once."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, bytes], NodeFacts] = {}

    def facts(self, node: Node, nodes: Mapping[str, Node], library: Library) -> NodeFacts:
        """Return the facts about a node; `nodes` are those of its graph or function."""
        if is_told_by_inputs(node.op):
            return self._find(node, nodes, library)
        if node.op in library.functions:
            return dataclasses.replace(
                self._find(node, nodes, library), label="call", functions=(node.op,), taint=PURE
            )
        key = node.op, node.rest
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = self._find(node, nodes, library)
        return found

    def _find(self, node: Node, nodes: Mapping[str, Node], library: Library) -> NodeFacts:
        if node.op in LOOP_ENTRIES:
            raise Undecided("a loop of TensorFlow 1", node.op)
        named = has_named_state(node)
        hidden = STATE_NAMES if named or node.op in NAMED_TABLES or node.op == "VarHandleOp" else ()
        functions: list[str] = []
        details: list[tuple[str, Hashable]] = []
        for name in sorted(node.attr):
            if name not in HINTS and name not in hidden:
                details.append((name, _attribute(node.attr[name], functions)))
        if node.op == "Const" and "value" in node.attr:
            return NodeFacts("Const", _constant(node, details), PURE)
        taint = _taint(node, nodes)
        op = NAMED_TABLES.get(node.op, node.op)
        device = () if node.device in NEAR else (node.device,)
        return NodeFacts(
            op,
            label=(op, *device, *details),
            taint=taint,
            functions=tuple(functions),
            state=_state_name(node) if named else None,
        )

    def plan(
        self,
        nodes: Mapping[str, Node],
        arguments: Mapping[str, int],
        results: list[tuple[str, int]],
        library: Library,
        resolve: Callable[[str], tuple[str, int]],
        others: Iterable[str] = (),
        types: Sequence[int] = (),
    ) -> Plan:
        """Return a plan for the results, followed by the other nodes that are named.

        `arguments` maps edges, control edges included, to the values that replace them, and `types`
        are the values' element types; `resolve` parses a data edge.

        Raises:
          Undecided: the graph is malformed, or has a loop.
        """
        first = 1 + max(arguments.values(), default=-1)
        walk = _Walk(nodes, arguments, resolve, first)
        for name, port in results:
            walk.visit(name if port == 0 else f"{name}:{port}")
        extra = len(walk.order)
        for name in others:
            walk.visit(f"^{name}")
        steps = tuple(self._step(nodes[name], walk, nodes, library, types) for name in walk.order)
        ends = tuple(walk.value(*each) for each in results)
        has_state = any(step.state is not None for step in steps)
        return Plan(first, steps, ends, extra, has_state, frozenset(walk.order))

    def needed(
        self, nodes: Mapping[str, Node], arguments: Mapping[str, int], root: str
    ) -> set[str]:
        """Return the names of the nodes that a node depends on, itself included."""
        walk = _Walk(nodes, arguments, graph_edge, 0)
        walk.visit(f"^{root}")
        return set(walk.order)

    def _step(
        self,
        node: Node,
        walk: _Walk,
        nodes: Mapping[str, Node],
        library: Library,
        types: Sequence[int],
    ) -> Step:
        facts = self.facts(node, nodes, library)
        data: list[tuple[int, int]] = []
        controls: list[int] = []
        for edge in node.input:
            if edge.startswith("^"):
                controls.append(walk.waited_for(edge))
            else:
                data.append(walk.value(*walk.resolve(edge)))
        if node.op == "Identity" and len(data) == 1:
            source = next(edge for edge in node.input if not edge.startswith("^"))
            _check_identity(node, walk.resolve(source), walk, types, library)
        state = facts.state
        if state == b"":
            state = node.name if node.op != "VarHandleOp" else b""
        return Step(facts, tuple(data), tuple(dict.fromkeys(controls)), state)


def _check_identity(
    node: Node, source: tuple[str, int], walk: _Walk, types: Sequence[int], library: Library
) -> None:
    """Check that a node that returns its input declares the input's type."""
    name, port = walk.resolve_name(*source)
    wanted = node.attr["T"].type if "T" in node.attr else None
    if isinstance(name, int):
        found = types[name] if name < len(types) else None
    else:
        found = _output_type(walk.nodes[name], port, library)
    if wanted is None or (found is not None and found % REFERENCE != wanted % REFERENCE):
        raise Undecided("a malformed graph", f"the node {node.name!r} is of another type")


def _output_type(node: Node, port: int, library: Library) -> int | None:
    if node.op in library.functions:
        outputs = library.functions[node.op].signature.output_arg
        return outputs[port].type if port < len(outputs) else 0
    operation = op_table.find(node.op)
    if operation is None:
        return None
    ports = operation.ports(node.attr)
    return ports[port][2] if port < len(ports) else 0


class _Walk:
    """A depth-first walk that orders nodes topologically."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        arguments: Mapping[str, int],
        resolve: Callable[[str], tuple[str, int]],
        first: int,
    ) -> None:
        self.nodes = nodes
        self.arguments = arguments
        self.resolve = resolve
        self.order: dict[str, int] = {}
        self._first = first

    def visit(self, edge: str) -> None:
        """Add the node that an edge comes from, after everything it depends on."""
        if self._is_given(edge):
            return
        stack: list[tuple[str, Any]] = [self._enter(edge)]
        open_nodes = {stack[0][0]}
        if stack[0][0] in self.order:
            return
        while stack:
            name, edges = stack[-1]
            for each in edges:
                if self._is_given(each):
                    continue
                inner = self._source(each)
                if inner in self.order:
                    continue
                if inner in open_nodes:
                    raise Undecided("a loop of TensorFlow 1", f"at the node {inner!r}")
                stack.append(self._enter(each))
                open_nodes.add(inner)
                break
            else:
                stack.pop()
                open_nodes.discard(name)
                self.order[name] = self._first + len(self.order)

    def _enter(self, edge: str) -> tuple[str, Any]:
        name = self._source(edge)
        if name not in self.nodes:
            raise Undecided("a malformed graph", f"it does not have the node {name!r}")
        return name, iter(self.nodes[name].input)

    def _source(self, edge: str) -> str:
        return edge[1:] if edge.startswith("^") else edge.partition(":")[0]

    def _is_given(self, edge: str) -> bool:
        return edge in self.arguments or edge.removesuffix(":0") in self.arguments

    def value(self, name: str, port: int) -> tuple[int, int]:
        """Return the value and port of a node's output."""
        edge = f"{name}:{port}" if port else name
        if edge in self.arguments:
            return self.arguments[edge], 0
        return self.order[name], port

    def resolve_name(self, name: str, port: int) -> tuple[str | int, int]:
        """Return the node of an output, or the number of the argument that replaces it."""
        edge = f"{name}:{port}" if port else name
        return self.arguments.get(edge, name), port

    def waited_for(self, edge: str) -> int:
        """Return the value that a control edge comes from."""
        if edge in self.arguments:
            return self.arguments[edge]
        return self.order[edge[1:]]


def graph_edge(edge: str) -> tuple[str, int]:
    """Parse a data edge of a graph into node and output."""
    name, colon, port = edge.partition(":")
    if colon and not PORT.fullmatch(port):
        raise Undecided("a malformed graph", f"an input is {edge!r}")
    return name, int(port) if colon else 0


def function_edge(nodes: Mapping[str, Node], library: Library) -> Callable[[str], tuple[str, int]]:
    """Return a parser for the data edges of a function's body, `node:output:index`."""
    offsets: dict[str, dict[str, int]] = {}

    def resolve(edge: str) -> tuple[str, int]:
        name, _, rest = edge.partition(":")
        output, _, index = rest.partition(":")
        if name not in nodes or not rest:
            return name, 0
        if name not in offsets:
            offsets[name] = _offsets(nodes[name], library)
        if output not in offsets[name] or not PORT.fullmatch(index or "0"):
            raise Undecided("a malformed graph", f"an input is {edge!r}")
        return name, offsets[name][output] + int(index or 0)

    return resolve


def _offsets(node: Node, library: Library) -> dict[str, int]:
    """Return for each output of a node the number of tensors before it."""
    if node.op in library.functions:
        outputs = library.functions[node.op].signature.output_arg
        return {output.name: position for position, output in enumerate(outputs)}
    operation = op_table.find(node.op)
    if operation is None:
        raise Undecided("an unknown operation in a function", node.op)
    found: dict[str, int] = {}
    for position, (output, _, _) in enumerate(operation.ports(node.attr)):
        found.setdefault(output, position)
    return found


def _taint(node: Node, nodes: Mapping[str, Node]) -> int:
    effect = effect_of(node, nodes)
    if effect is None or node.op in CALLS:
        return OWN if node.op in BRANCHES else PURE
    return OWN if effect is NodeEffect.OWN_STATE else IMPURE


def _constant(node: Node, details: list[tuple[str, Hashable]]) -> Hashable:
    """Return a constant by its elements, ignoring its device."""
    tensor = node.attr["value"].tensor
    if {name for name, *_ in details} == {"dtype", "value"} and node.attr[
        "dtype"
    ].type == tensor.dtype:
        return "Const", constant_of_tensor(tensor)
    return "Const", *details


def _state_name(node: Node) -> Hashable:
    names = [node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr]
    container = node.attr["container"].s if "container" in node.attr else b""
    name = next((name for name in names if name), b"")
    return (container, name) if name else b""


def _attribute(value: Any, functions: list[str]) -> Hashable:
    """Return a hashable attribute; the functions in it are appended to `functions`."""
    kind = value.WhichOneof("value")
    if kind == "func":
        return _called(value.func, functions)
    if kind == "tensor":
        return constant_of_tensor(value.tensor)
    if kind == "list" and value.list.func:
        return tuple(_called(call, functions) for call in value.list.func)
    return value.SerializeToString(deterministic=True)


def _called(call: Any, functions: list[str]) -> Hashable:
    if call.name == SYMBOLIC_GRADIENT:
        raise Undecided("a symbolic gradient")
    if call.name:
        functions.append(call.name)
    inner: list[str] = []
    details = [
        (name, _attribute(call.attr[name], inner))
        for name in sorted(call.attr)
        if name not in HINTS
    ]
    if inner:
        raise Undecided("a function that takes functions")
    return ("function", bool(call.name), *details)
