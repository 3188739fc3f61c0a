"""Linking: sections are copied into one graph, and the code between them becomes nodes.

The nodes of a copy get the prefix of their call, `c1/`, `c2/`, ..., and the tensors of the argument
replace those of the parameter.  Nothing is traced, and TensorFlow is not needed.  In the end, nodes
that no result needs are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tffc.graphs.functions import Function
from tffc.graphs.node import Attributes, GraphNode, encoded, reached, source
from tffc.graphs.operations import op_table
from tffc.graphs.proto import AttrValue, GraphDef, NodeDef, VersionDef
from tffc.graphs.proto.encoding import content_field
from tffc.graphs.resources import OPERATION, ResourceNode, resource_attributes
from tffc.language.alpha import Names
from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.size import max_size
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    write_tensorflow,
)
from tffc.language.wire.resources import resource_type
from tffc.linking.attributes import (
    array_attribute,
    filled_attribute,
    shape_attribute,
    type_attribute,
)
from tffc.linking.iterations import Iterations, check_end, elements_once
from tffc.linking.operand import Operand, Tensor, check_structure, from_leaves, leaf_types, rebuild
from tffc.linking.template import Template
from tffc.support.errors import GraphError

PRODUCER = 1575
"""The least version of the graphs written here, which is that of TensorFlow 2.14."""

SEQUENCE_DEVICE = "/device:CPU:0"
"""The device of datasets; TensorFlow keeps them nowhere else."""

SESSION_TOKEN = "session_token_tensor"
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]")
BRANCHING = frozenset({"Switch", "RefSwitch", "Enter", "RefEnter"})
"""Operations after which a node runs in a branch or a loop."""

NODE = 4
"""How many parts a node counts that is copied from a section; see `tffc.language.size`."""

MAX_NAME = 100
"""The longest name of a parameter, in characters, however deep its type nests."""


class GraphBuilder:
    """One TensorFlow section under construction.

    `templates` has the templates so far, by section and whether they are self-contained; builders
    of graphs with common sections may share it.  `computing` has the names, in order, of the nodes
    that may have effects: copies from sections and calls of functions.
    """

    prefix = ""
    is_self_contained = False

    def __init__(self, templates: dict[tuple[Compiled, bool], Template] | None = None) -> None:
        self.templates = {} if templates is None else templates
        self._nodes: dict[str, GraphNode] = {}
        self._functions: dict[str, Function] = {}
        self._names = Names(set())
        self._constants: dict[Any, Tensor] = {}
        self._rests: dict[tuple[str, TensorType | SequenceType], NodeDef] = {}
        self.computing: list[str] = []
        self._varying: dict[str, tuple[Tensor, int | None]] = {}
        self._in_order: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._initializers: list[str] = []
        self._function_count = 0
        self._copied = 0
        self.versions = VersionDef(producer=PRODUCER)
        self._parameter_type: Type | None = None
        self._parameter: list[Tensor] = []
        self._session_token: Tensor | None = None
        self._resources: dict[ResourceNode, Tensor] = {}

    def parameter(self, type: Type) -> Operand:
        """Return the parameter of the section, which is of this type; there is at most one.

        Raises:
          GraphError: a graph cannot hold such a value.
        """
        assert self._parameter_type is None, "a section has one parameter"
        self._parameter_type = type
        kinds = leaf_types(type)
        self._parameter = list(map(self._placeholder, _parameter_names(type), kinds))
        return from_leaves(type, self._parameter)

    def call(self, section: Compiled, argument: Operand | None) -> Operand:
        """Return the result of a section called with `argument`, which is None where it takes none.

        Raises:
          GraphError: the section is malformed, the argument does not fit its parameter, or the
            graph gets too large.
        """
        assert isinstance(section.type, FunctionType)
        template = self.template(section)
        arguments = self._given(template, section.type.parameter, argument)
        call = len(self._initializers)
        self._take_room(template.size)
        outer = self.prefix if template.is_scoped else ""
        copy = template.copy(f"{outer}c{call + 1}/", arguments, call)
        self._initializers.append(copy.initialize_op)
        nodes = {node.name: node for node in copy.nodes}
        self._nodes.update(nodes)
        self.computing.extend(nodes)
        self.adopt(copy.functions.values(), template.versions)
        result = list(map(Tensor, copy.result, leaf_types(section.type.result)))
        for position in sorted(template.varying.positions):
            self._varying[result[position].edge] = (result[position], call)
        if template.varying.in_order:
            edges = dict.fromkeys(result[place].edge for place in template.varying.in_order)
            ends = dict.fromkeys(tensor.node for tensor in result if tensor.node in nodes)
            self._in_order[call] = tuple(edges), tuple(ends)
        return from_leaves(section.type.result, result)

    def template(self, section: Compiled) -> Template:
        """Return the template of a section, which is made once."""
        key = (section, self.is_self_contained)
        if key not in self.templates:
            self.templates[key] = Template(section, self_contained=self.is_self_contained)
        return self.templates[key]

    def _take_room(self, size: int) -> None:
        """Check that this many more nodes are not too many."""
        most = max_size() // NODE
        self._copied += size
        if self._copied > most:
            raise GraphError(
                "E324",
                f"the graph of a part of the form would have more than {most} nodes from sections: "
                f"{self._copied} with call {len(self._initializers) + 1} of one",
                help="call sections fewer times, or allow more",
            )

    def constant(self, array: Array) -> Operand:
        """Return a constant; equal ones are one node."""
        return self._constant(array, array.type, array_attribute, array)

    def filled(self, kind: TensorType, number: float) -> Tensor:
        """Return a constant whose elements are all `number`; see `filled_attribute`."""
        return self._constant((kind, number), kind, filled_attribute, kind, number)

    def add(
        self,
        op: str,
        inputs: Iterable[Tensor],
        attributes: Attributes,
        types: Sequence[TensorType | SequenceType],
        functions: Iterable[Function] = (),
    ) -> list[Tensor]:
        """Return a new node of the operation `op` and its outputs, which are of these types.

        `functions` are those that the attributes name.
        """
        called = {function.name: function for function in functions}
        self._functions.update(called)
        edges = [tensor.edge for tensor in inputs]
        name = self._new(op, new_rest(op, attributes, types), edges, tuple(called))
        if called:
            self.computing.append(name)
        tensors = [
            Tensor(f"{name}:{port}" if port else name, kind) for port, kind in enumerate(types)
        ]
        if any(function.varies for function in called.values()):
            sequences = (tensor for tensor in tensors if isinstance(tensor.type, SequenceType))
            self._varying.update((sequence.edge, (sequence, None)) for sequence in sequences)
        return tensors

    def add_typed(self, op: str, inputs: Sequence[Tensor]) -> Tensor:
        """Return a new node of an operation whose inputs and output are of one type, which is its
        only attribute; the output has the shape of the first input."""
        kind = inputs[0].type
        rest = self._shared_rest(op, kind, _typed)
        return Tensor(self._new(op, rest, [tensor.edge for tensor in inputs]), kind)

    def finish(self, result: Operand, result_type: Type) -> Compiled:
        """Return the section that returns `result`, of type `(parameter -> result_type)`.

        Nodes that the result does not need are left out, except the parameter.

        Raises:
          GraphError: the result does not fit its type, or a graph cannot hold it.
        """
        leaves = check_structure(result, result_type, "the result")
        results = [self.add_typed("Identity", [tensor]) for tensor in leaves]
        self._share_sequences(results)
        needed = self._needed(tensor.node for tensor in results)
        if results:
            waits = [f"^{name}" for name in self._add_sharers(needed)]
            self._nodes[results[0].node].inputs.extend(waits)
        initialize_op = self._initialize_op(needed)
        token = self._session_token
        parameter = self._parameter_type
        content = TensorFlowSection(
            self._graph(needed),
            None if parameter is None else _binding(parameter, self._parameter),
            _binding(result_type, results),
            initialize_op,
            token.name if token is not None and token.node in needed else "",
        )
        return Compiled(
            "tensorflow", write_tensorflow(content), FunctionType(parameter, result_type)
        )

    def _share_sequences(self, results: Iterable[Tensor]) -> None:
        """Have the elements of sequences computed once where more than one iteration follows.

        In the program a sequence that one call hands to others is a list of elements.

        Raises:
          GraphError: a sequence for which that is done goes on for ever.
        """
        if not self._varying:
            return
        needed = self._needed(tensor.node for tensor in results)
        self._add_sharers(needed)
        in_order = self._calls_in_order(needed)
        nodes = [node for node in self._nodes.values() if node.name in needed]
        iterations = Iterations(nodes, self._functions)
        for edge, (_, call) in self._varying.items():
            iterations.add_producer(edge, call)
        for call, edges in in_order.items():
            waits = self._in_order[call][1]
            for edge in edges:
                elements = self._elements_once(self._varying[edge][0], waits)
                iterations.move(iterations.users_outside(edge), elements.edge)
                waits = [elements.node]
        for edge, (tensor, _) in self._varying.items():
            users = iterations.users_outside(edge)
            if tensor.node in needed and not iterations.at_most_once(users):
                iterations.move(users, self._elements_once(tensor).edge)

    def _elements_once(self, dataset: Tensor, waits: Iterable[str] = ()) -> Tensor:
        check_end(self._nodes, dataset)
        return elements_once(self.add, dataset, waits)

    def _calls_in_order(self, needed: set[str]) -> dict[int, list[str]]:
        """Return the calls with needed sequences whose elements have to be computed in order, and
        these: all up to the last that is needed.

        All that such a call returns comes before them, so it is added to the needed nodes.
        """
        in_order: dict[int, list[str]] = {}
        for call, (edges, ends) in reversed(self._in_order.items()):
            places = [i for i, edge in enumerate(edges) if source(edge) in needed]
            if places:
                in_order[call] = list(edges[: places[-1] + 1])
                needed |= self._needed(ends)
        return in_order

    def session_token(self) -> Tensor:
        """Return the token of the session that the section runs in, a string tensor made at first
        use."""
        if self._session_token is None:
            self._session_token = self._placeholder(SESSION_TOKEN, TensorType(DType.STRING))
        return self._session_token

    def resource(self, resource: ResourceNode) -> Tensor:
        """Return the tensor of a resource, which the graph has once."""
        if resource not in self._resources:
            rest = new_rest(OPERATION, resource_attributes(resource))
            kind = resource_type(resource)
            self._resources[resource] = Tensor(self._new("resource", rest, []), kind)
        return self._resources[resource]

    def new_function_prefix(self) -> str:
        """Return a prefix, different each time, for names in a function that this graph calls."""
        self._function_count += 1
        return f"{self.prefix}f{self._function_count}/"

    def adopt(self, functions: Iterable[Function], versions: VersionDef) -> None:
        """Note functions that this graph may call, and raise its versions to those of the graph
        that they come from."""
        self._functions.update((function.name, function) for function in functions)
        mine = self.versions
        mine.producer = max(mine.producer, versions.producer)
        mine.min_consumer = max(mine.min_consumer, versions.min_consumer)
        if versions.bad_consumers:
            mine.bad_consumers[:] = sorted({*mine.bad_consumers, *versions.bad_consumers})

    def _needed(self, roots: Iterable[str]) -> set[str]:
        """Return the names of the nodes that `roots` need.

        A section is initialized if a needed node of it may use state.
        """

        def needs(name: str) -> Iterator[str]:
            node = self._nodes[name]
            # Most edges are the name of a node, for port 0, and need not be split.
            for edge in node.inputs:
                yield edge if edge in self._nodes else source(edge)
            if node.call is not None and self._initializers[node.call] and _may_use_state(node.op):
                yield self._initializers[node.call]

        return set(reached(roots, needs))

    def _add_sharers(self, needed: set[str]) -> list[str]:
        """Add calls whose functions have kernels that keep state and that needed calls share, with
        what these need; return the calls.

        Without them, the state would be another.  Calls in branches and loops of TensorFlow 1 are
        not among them, because nothing outside can wait for these.
        """
        sharers: dict[str, list[str]] = {}
        for node in self._nodes.values():
            if node.functions and any(self._functions[n].remembers for n in node.functions):
                for name in reached(node.functions, lambda name: self._functions[name].calls):
                    if self._functions[name].remembers:
                        sharers.setdefault(name, []).append(node.name)
        added: list[str] = []
        for names in sharers.values():
            for name in () if needed.isdisjoint(names) else names:
                before = self._needed([name])
                operations = {self._nodes[name].op for name in before}
                if name not in needed and operations.isdisjoint(BRANCHING):
                    needed |= before
                    added.append(name)
        return added

    def _given(
        self, template: Template, expected: Type | None, argument: Operand | None
    ) -> dict[str, str]:
        """Return the edges that replace those from the template's parameter, its resources and the
        session token."""
        whole = StructType([]) if expected is None else expected
        taken = check_structure(() if argument is None else argument, whole, "the argument")
        pairs = list(zip(template.parameter, taken, strict=True))
        pairs += [(edge, self.resource(resource)) for edge, resource in template.resources.items()]
        if template.session_token:
            pairs.append((template.session_token, self.session_token()))
        arguments: dict[str, str] = {}
        for edge, tensor in pairs:
            arguments[edge] = tensor.edge
            arguments.setdefault(f"^{source(edge)}", f"^{tensor.node}")
        return arguments

    def _placeholder(self, name: str, kind: TensorType | SequenceType) -> Tensor:
        rest = self._shared_rest("Placeholder", kind, _shaped)
        return Tensor(self._new(name, rest, []), kind)

    def _shared_rest(
        self,
        op: str,
        kind: TensorType | SequenceType,
        attributes: Callable[[TensorType | SequenceType], Attributes],
    ) -> NodeDef:
        """Return the message that all nodes of an operation at a type share; a message for each
        node takes twice the time."""
        if (op, kind) not in self._rests:
            self._rests[op, kind] = new_rest(op, attributes(kind), [kind])
        return self._rests[op, kind]

    def _constant(
        self, key: Any, kind: TensorType, encode: Callable[..., AttrValue], *content: Any
    ) -> Tensor:
        if key not in self._constants:
            attributes = {"dtype": type_attribute(kind), "value": encode(*content)}
            self._constants[key] = self.add("Const", [], attributes, [kind])[0]
        return self._constants[key]

    def _new(
        self, wanted: str, rest: NodeDef, edges: list[str], functions: tuple[str, ...] = ()
    ) -> str:
        """Make a node and return its name, which is `wanted`, with a number if that is taken.

        Names of copied nodes have a `/`, so they are never taken by a new node.
        """
        name = self._names.fresh(wanted)
        self._nodes[name] = GraphNode(name, edges, rest, functions)
        return name

    def _initialize_op(self, needed: set[str]) -> str:
        """Return the name of the node that initializes all needed sections; empty if none needs
        it."""
        initializers = [f"^{name}" for name in self._initializers if name in needed]
        if not initializers:
            return ""
        name = self._new("init", new_rest("NoOp", {}), initializers)
        needed.add(name)
        return name

    def _graph(self, needed: set[str]) -> bytes:
        """Return the serialized GraphDef of the needed nodes and the parameter."""
        names = needed.union(tensor.node for tensor in self._parameter)
        nodes = [node for node in self._nodes.values() if node.name in names]
        # Writing nodes one by one takes less memory than one message of all.
        pieces = [content_field(1, node.encode(names)) for node in nodes]
        beside = GraphDef(versions=self.versions)
        for function in self._called(nodes):
            function.add_to(beside.library)
        return b"".join((*pieces, encoded(beside)))

    def _called(self, nodes: Iterable[GraphNode]) -> list[Function]:
        """Return the functions that the nodes need, in the order of their first use."""
        named = (name for node in nodes for name in node.functions)
        return [self._functions[n] for n in reached(named, lambda n: self._functions[n].calls)]


def new_rest(
    op: str, attributes: Attributes, types: Iterable[TensorType | SequenceType] = ()
) -> NodeDef:
    """Return the message of a node without name and inputs; its outputs are of these types."""
    on_cpu = any(isinstance(kind, SequenceType) for kind in types)
    return NodeDef(op=op, device=SEQUENCE_DEVICE if on_cpu else "", attr=attributes)


def _typed(kind: TensorType | SequenceType) -> Attributes:
    return {"T": type_attribute(kind)}


def _shaped(kind: TensorType | SequenceType) -> Attributes:
    return {"dtype": type_attribute(kind), "shape": shape_attribute(kind)}


def _may_use_state(op: str) -> bool:
    return op_table.is_stateful(op) or op_table.names_functions(op)


def _binding(kind: Type, leaves: Iterable[Tensor]) -> SectionBinding:
    def leaf(tensor: Tensor) -> SectionBinding:
        binding = SequenceBinding if isinstance(tensor.type, SequenceType) else TensorBinding
        return binding(tensor.name)

    return rebuild(from_leaves(kind, leaves), leaf, StructBinding)


def _parameter_names(root: Type) -> list[str]:
    """Return names for the leaves of a parameter, after the elements that lead to them."""
    names: list[str] = []
    stack = [(root, "arg")]
    while stack:
        kind, name = stack.pop()
        if not isinstance(kind, StructType):
            names.append(name)
            continue
        for element, inner in reversed(list(kind.items())):
            longer = f"{name}_{NOT_IN_NAMES.sub('_', str(element))}"
            stack.append((inner, longer if len(longer) <= MAX_NAME else name))
    return names
