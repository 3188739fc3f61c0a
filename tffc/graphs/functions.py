"""Function libraries: which functions call which, and names that depend on their content.

A function is named by a hash of its content, in which the functions that it calls have such names
already.  So equal functions of different sections become one, and different functions of the same
name do not clash.  Functions with named state, or with kernels that keep state, are copied for each
call of the section.  Where kernels keep state, the name also depends on the call and on which
function of the section it is: two functions stay two, even if their content is equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from tffc.graphs.body import Body, body_of_function
from tffc.graphs.node import (
    Attributes,
    NodeView,
    copied_message,
    encoded,
    hash_of,
    inputs_first,
    reached,
)
from tffc.graphs.operations import op_table
from tffc.graphs.operations.iterations import is_ordered, is_steady
from tffc.graphs.operations.kernels import keeps_state, remembers_runs
from tffc.graphs.proto import FunctionDef, FunctionDefLibrary, NameAttrList, NodeDef
from tffc.graphs.state import has_named_state, is_named_like_node, scope_state
from tffc.support.errors import GraphError

SYMBOLIC_GRADIENT = "SymbolicGradient"
"""An operation that may be named where a function is expected."""

ALTERNATIVES = (
    "api_implements",
    "api_preferred_device",
    "backward_function_name",
    "forward_function_name",
)
"""Attributes that offer other functions in place of this one.  Only functions that are called are
kept, so there is nothing to choose from."""

NAME_LENGTH = 16
"""Hexadecimal digits of a hash in a function's name."""


class Function(NamedTuple):
    """A function under its final name: its serialized FunctionDef, the functions that it calls,
    and the one that computes its gradient, if it has one.

    `remembers` tells whether it, or what it calls, has a node that remembers runs, and `varies`
    whether it may compute something else from the same values each time.
    """

    name: str
    content: bytes
    calls: tuple[str, ...]
    gradient: str
    remembers: bool
    varies: bool

    def add_to(self, library: FunctionDefLibrary) -> None:
        """Add the function to a FunctionDefLibrary."""
        library.function.add().ParseFromString(self.content)
        if self.gradient:
            library.gradient.add(function_name=self.name, gradient_func=self.gradient)


class Library:
    """The functions of one section that its nodes may call, and the names of their gradients."""

    def __init__(self, library: FunctionDefLibrary) -> None:
        self.functions: dict[str, FunctionDef] = {f.signature.name: f for f in library.function}
        self.gradients: dict[str, str] = {
            g.function_name: g.gradient_func for g in library.gradient
        }
        self._calls: dict[str, tuple[str, ...]] = {}
        self._nodes: dict[str, Mapping[str, NodeView]] = {}
        self._bodies: dict[str, Body] = {}

    def called_by(self, node: NodeView) -> tuple[str, ...]:
        """Return the functions that a node names, each once.

        Raises:
          GraphError: one of them is not in the library.
        """
        if not op_table.names_functions(node.op):
            return ()
        names = [node.op] if node.op in self.functions else []
        for call in named_functions(node.attr):
            if call.name in self.functions:
                names.append(call.name)
            elif call.name not in ("", SYMBOLIC_GRADIENT):
                raise GraphError(
                    "E331",
                    f"node {node.name!r} calls a function {call.name!r}, which the graph's library "
                    "does not have",
                )
        return tuple(dict.fromkeys(names))

    def calls_of(self, name: str) -> tuple[str, ...]:
        """Return the functions that the function `name` calls, its gradient's included."""
        if name not in self._calls:
            function = self.functions[name]
            names = [call for node in function.node_def for call in self.called_by(node)]
            gradient = self.gradients.get(name)
            if gradient in self.functions:
                names.append(gradient)
            self._calls[name] = tuple(dict.fromkeys(names))
        return self._calls[name]

    def groups(self, roots: Iterable[str]) -> list[list[str]]:
        """Return the functions that `roots` need, in groups of those that call each other in a
        circle, each group after the groups that it calls.

        This is Kosaraju's algorithm for strongly connected components.
        """
        called_first = inputs_first(roots, lambda name: reversed(self.calls_of(name)))
        callers = self.callers(called_first)
        groups: list[list[str]] = []
        taken: set[str] = set()
        for name in reversed(called_first):
            if name not in taken:
                group = reached([name], lambda f: [n for n in callers[f] if n not in taken])
                taken.update(group)
                groups.append(list(group))
        return groups[::-1]

    def leading_to(self, roots: Iterable[str], has: Callable[[str], bool]) -> frozenset[str]:
        """Return those of the functions that `roots` need for which `has` is true, or which call
        such functions."""
        callers = self.callers(reached(roots, self.calls_of))
        return frozenset(reached(filter(has, callers), callers.__getitem__))

    def callers(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the callers of each of these functions, which call no others."""
        callers: dict[str, list[str]] = {name: [] for name in names}
        for name in callers:
            for call in self.calls_of(name):
                callers[call].append(name)
        return callers

    def nodes(self, name: str) -> Mapping[str, NodeView]:
        """Return the nodes of a function by name."""
        if name not in self._nodes:
            self._nodes[name] = {node.name: node for node in self.functions[name].node_def}
        return self._nodes[name]

    def body(self, name: str) -> Body:
        """Return the body of a function."""
        if name not in self._bodies:
            function = self.functions[name]
            self._bodies[name] = body_of_function(function, self.nodes(name), self.functions)
        return self._bodies[name]

    def keeps_state(self, name: str) -> bool:
        """Tell whether kernels of a function keep state, not counting the functions it calls."""
        return any(map(keeps_state, self._operations(name)))

    def remembers(self, name: str) -> bool:
        """Tell whether a node of a function remembers runs, not counting what it calls."""
        return any(map(remembers_runs, self._operations(name)))

    def varies(self, name: str) -> bool:
        """Tell whether a function may compute something else each time, not counting what it
        calls."""
        nodes = self.nodes(name)
        return not all(is_steady(node, nodes) for node in self._operations(name))

    def is_ordered(self, name: str) -> bool:
        """Tell whether something may depend on when a function runs, not counting what it calls."""
        nodes = self.nodes(name)
        return any(is_ordered(node, nodes) for node in self._operations(name))

    def _operations(self, name: str) -> Iterator[NodeView]:
        """Yield the nodes of a function, without those whose operations are functions."""
        return (node for node in self.nodes(name).values() if node.op not in self.functions)

    def copy(self, name: str, prefix: str) -> FunctionDef:
        """Return a copy of a function, with the prefix before the names of its state."""
        function = copied_message(self.functions[name])
        for attribute in ALTERNATIVES:
            function.attr.pop(attribute, None)
        if prefix:
            _scope_function(function, prefix)
        return function


class LinkedLibrary:
    """The functions that the nodes of one section need, under their final names."""

    def __init__(self, library: Library, roots: Iterable[str]) -> None:
        self._library = library
        self._shared: dict[str, Function] = {}
        groups = library.groups(roots)
        names = list(itertools.chain(*groups))
        callers = library.callers(names)

        def leading_to(has: Callable[[str], bool]) -> frozenset[str]:
            return frozenset(reached(filter(has, names), callers.__getitem__))

        # A function that calls one with state has to be copied with it.
        self.stateful = leading_to(
            lambda name: any(map(has_named_state, library.nodes(name).values()))
        )
        keeping = leading_to(library.keeps_state)
        self.copied = self.stateful | keeping
        self._remembering = leading_to(library.remembers)
        self.varying = leading_to(library.varies)
        self.ordered = leading_to(library.is_ordered)
        self._numbers = {name: number for number, name in enumerate(names) if name in keeping}
        self._own = [group for group in groups if not self.copied.isdisjoint(group)]
        for group in groups:
            if self.copied.isdisjoint(group):
                self._link(group, self._shared, "")
        if not self._own:
            self._library = Library(FunctionDefLibrary())  # so that the graph can be freed

    def link(self, prefix: str) -> dict[str, Function]:
        """Return the functions by their old names, with new copies of those with state."""
        if not self._own:
            return self._shared
        linked = dict(self._shared)
        for group in self._own:
            self._link(group, linked, prefix)
        return linked

    def _link(self, group: list[str], linked: dict[str, Function], prefix: str) -> None:
        copies = {name: self._library.copy(name, prefix) for name in group}
        names = {name: self._name(name, copies, linked, prefix) for name in group}
        for name, copy in copies.items():
            calls = {
                call: names[call] if call in names else linked[call].name
                for call in self._library.calls_of(name)
            }
            rename_calls(copy.node_def, calls)
            copy.signature.name = names[name]
            gradient = calls.get(self._library.gradients.get(name, ""), "")
            linked[name] = Function(
                names[name],
                encoded(copy),
                tuple(calls.values()),
                gradient,
                remembers=name in self._remembering,
                varies=name in self.varying,
            )

    def _name(
        self,
        root: str,
        copies: Mapping[str, FunctionDef],
        linked: Mapping[str, Function],
        prefix: str,
    ) -> str:
        """Return a name that depends on the content of a function; in it, functions of its own
        group, which have no names yet, are numbered.

        If kernels keep state, the name is that of no other function in any copy.
        """
        members = [root]
        contents: list[bytes] = []
        if root in self._numbers:
            contents.append(b"%b%d" % (prefix.encode(), self._numbers[root]))
        for name in members:  # which grows while it is walked
            calls: dict[str, str] = {}
            for call in self._library.calls_of(name):
                if call in copies and call not in members:
                    members.append(call)
                calls[call] = str(members.index(call)) if call in copies else linked[call].name
            renamed = copied_message(copies[name])
            rename_calls(renamed.node_def, calls)
            renamed.signature.name = calls.get(self._library.gradients.get(name, ""), "")
            contents.append(encoded(renamed))
        return f"f_{hash_of(contents).hex()[:NAME_LENGTH]}"


def rename_calls(nodes: Iterable[NodeDef], names: Mapping[str, str]) -> None:
    """Rename the functions that nodes name."""
    for node in nodes:
        node.op = names.get(node.op, node.op)
        if op_table.names_functions(node.op):
            for call in named_functions(node.attr):
                call.name = names.get(call.name, call.name)


def rename_edges(function: FunctionDef, renamed: Callable[[str], str]) -> None:
    """Rename the edges between the nodes of a FunctionDef, and to its results."""
    for node in function.node_def:
        node.input[:] = map(renamed, node.input)
    for outputs in (function.ret, function.control_ret):
        # The map cannot be iterated over while it changes.
        for name, edge in dict(outputs).items():
            outputs[name] = renamed(edge)


def rename_outputs(function: FunctionDef, op: str, old: str) -> None:
    """Rename an output of the nodes of an operation to `output`, wherever the function uses it."""
    nodes = {node.name for node in function.node_def if node.op == op}

    def renamed(edge: str) -> str:
        name, _, index = edge.partition(f":{old}:")
        return f"{name}:output:{index}" if index and name in nodes else edge

    rename_edges(function, renamed)


def named_functions(attributes: Attributes) -> Iterator[NameAttrList]:
    """Yield the NameAttrLists in a map of attributes, also those in the attributes of others."""
    stack = [attributes]
    while stack:
        current = stack.pop()
        for name in sorted(current):
            value = current[name]
            calls = [value.func] if value.HasField("func") else value.list.func
            for call in calls:
                yield call
                stack.append(call.attr)


def _scope_function(function: FunctionDef, prefix: str) -> None:
    """Put the prefix before all names of state in a function, which may be names of nodes."""
    renamed: dict[str, str] = {}
    for node in function.node_def:
        if is_named_like_node(node):
            renamed[node.name] = prefix + node.name
            node.name = renamed[node.name]
        else:
            scope_state(node, prefix)
    if not renamed:
        return
    rename_edges(function, lambda edge: _renamed_edge(edge, renamed))


def _renamed_edge(edge: str, renamed: Mapping[str, str]) -> str:
    """Return an input in a function's body, `name:output:index` or `^name`, with the node's new
    name."""
    mark = "^" if edge.startswith("^") else ""
    name, colon, port = edge.removeprefix("^").partition(":")
    return f"{mark}{renamed.get(name, name)}{colon}{port}"
