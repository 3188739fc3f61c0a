"""Evaluation plans of graphs and functions: the needed nodes, in topological order.

Names of nodes only refer to nodes, so a plan does not contain them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

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
from tffc.graphs.body import ANY_PORT, Body, Edge, outputs_of
from tffc.graphs.functions import SYMBOLIC_GRADIENT
from tffc.graphs.functions import Library as FunctionLibrary
from tffc.graphs.node import NodeView, data_edges
from tffc.graphs.operations.effects import OVERWRITING, effect_of, is_told_by_inputs
from tffc.graphs.operations.effects import Effect as NodeEffect
from tffc.graphs.operations.failing import may_fail, remembers
from tffc.graphs.operations.iterations import CALLS
from tffc.graphs.resources import ResourceNode, is_resource, resource_attributes, resource_of
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
    `is_plain` tells whether the node computes nothing, `resource` which resource it is, `fails`
    whether it may fail, and `remembers` whether its kernel may remember earlier runs.
    """

    op: str
    label: tuple[Hashable, ...]
    taint: int
    functions: tuple[str, ...] = ()
    state: tuple[Hashable, ...] | None = None
    is_plain: bool = False
    resource: ResourceNode | None = None
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


def node_of(body: Body, name: str) -> Node:
    """Return a node of a body, which was read from nodes of this class."""
    node = body.nodes[name]
    assert isinstance(node, Node)
    return node


class Library(FunctionLibrary):
    """The functions of one graph; `is_of_program` tells whether the program has the graph."""

    def __init__(self, library: Any, *, is_of_program: bool) -> None:
        loading.check_library(library, is_of_program=is_of_program)
        super().__init__(library)
        self.is_of_program = is_of_program
        self._read: dict[str, dict[str, Node]] = {}
        self.plans: dict[str, Plan] = {}
        self.terms: dict[str, int | None] = {}
        self.states: dict[str, list[tuple[Hashable, Hashable]]] = {}
        self.entered: set[str] = set()

    def nodes(self, name: str) -> Mapping[str, Node]:
        if name not in self._read:
            nodes = map(Node, self.functions[name].node_def)
            self._read[name] = {node.name: node for node in nodes}
        return self._read[name]


Arguments: TypeAlias = Mapping[Edge | str, int]
"""The values that replace edges, and those that whoever waits for a node of a name waits for."""


class Reader:
    """A reader of graphs, which analyses nodes with the same attributes once."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, bytes], NodeFacts] = {}
        self._outputs: dict[tuple[str, bytes], list[Any] | None] = {}

    def facts(self, node: Node, nodes: Mapping[str, NodeView], library: Library) -> NodeFacts:
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

    def _find(self, node: Node, nodes: Mapping[str, NodeView]) -> NodeFacts:
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
            resource=_resource(node, names),
            fails=may_fail(node.op),
            remembers=remembers(node.op, effect) and not named,
        )

    def plan(
        self,
        body: Body,
        arguments: Arguments,
        results: Sequence[Edge],
        library: Library,
        others: Iterable[str] = (),
        types: Sequence[int] = (),
    ) -> Plan:
        """Return a plan for results of a body, followed by the other nodes that are named.

        `types` are the element types of the arguments' values.

        Raises:
          Undecided: the graph is malformed, or has a loop.
        """
        walk = _Walk(body, arguments, types, library)
        for edge in results:
            walk.visit(edge)
        extra = len(walk.order)
        for name in others:
            walk.visit(name)
        steps = tuple(self._step(node_of(body, name), walk) for name in walk.order)
        for edge in results:
            self._check_port(edge, walk, f"a result is {edge.node}:{edge.port}")
        ends = tuple(map(walk.value, results))
        return Plan(walk.first, steps, ends, extra, frozenset(walk.order))

    def needed(self, body: Body, arguments: Arguments, root: str, library: Library) -> set[str]:
        """Return the names of the nodes that a node depends on, itself included."""
        walk = _Walk(body, arguments, (), library)
        walk.visit(root)
        return set(walk.order)

    def type_of(
        self,
        edge: Edge,
        body: Body,
        arguments: Arguments,
        types: Sequence[int],
        library: Library,
    ) -> int | None:
        """Return the element type of an output or an argument, or None if it is not known."""
        if edge in arguments:
            index = arguments[edge]
            return types[index] if index < len(types) else None
        outputs = self._outputs_of(node_of(body, edge.node), library)
        if outputs is None:
            return None
        return outputs[edge.port][2] if edge.port < len(outputs) else 0

    def _outputs_of(self, node: Node, library: Library) -> list[Any] | None:
        if node.op in library.functions:
            return outputs_of(node, library.functions)
        key = node.op, node.rest
        if key not in self._outputs:
            self._outputs[key] = outputs_of(node, library.functions)
        return self._outputs[key]

    def _check_port(self, edge: Edge, walk: _Walk, detail: str) -> None:
        """Check that a node has an output, as far as is known."""
        if edge in walk.arguments:
            return
        node = node_of(walk.body, edge.node)
        outputs = self._outputs_of(node, walk.library)
        if outputs is None and walk.body.name:
            raise Undecided("an unknown operation in a function", node.op)
        if edge.port == ANY_PORT or (outputs is not None and edge.port >= len(outputs)):
            raise Undecided("a malformed graph", detail)

    def _step(self, node: Node, walk: _Walk) -> Step:
        body = walk.body
        facts = self.facts(node, body.nodes, walk.library)
        loading.check_inputs(node)
        missing = loading.missing_neighbours(node, body.nodes, walk.arguments)
        if missing and not body.name:
            raise Undecided("a malformed graph", f"it does not have the node {missing[0]!r}")
        if missing:
            # In a function, a node that does not exist is the name of a group.
            label = (*facts.label, ("beside", missing))
            facts = dataclasses.replace(facts, label=label, is_plain=False)
        inputs = body.inputs[node.name]
        for text, edge in zip(data_edges(node), inputs, strict=True):
            self._check_port(edge, walk, f"an input is {text!r}")
        if facts.is_plain and len(inputs) == 1:
            self._check_identity(node, inputs[0], walk)
        state, is_unnamed = facts.state, False
        if state is not None and not state[1] and node.op != "VarHandleOp":
            # State may have the name of its node, which another node may give as a name.
            is_unnamed = True
            own = node.op in ANONYMOUS_TABLES and not _shares_by_node_name(node)
            state = (*state, node.name) if own else (state[0], node.name.encode())
        data = tuple(map(walk.value, inputs))
        controls = tuple(dict.fromkeys(map(walk.waited_for, body.controls[node.name])))
        return Step(node.name, facts, data, controls, state, is_unnamed)

    def _check_identity(self, node: Node, edge: Edge, walk: _Walk) -> None:
        """Check that a node that returns its input declares the input's type."""
        wanted = node.attr["T"].type if "T" in node.attr else None
        known = self.type_of(edge, walk.body, walk.arguments, walk.types, walk.library)
        if wanted is None or (known is not None and known % REFERENCE != wanted % REFERENCE):
            raise Undecided("a malformed graph", f"the node {node.name!r} is of another type")


class _Walk:
    """A depth-first walk that orders nodes topologically."""

    def __init__(
        self, body: Body, arguments: Arguments, types: Sequence[int], library: Library
    ) -> None:
        self.body = body
        self.arguments = arguments
        self.types = types
        self.library = library
        self.first = 1 + max(arguments.values(), default=-1)
        self.order: dict[str, int] = {}

    def visit(self, edge: Edge | str) -> None:
        """Add the node that an edge comes from, or a node, after everything it depends on."""
        if edge in self.arguments:
            return
        stack: list[tuple[str, Any]] = [self._enter(source_of(edge))]
        open_nodes = {stack[0][0]}
        if stack[0][0] in self.order:
            return
        while stack:
            name, edges = stack[-1]
            for each in edges:
                inner = source_of(each)
                if each in self.arguments or inner in self.order:
                    continue
                if inner in open_nodes:
                    raise Undecided("a loop of TensorFlow 1", f"at the node {inner!r}")
                stack.append(self._enter(inner))
                open_nodes.add(inner)
                break
            else:
                stack.pop()
                open_nodes.discard(name)
                self.order[name] = self.first + len(self.order)

    def _enter(self, name: str) -> tuple[str, Any]:
        if name not in self.body.nodes:
            raise Undecided("a malformed graph", f"it does not have the node {name!r}")
        return name, iter((*self.body.inputs[name], *self.body.controls[name]))

    def value(self, edge: Edge) -> tuple[int, int]:
        """Return the value and port of a node's output."""
        if edge in self.arguments:
            return self.arguments[edge], 0
        return self.order[edge.node], edge.port

    def waited_for(self, name: str) -> int:
        """Return the value for which whoever waits for a node waits."""
        return self.arguments[name] if name in self.arguments else self.order[name]


def source_of(edge: Edge | str) -> str:
    """Return the node that an edge comes from, or that it is."""
    return edge if isinstance(edge, str) else edge.node


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
    return any(dtype == VARIANT for _, _, dtype in outputs_of(node, {}) or ())


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


def _resource(node: Node, names: Iterable[str]) -> ResourceNode | None:
    """Return the resource that a node is, and nothing more; the array is known by its digest."""
    if not is_resource(node):
        return None
    if set(names) != set(resource_attributes(resource_of(node))) or _device(node):
        raise Undecided("a resource with more than a digest, a type and a shape")
    return resource_of(node)


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
