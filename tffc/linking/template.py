"""Sections made ready to be copied into graphs any number of times."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tffc.graphdef.functions import Function, Library, LinkedLibrary, rename_calls
from tffc.graphdef.node import COLOCATION, GraphNode, encode_rest, inputs_first, source
from tffc.graphdef.state import (
    has_named_state,
    is_scoped,
    make_anonymous,
    scope_loop,
    scope_state,
    separable,
)
from tffc.ir.nodes import Compiled
from tffc.linking.section import SectionContent, read_section
from tffc.proto import NodeDef, VersionDef


class Template:
    """The nodes of a section that each call copies: all that its results need, but the parameter.

    A section is initialized either before the graph that it is copied into computes anything, then
    `initialize_op` names the node for that, or within the copy, each time that it runs.  The latter
    is so if `self_contained` asks for it, and if what is initialized depends on the argument.  Then
    variables and tables are new in each run, so that runs at the same time do not meet either.
    `size` is how many nodes a copy has.
    """

    def __init__(self, section: Compiled, *, self_contained: bool) -> None:
        content = read_section(section)
        self.parameter = content.parameter
        self.result = content.result
        self.session_token = content.session_token
        self.initialize_op = content.initialize_op
        self.versions = VersionDef()  # a copy, for a part of a message keeps the whole alive
        self.versions.CopyFrom(content.graph.versions)
        inputs = content.needed()
        before = _before_initialization(content, inputs)
        arguments = content.argument_edges()
        within = self_contained or any(e in arguments for name in before for e in inputs[name])
        if within and before:
            inputs = _initialized_within(content, inputs, before)
            self.initialize_op = ""
        library = Library(content.graph.library)
        needed = {name: content.nodes[name] for name in inputs}
        calls = {name: library.called_by(node) for name, node in needed.items()}
        self._library = LinkedLibrary(library, (call for named in calls.values() for call in named))
        if within and not self._library.stateful:
            for name in separable(needed.values()):
                make_anonymous(needed[name])
        self.has_named_state = bool(self._library.stateful) or any(
            map(has_named_state, needed.values())
        )
        self._nodes = [
            _template_node(name, needed[name], edges, calls[name], self._library)
            for name, edges in inputs.items()
        ]

        copied = (library.body(name) for name in self._library.stateful)
        self.size = len(self._nodes) + sum(map(len, copied))

    def copy(self, prefix: str, given: Mapping[str, str], call: int) -> Copy:
        """Return the nodes under names with this prefix.

        `given` has the edge that takes the place of each edge from the parameter or the session
        token, control edges included; `call` counts the copies in one graph.
        """
        functions = self._library.link(prefix)
        return Copy(
            nodes=[node.copy(prefix, given, call, functions) for node in self._nodes],
            result=[given.get(edge) or prefix + edge for edge in self.result],
            initialize_op=self.initialize_op and prefix + self.initialize_op,
            functions=functions,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Copy:
    """A section's nodes and functions under new names; `result` has the edges of its leaves."""

    nodes: list[GraphNode]
    result: list[str]
    initialize_op: str
    functions: Mapping[str, Function]


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateNode:
    """A node as its section has it; `rest` is what copies share, but where `differs` is set.

    `functions` are the functions that it names, under their names in the section.
    """

    name: str
    op: str
    inputs: list[str]
    rest: bytes
    classes: tuple[str, ...]
    functions: tuple[str, ...]
    differs: bool

    def copy(
        self, prefix: str, given: Mapping[str, str], call: int, functions: Mapping[str, Function]
    ) -> GraphNode:
        """Return the node under a name with this prefix; see `Template.copy`."""
        made = GraphNode(
            prefix + self.name,
            self.op,
            [
                given.get(edge) or (f"^{prefix}{edge[1:]}" if edge[0] == "^" else prefix + edge)
                for edge in self.inputs
            ],
            self.rest,
            call=call,
        )
        if self.classes:
            made.classes = tuple(_copied_class(name, prefix, given) for name in self.classes)
        if self.functions:
            made.functions = tuple(functions[name].name for name in self.functions)
        if self.differs:
            self._adapt(made, prefix, functions)
        return made

    def _adapt(self, made: GraphNode, prefix: str, functions: Mapping[str, Function]) -> None:
        message = NodeDef.FromString(self.rest)
        message.op = self.op
        scope_state(message, prefix)
        scope_loop(message, prefix)
        rename_calls(message, {name: functions[name].name for name in self.functions})
        made.op = message.op
        message.ClearField("op")
        made.rest = encode_rest(message)


def _before_initialization(content: SectionContent, inputs: Mapping[str, list[str]]) -> set[str]:
    """Return the nodes that initialization needs, itself included; none if there is none."""
    given = content.given_edges()
    roots = [content.initialize_op] if content.initialize_op else []
    return set(
        inputs_first(roots, lambda name: [source(e) for e in inputs[name] if e not in given])
    )


def _initialized_within(
    content: SectionContent, inputs: Mapping[str, list[str]], before: set[str]
) -> dict[str, list[str]]:
    """Return the inputs with an order in which all that initialization does not need comes after
    it.

    Only nodes wait all of whose inputs are there before, for the others wait for these; and no edge
    is added to the inside of a loop, where none may come from outside.
    """
    given = content.given_edges()
    early = before.union(name for name, edges in inputs.items() if not edges)
    waiting = f"^{content.initialize_op}"
    return {
        name: [*edges, waiting]
        if name not in early and all(edge in given or source(edge) in early for edge in edges)
        else edges
        for name, edges in inputs.items()
    }


def _template_node(
    name: str,
    node: Any,
    inputs: list[str],
    functions: tuple[str, ...],
    library: LinkedLibrary,
) -> TemplateNode:
    """Return the template of a node, whose message is emptied."""
    op = node.op
    differs = is_scoped(node) or not library.stateful.isdisjoint(functions)
    if functions and not differs:
        shared = library.link("")
        rename_calls(node, {name: shared[name].name for name in functions})
        op = node.op
    classes: tuple[str, ...] = ()
    if "_class" in node.attr:
        classes = tuple(
            name.decode(errors="surrogateescape") for name in node.attr["_class"].list.s
        )
        del node.attr["_class"]
    for field in ("name", "op", "input"):
        node.ClearField(field)
    return TemplateNode(name, op, inputs, encode_rest(node), classes, functions, differs)


def _copied_class(name: str, prefix: str, given: Mapping[str, str]) -> str:
    """Return a `loc:@node` in a copy; what has taken the place of a parameter stands for it."""
    if not name.startswith(COLOCATION):
        return name
    node = name.removeprefix(COLOCATION)
    taken = given.get(f"^{node}")
    return COLOCATION + (prefix + node if taken is None else taken[1:])
