"""Sections prepared for copying into graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tffc.graphs.functions import Function, Library, LinkedLibrary, rename_calls
from tffc.graphs.node import CLASS, GraphNode, copied_message, reached, rename_colocations, source
from tffc.graphs.resources import ResourceNode, is_resource, resource_of
from tffc.graphs.state import (
    has_named_state,
    is_scoped,
    make_anonymous,
    scope_loop,
    scope_state,
    separable,
)
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType
from tffc.linking.operand import leaf_types
from tffc.linking.section import SectionContent, read_section
from tffc.linking.varying import VaryingSequences

if TYPE_CHECKING:
    from tffc.graphs.proto import NodeDef


class Template:
    """The nodes of a section that each call copies: all that its results need, but the parameter.

    Resources are not copied either, since the graph has each once: `resources` has those that the
    results need, by the edge from each.

    A section is initialized before the graph around it computes anything (`initialize_op` names the
    node for that), or within the copy each time it runs.  The latter happens if `self_contained` is
    set, or if the initialization depends on the argument; then variables and tables are new in each
    run, so that simultaneous runs do not share them.  `size` is how many nodes a copy has, and
    `varying` has the sequences of the result that may have other elements in each iteration.
    """

    def __init__(self, section: Compiled, *, self_contained: bool) -> None:
        content = read_section(section)
        self.parameter = content.parameter
        self.result = content.result
        self.session_token = content.session_token
        self.initialize_op = content.initialize_op
        # A copy, because a part of a message keeps the whole message alive.
        self.versions = copied_message(content.graph.versions)
        inputs = content.needed()
        parameters = content.given_edges()
        before = reached(
            filter(None, (content.initialize_op,)),
            lambda name: [source(edge) for edge in inputs[name] if edge not in parameters],
        )
        arguments = content.argument_edges()
        within = self_contained or any(e in arguments for name in before for e in inputs[name])
        if within and before:
            inputs = _initialized_within(content, inputs, before)
            self.initialize_op = ""
        library = Library(content.graph.library)
        self.resources: dict[str, ResourceNode] = {
            name: resource_of(content.nodes[name])
            for name in inputs
            if is_resource(content.nodes[name])
        }
        needed = [content.nodes[name] for name in inputs if name not in self.resources]
        calls = {node.name: library.called_by(node) for node in needed}
        self._library = LinkedLibrary(library, (call for named in calls.values() for call in named))
        if within and not self._library.stateful:
            for node in separable(needed):
                make_anonymous(node)
        self.has_named_state = bool(self._library.stateful) or any(map(has_named_state, needed))
        self.is_scoped = self.has_named_state or bool(self._library.copied)
        self._nodes = [
            GraphNode(node.name, inputs[node.name], _rest(node), calls[node.name])
            for node in needed
        ]
        self._differing = {
            node.name
            for node in needed
            if is_scoped(node) or calls[node.name] or CLASS in node.attr
        }
        copied = (library.nodes(name) for name in self._library.copied)
        self.size = len(self._nodes) + sum(map(len, copied))
        assert isinstance(section.type, FunctionType)
        leaves = enumerate(leaf_types(section.type.result))
        sequences = [position for position, leaf in leaves if isinstance(leaf, SequenceType)]
        self.varying = VaryingSequences(content, sequences, calls, self._library)

    def copy(self, prefix: str, arguments: Mapping[str, str], call: int) -> Copy:
        """Return the nodes under names with this prefix.

        `arguments` has the edge that takes the place of each edge from the parameter, the session
        token or a resource, control edges included; `call` counts the copies in one graph.
        """
        functions = self._library.link(prefix)
        nodes: list[GraphNode] = []
        for node in self._nodes:
            inputs = [
                arguments.get(edge) or (f"^{prefix}{edge[1:]}" if edge[0] == "^" else prefix + edge)
                for edge in node.inputs
            ]
            names = {name: functions[name].name for name in node.functions}
            rest = node.rest
            if node.name in self._differing:
                rest = _adapted(rest, prefix, arguments, names)
            nodes.append(GraphNode(prefix + node.name, inputs, rest, tuple(names.values()), call))
        result = [arguments.get(edge) or prefix + edge for edge in self.result]
        return Copy(nodes, result, self.initialize_op and prefix + self.initialize_op, functions)


class Copy(NamedTuple):
    """A section's nodes and functions under new names; `result` has the edges of its leaves."""

    nodes: list[GraphNode]
    result: list[str]
    initialize_op: str
    functions: Mapping[str, Function]


def _initialized_within(
    content: SectionContent, inputs: Mapping[str, list[str]], before: Iterable[str]
) -> dict[str, list[str]]:
    """Return the inputs with control inputs by which all other nodes run after the initialization.

    Only nodes whose inputs all come from before it have to wait, because the others wait for these;
    so no edge from outside is added to the inside of a loop.
    """
    parameters = content.given_edges()
    early = set(before).union(name for name, edges in inputs.items() if not edges)
    waiting = f"^{content.initialize_op}"
    return {
        name: [*edges, waiting]
        if name not in early and all(edge in parameters or source(edge) in early for edge in edges)
        else edges
        for name, edges in inputs.items()
    }


def _rest(node: NodeDef) -> NodeDef:
    """Return a copy of a node's message without name and inputs."""
    rest = copied_message(node)
    rest.ClearField("name")
    rest.ClearField("input")
    return rest


def _adapted(
    rest: NodeDef, prefix: str, arguments: Mapping[str, str], functions: Mapping[str, str]
) -> NodeDef:
    """Return the message of a copy of a node that differs in more than name and inputs."""
    adapted = copied_message(rest)
    scope_state(adapted, prefix)
    scope_loop(adapted, prefix)
    rename_calls([adapted], functions)
    # The node that replaces a parameter stands for it.
    rename_colocations(adapted, lambda name: arguments.get(f"^{name}", f"^{prefix}{name}")[1:])
    return adapted
