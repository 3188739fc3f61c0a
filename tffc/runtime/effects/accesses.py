"""The operations with side effects in a graph, and the files and addresses that they access."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tffc.graphs.body import body_of_graph
from tffc.graphs.functions import SYMBOLIC_GRADIENT, Library, named_functions
from tffc.graphs.operations.effects import OUTSIDE, Effect, is_call, outside_kinds, read_table
from tffc.graphs.proto import NodeDef
from tffc.language.nodes import Compiled
from tffc.linking.section import SectionContent, read_section
from tffc.runtime.effects.known_texts import TABLES, KnownTexts
from tffc.runtime.effects.use import Use

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


NAMING = (
    "address",
    "debug_ops_spec",
    "debug_urls",
    "descriptor_source",
    "file_name",
    "file_pattern",
    "filename",
    "log_dir_path",
    "memory_region_name",
    "output_file_path",
    "output_stream",
    "target_name",
    "call_target_name",
    "vocab_file",
)
"""The attributes that name what an operation accesses."""

NAMING_INPUTS = {
    operation: tuple(map(int, positions.split()))
    for operation, positions in read_table(TABLES / "naming_inputs.txt").items()
}
"""The inputs that name what an operation accesses."""

REMOTE = re.compile(rb"(?!file:|ram:)[a-z][a-z0-9+.-]*://.", re.IGNORECASE | re.DOTALL)
"""The beginnings of the names of files on other machines."""

MOST_CONSTANTS, LONGEST_CONSTANT, LONGEST_PATH = 5, 200, 20
"""The limits of a `Use`: the number of its constants, their length, and the length of its path."""


def graph_uses(section: Compiled) -> tuple[Use, ...]:
    """Find the effects of a TensorFlow section, in the order of its nodes.

    Raises:
      GraphError: the section is malformed.
      WireError: its message is malformed.
    """
    content = read_section(section)
    library = Library(content.graph.library)
    outside_nodes = list(_found("", content.nodes, content.own_nodes(), library))
    for name in library.functions:
        nodes = library.nodes(name)
        outside_nodes += _found(name, nodes, nodes, library)
    if not outside_nodes:
        return ()
    calls = _Calls(content, library)
    return tuple(
        use for kinds, name, node in outside_nodes for use in calls.uses(kinds, name, node)
    )


def _found(
    function: str, nodes: Mapping[str, NodeView], beside: Mapping[str, NodeView], library: Library
) -> Iterator[tuple[list[str], str, NodeView]]:
    """Yield the kinds of effects of each node in one body that has any, the function and the
    node."""
    for node in nodes.values():
        kinds = [] if is_call(node.op, library.functions) else outside_kinds(node, beside)
        if kinds:
            yield kinds, function, node


class _Calls:
    """The call graph of a section's functions, and the arguments of the calls."""

    def __init__(self, content: SectionContent, library: Library) -> None:
        self._library = library
        self._first: dict[str, tuple[str, NodeView]] = {}
        self._callers: dict[str, list[tuple[str, NodeView]]] = {}
        known: set[str] = set()
        # The graph first, then functions that it does not call.
        for root in ("", *library.functions):
            if root not in known:
                known.add(root)
                self._walk(root, content.nodes, known)
        for gradient in content.graph.library.gradient:
            call = "", NodeDef(op=SYMBOLIC_GRADIENT)
            self._callers.setdefault(gradient.gradient_func, []).append(call)
        # What replaces a node is not known.
        graph = body_of_graph(content.nodes)._replace(nodes=content.own_nodes())
        self._texts = KnownTexts(library, graph, self._callers)

    def _walk(self, root: str, graph: Mapping[str, NodeView], known: set[str]) -> None:
        """Record the calls in a function, or in the graph, and in everything it calls."""
        order = [root]
        # The list grows during the loop.
        for caller in order:
            nodes = self._library.nodes(caller) if caller else graph
            for node in nodes.values():
                for called in self._called_by(node):
                    self._callers.setdefault(called, []).append((caller, node))
                    if called not in known:
                        known.add(called)
                        self._first[called] = caller, node
                        order.append(called)

    def _called_by(self, node: NodeView) -> list[str]:
        names = [node.op, *(call.name for call in named_functions(node.attr))]
        return [name for name in names if name in self._library.functions]

    def uses(self, kinds: list[str], function: str, node: NodeView) -> Iterator[Use]:
        """Yield the effects of a node; a file on another machine is an effect on the network
        too."""
        names, computed = self._named(function, node)
        path = self._path(function, node)
        for kind in kinds:
            yield Use(kind, node.op, _shown(names), path, computed)
        files, network = OUTSIDE[Effect.FILES], OUTSIDE[Effect.NETWORK]
        remote = [name for name in names if REMOTE.match(name)]
        if remote and files in kinds and network not in kinds:
            yield Use(network, node.op, _shown(remote), path, computed)

    def _path(self, function: str, node: NodeView) -> tuple[str, ...]:
        """Return the `path` of a `Use`."""
        steps = [node.name]
        while function:
            if len(steps) > LONGEST_PATH:
                steps.append("...")
                break
            steps.append(function)
            if function not in self._first:
                break
            function, caller = self._first[function]
            steps.append(caller.name)
        return tuple(reversed(steps))

    def _named(self, function: str, node: NodeView) -> tuple[list[bytes], bool]:
        """Return the names in a node's attributes and inputs, and whether there may be others."""
        attributes = [node.attr[name] for name in NAMING if name in node.attr]
        named = [text for value in attributes for text in (value.s, *value.list.s) if text]
        edges = self._texts.inputs(function, node.name)
        places = NAMING_INPUTS.get(node.op)
        # Which inputs hold names is not known: list the known strings of all inputs, and ignore
        # computed ones.
        if places is None:
            constants = (text for edge in edges for text in self._texts.of(function, edge).known)
            return [*named, *filter(None, constants)], any(
                value.placeholder for value in attributes
            )
        texts = [self._texts.of(function, edges[place]) for place in places if place < len(edges)]
        known = [text for texts_of_edge in texts for text in texts_of_edge.known]
        return [*named, *known], not all(texts_of_edge.all_known for texts_of_edge in texts)


def _shown(names: list[bytes]) -> tuple[bytes, ...]:
    return tuple(name[:LONGEST_CONSTANT] for name in names[:MOST_CONSTANTS])
