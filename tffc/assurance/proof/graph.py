"""Evaluation plans of graphs and functions: the needed nodes, in topological order.

Names of nodes only refer to nodes, so a plan does not contain them.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from tffc.assurance.proof import loading
from tffc.assurance.proof.attributes import VARIANT
from tffc.assurance.proof.constants import constant_of_tensor
from tffc.assurance.proof.fields import (
    PLACEMENT,
    encoded,
    is_flag,
    is_text,
    is_type,
    remainder,
    unless_empty,
)
from tffc.assurance.proof.terms import DRAWN, IMPURE, OWN, PURE
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.functions import SYMBOLIC_GRADIENT
from tffc.graphs.node import PORT
from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import OVERWRITING, effect_of, is_told_by_inputs
from tffc.graphs.operations.effects import Effect as NodeEffect
from tffc.graphs.operations.failing import may_fail, remembers
from tffc.graphs.operations.iterations import CALLS
from tffc.graphs.state import ANONYMOUS_TABLES, LOOP_ENTRIES, NAME_ATTRIBUTES, has_named_state

STATE_NAMES = frozenset({*NAME_ATTRIBUTES, "container"})
NODE_NAMES = "use_node_name_sharing"
DEFAULT_CONTAINER = b"localhost"
"""The container of state that names no container."""

NAMED_TABLES = {anonymous: named for named, anonymous in ANONYMOUS_TABLES.items()}
DATASETS = "/device:CPU:0"
"""The name of the device that holds datasets; naming it makes no difference."""

BRANCHES = frozenset({"Switch", "RefSwitch", "Merge", "RefMerge"})
"""Operations that may keep their successors, by data or by control, from running."""

MAPPED = frozenset({"MapDataset", "ReduceDataset"})
"""Dataset operations whose function is evaluated with the values that it captures."""

REPEATABLE = frozenset(
    {
        *("AssignVariableOp", "LookupTableImportV2", "MapDataset", "PartitionedCall"),
        *("RangeDataset", "ReduceDataset", "TensorDataset", "TensorSliceDataset"),
    }
)
"""Operations that do nothing more if they are done again with the same values."""

PLAIN = {"Identity": ("T",), "NoOp": ()}
"""Operations that compute nothing, with the attributes that such a node has; one that has others is
like any operation."""

REFERENCE = 100
"""TensorFlow's number for a reference to a variable is that of its element type plus this."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeFacts:
    """The operation and attributes of a node, without its name and inputs.

    `functions` are those that the attributes name.  `state` is the attribute that names the state
    which the node creates or finds; if it is empty, the name of the node is the name of the state.
    `is_plain` tells whether the node computes nothing, `fails` whether it may fail, and `remembers`
    whether its kernel may remember earlier runs.
    """

    op: str
    label: tuple[Hashable, ...]
    taint: int
    functions: tuple[str, ...] = ()
    state: tuple[Hashable, ...] | None = None
    is_plain: bool = False
    fails: bool = True
    remembers: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A node to evaluate.  `data` are its inputs, each a value and one of its outputs; `controls`
    are the values it waits for."""

    name: str
    facts: NodeFacts
    data: tuple[tuple[int, int], ...]
    controls: tuple[int, ...]
    state: tuple[Hashable, ...] | None = None
    is_unnamed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order.  Values are numbered: first the arguments, then the steps.

    No result depends on the steps from `extra` on.
    """

    arguments: int
    steps: tuple[Step, ...]
    results: tuple[tuple[int, int], ...]
    extra: int
    names: frozenset[str]

    def unneeded(self, first: int) -> list[int]:
        """Return the arguments from the first one on that nothing uses, counted from there."""
        used = {index for index, _ in self.results}
        for step in self.steps:
            used.update(step.controls)
            used.update(index for index, _ in step.data)
        return [i - first for i in range(first, self.arguments) if i not in used]


class Node:
    """A node with the attributes that `effect_of` reads; `rest` encodes all but name, operation and
    inputs."""

    __slots__ = ("attr", "device", "input", "message", "name", "op", "rest")

    def __init__(self, message: Any) -> None:
        self.name: str = message.name
        self.op: str = message.op
        self.input: list[str] = list(message.input)
        self.device: str = message.device
        for field in ("name", "op", "input"):
            message.ClearField(field)
        self.rest: bytes = encoded(message)
        self.message = message
        self.attr = message.attr

    def with_input(self, edges: list[str]) -> Node:
        """Return a copy of the node with other inputs."""
        made = copy.copy(self)
        made.input = edges
        return made


class Library:
    """The functions of one graph.

    `is_of_program` tells whether the program has the graph; `contents` has what a function has
    besides its nodes and results.
    """

    def __init__(self, library: Any, *, is_of_program: bool) -> None:
        loading.check_library(library, is_of_program=is_of_program)
        self.functions = {each.signature.name: each for each in library.function}
        self.gradients = {each.function_name: each.gradient_func for each in library.gradient}
        self.is_of_program = is_of_program
        self.plans: dict[str, Plan] = {}
        self.terms: dict[str, int | None] = {}
        self.states: dict[str, list[tuple[Hashable, Hashable]]] = {}
        self.entered: set[str] = set()


class Reader:
    """A reader of graphs, which analyses nodes with the same attributes once."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, bytes], NodeFacts] = {}
        self._ports: dict[tuple[str, bytes], int | None] = {}

    def facts(self, node: Node, nodes: Mapping[str, Node], library: Library) -> NodeFacts:
        """Return the facts about a node; `nodes` are those of its graph or function."""
        if is_told_by_inputs(node.op):
            return self._find(node, nodes)
        if node.op in library.functions:
            return self._find_call(node)
        key = node.op, node.rest
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts[key] = self._find(node, nodes)
        return facts

    def _find_call(self, node: Node) -> NodeFacts:
        """Return the facts about a node that calls the function of its operation's name."""
        functions = [node.op]
        details = _details(node, (), functions)
        return NodeFacts(
            "call", ("call", *_device(node), *details), PURE, functions=tuple(functions)
        )

    def _find(self, node: Node, nodes: Mapping[str, Node]) -> NodeFacts:
        if node.op in LOOP_ENTRIES:
            raise Undecided("a loop of TensorFlow 1", node.op)
        if node.op in OVERWRITING:
            raise Undecided("an operation that writes over its input", node.op)
        named = has_named_state(node)
        functions: list[str] = []
        details = _details(node, _hidden(node, named), functions)
        op = NAMED_TABLES.get(node.op, node.op)
        label: tuple[Hashable, ...] = (op, *_device(node), *details)
        if node.op == "Const" and _is_constant(node, details) and not _device(node):
            label = "Const", constant_of_tensor(node.attr["value"].tensor)
        effect = effect_of(node, nodes)
        names = tuple(name for name, *_ in details)
        return NodeFacts(
            op,
            label,
            taint=_taint(node.op, effect),
            functions=tuple(functions),
            state=_state_name(node) if named else None,
            is_plain=names == PLAIN.get(node.op)
            and not _device(node)
            and all(map(is_type, node.attr.values())),
            fails=may_fail(node.op),
            remembers=remembers(node.op, effect) and not named,
        )

    def has_port(self, node: Node, port: int, library: Library) -> bool:
        """Tell whether a node has an output, as far as is known."""
        key = node.op, node.rest
        if key not in self._ports:
            if node.op in library.functions:
                return port < len(library.functions[node.op].signature.output_arg)
            operation = op_table.find(node.op)
            self._ports[key] = None if operation is None else len(operation.ports(node.attr))
        most = self._ports[key]
        return most is None or port < most

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
        for name, port in results:
            if name in nodes and not self.has_port(nodes[name], port, library):
                raise Undecided("a malformed graph", f"a result is {name}:{port}")
        return Plan(first, steps, ends, extra, frozenset(walk.order))

    def type_of(
        self,
        name: str,
        port: int,
        nodes: Mapping[str, Node],
        arguments: Mapping[str, int],
        types: Sequence[int],
        library: Library,
    ) -> int | None:
        """Return the element type of an output or an argument, or None if it is not known."""
        edge = f"{name}:{port}" if port else name
        if edge in arguments:
            return types[arguments[edge]]
        return _output_type(nodes[name], port, library)

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
        loading.check_inputs(node)
        missing = loading.missing_neighbours(node, nodes, walk.arguments)
        if missing and walk.resolve is graph_edge:
            raise Undecided("a malformed graph", f"it does not have the node {missing[0]!r}")
        if missing:
            # In a function, a node that does not exist is the name of a group.
            label = (*facts.label, ("beside", missing))
            facts = dataclasses.replace(facts, label=label, is_plain=False)
        data: list[tuple[int, int]] = []
        controls: list[int] = []
        for edge in node.input:
            if edge.startswith("^"):
                controls.append(walk.waited_for(edge))
                continue
            name, port = walk.resolve(edge)
            data.append(walk.value(name, port))
            if data[-1][0] >= walk.first and not self.has_port(nodes[name], port, library):
                raise Undecided("a malformed graph", f"an input is {edge!r}")
        if facts.is_plain and len(data) == 1:
            source = next(edge for edge in node.input if not edge.startswith("^"))
            _check_identity(node, walk.resolve(source), walk, types, library)
        state, is_unnamed = facts.state, False
        if state is not None and not state[1] and node.op != "VarHandleOp":
            # State may have the name of its node, which another node may give as a name.
            is_unnamed = True
            own = node.op in ANONYMOUS_TABLES and not _shares_by_node_name(node)
            state = (*state, node.name) if own else (state[0], node.name.encode())
        return Step(
            node.name, facts, tuple(data), tuple(dict.fromkeys(controls)), state, is_unnamed
        )


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
        self.first = first

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
                self.order[name] = self.first + len(self.order)

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
    return name, _number(edge, port) if colon else 0


def _number(edge: str, digits: str) -> int:
    if not PORT.fullmatch(digits) or str(int(digits)) != digits:
        raise Undecided("a malformed graph", f"an input is {edge!r}")
    return int(digits)


def function_edge(nodes: Mapping[str, Node], library: Library) -> Callable[[str], tuple[str, int]]:
    """Return a parser for the data edges of a function's body: `argument`, or `node:output:index`
    where the index may be missing."""
    offsets: dict[str, dict[str, tuple[int, int]]] = {}

    def resolve(edge: str) -> tuple[str, int]:
        name, colon, rest = edge.partition(":")
        if name not in nodes:
            if colon and rest != "0":
                raise Undecided("a malformed graph", f"an input is {edge!r}")
            return name, 0
        output, colon, digits = rest.partition(":")
        if name not in offsets:
            offsets[name] = _offsets(nodes[name], library)
        offset, count = offsets[name].get(output, (0, 0))
        index = _number(edge, digits) if colon else 0
        if index >= count:
            raise Undecided("a malformed graph", f"an input is {edge!r}")
        return name, offset + index

    return resolve


def _offsets(node: Node, library: Library) -> dict[str, tuple[int, int]]:
    """Return for each output of a node the number of tensors before it, and of its own."""
    if node.op in library.functions:
        outputs = library.functions[node.op].signature.output_arg
        return {output.name: (position, 1) for position, output in enumerate(outputs)}
    operation = op_table.find(node.op)
    if operation is None:
        raise Undecided("an unknown operation in a function", node.op)
    offsets: dict[str, tuple[int, int]] = {}
    for position, (output, _, _) in enumerate(operation.ports(node.attr)):
        first, count = offsets.get(output, (position, 0))
        offsets[output] = first, count + 1
    return offsets


def _taint(op: str, effect: NodeEffect | None) -> int:
    if effect is None or op in CALLS:
        return OWN if op in BRANCHES else PURE
    if effect is NodeEffect.OWN_STATE:
        return OWN
    return DRAWN if effect is NodeEffect.RANDOM else IMPURE


def _device(node: Node) -> tuple[str, ...]:
    """Return the device of a node, unless it is the one that an operation on datasets runs on."""
    if node.device == DATASETS and _is_variant(node):
        return ()
    return (f"on {node.device}",) if node.device else ()


def _is_variant(node: Node) -> bool:
    operation = op_table.find(node.op)
    ports = () if operation is None else operation.ports(node.attr)
    return any(dtype == VARIANT for _, _, dtype in ports)


def _shares_by_node_name(node: Node) -> bool:
    """Tell whether a table without a name has that of its node."""
    return NODE_NAMES in node.attr and node.attr[NODE_NAMES].b


def _hidden(node: Node, named: bool) -> frozenset[str]:
    """Return the attributes of a node that only name its state."""
    if node.op in NAMED_TABLES or (named and _state_name(node)[1]):
        return STATE_NAMES | {NODE_NAMES}
    if node.op in ANONYMOUS_TABLES and not _shares_by_node_name(node):
        return STATE_NAMES | {NODE_NAMES}
    return STATE_NAMES if named or node.op == "VarHandleOp" else frozenset()


def _details(node: Node, hidden: Iterable[str], functions: list[str]) -> list[tuple[str, Hashable]]:
    """Return all attributes of a node but the hidden ones, and its other fields; the functions in
    them are appended to `functions`."""
    details = [
        (name, _attribute(node.attr[name], functions))
        for name in sorted(node.attr)
        if name != PLACEMENT
        and not (name in hidden and (is_flag if name == NODE_NAMES else is_text)(node.attr[name]))
    ]
    return [*details, *unless_empty("fields", remainder(node.message))]


def _is_constant(node: Node, details: list[tuple[str, Hashable]]) -> bool:
    """Tell whether a node has only a type and elements of that type."""
    return (
        [name for name, *_ in details] == ["dtype", "value"]
        and is_type(node.attr["dtype"])
        and node.attr["value"].HasField("tensor")
        and not remainder(node.attr["value"])
        and node.attr["dtype"].type == node.attr["value"].tensor.dtype
    )


def _state_name(node: Node) -> tuple[bytes, bytes]:
    """Return the container and the name of the state that a node finds by name."""
    names = [node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr]
    container = node.attr["container"].s if "container" in node.attr else b""
    if container == DEFAULT_CONTAINER:
        container = b""
    return container, next((name for name in names if name), b"")


def _attribute(value: Any, functions: list[str]) -> Hashable:
    """Return a hashable attribute; the functions in it are appended to `functions`."""
    kind = value.WhichOneof("value")
    if kind == "func":
        rest = unless_empty("fields", remainder(value))
        return (*_called(value.func, functions), *rest)
    if kind == "tensor":
        rest = unless_empty("fields", remainder(value))
        return (
            (constant_of_tensor(value.tensor), *rest) if rest else constant_of_tensor(value.tensor)
        )
    if kind == "list" and value.list.func:
        calls = tuple(_called(call, functions) for call in value.list.func)
        return (calls, remainder(value), remainder(value.list))
    return encoded(value)


def _called(call: Any, functions: list[str]) -> tuple[Hashable, ...]:
    if call.name == SYMBOLIC_GRADIENT:
        raise Undecided("a symbolic gradient")
    if call.name:
        functions.append(call.name)
    inner: list[str] = []
    details = [(name, _attribute(call.attr[name], inner)) for name in sorted(call.attr)]
    if inner:
        raise Undecided("a function that takes functions")
    return ("function", bool(call.name), *details, *unless_empty("fields", remainder(call)))
