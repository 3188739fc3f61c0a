"""What a compiled section may do outside of TensorFlow: with files, the network, Python.

Everything in the graph counts, needed or not, and so do all functions of its library: TensorFlow
evaluates constant parts of a graph while it loads it, and reads files that they name.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from tffc.graphdef import hlo
from tffc.graphdef.effects import OUTSIDE, has_outside, is_call, outside_kind
from tffc.graphdef.functions import named_functions
from tffc.graphdef.node import source
from tffc.ir.nodes import Compiled
from tffc.ir.wire import read_tensorflow, read_xla
from tffc.linking.section import Section, read_section
from tffc.proto import GraphDef

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
"""The attributes that name what an operation reaches."""

MOST_CONSTANTS, LONGEST_CONSTANT, LONGEST_PATH = 5, 200, 20
"""How much is kept about an operation."""

PASSING = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
"""Operations that give a function their inputs in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """One operation that reaches outside.

    `kind` is one of the values of `effects.OUTSIDE`; `constants` are the texts among its inputs and
    what its attributes name; `path` leads from the graph to the operation: of each function that it
    is in, the node that calls it and its name, and at the end the operation's own node.
    """

    kind: str
    operation: str
    constants: tuple[bytes, ...]
    path: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def outside_uses(section: Compiled) -> tuple[Use, ...]:
    """What a section may do outside, in the order of its nodes.

    Raises:
      GraphError: the section is malformed.
      WireError: its message is malformed.
    """
    if section.kind == "xla":
        return tuple(_xla(section))
    content = read_section(section)
    library = content.graph.library.function
    called = frozenset(function.signature.name for function in library)
    found = list(_found("", content.graph.node, content.own_nodes(), called))
    for function in library:
        nodes = function.node_def
        found += _found(function.signature.name, nodes, _by_name(nodes), called)
    if not found:
        return ()
    calls = _Calls(content)
    return tuple(
        Use(kind, node.op, calls.constants(name, node), calls.path(name, node))
        for kind, name, node in found
    )


def _xla(section: Compiled) -> Iterator[Use]:
    for opcode, target in hlo.instructions(read_xla(section.payload).hlo_module):
        effect = hlo.effect_of(opcode, target)
        if effect in OUTSIDE:
            yield Use(OUTSIDE[effect], opcode, (target.encode(),) if target else (), ())


def _found(
    function: str, nodes: Any, beside: Mapping[str, Any], called: frozenset[str]
) -> Iterator[tuple[str, str, Any]]:
    """The kind, the function, and the node of what reaches outside in one body."""
    for node in nodes:
        if is_call(node.op, called):
            continue
        kind = outside_kind(node, beside)
        if kind is not None:
            yield kind, function, node


def _by_name(nodes: Any) -> dict[str, Any]:
    """The nodes of a body by name; none if a name stands twice."""
    named = {node.name: node for node in nodes}
    return named if len(named) == len(nodes) else {}


class _Calls:
    """Who calls the functions of a section, and what they are given."""

    def __init__(self, content: Section) -> None:
        self._functions = {f.signature.name: f for f in content.graph.library.function}
        self._nodes = {"": content.own_nodes()}
        self._callers: dict[str, tuple[str, Any]] = {}
        self._calls: dict[str, int] = {}
        known: set[str] = set()
        for root in ("", *self._functions):  # the graph, then what it does not call
            if root not in known:
                known.add(root)
                self._walk(root, content.graph.node, known)

    def _walk(self, root: str, graph: Any, known: set[str]) -> None:
        """Notes the calls in a function, or in the graph, and in all that it calls."""
        order = [root]
        for caller in order:  # which grows while it is walked
            for node in self._functions[caller].node_def if caller else graph:
                for called in self._called_by(node):
                    self._calls[called] = self._calls.get(called, 0) + 1
                    if called not in known:
                        known.add(called)
                        self._callers[called] = caller, node
                        order.append(called)

    def _called_by(self, node: Any) -> list[str]:
        names = [node.op, *(call.name for call in named_functions(node.attr))]
        return [name for name in names if name in self._functions]

    def path(self, function: str, node: Any) -> tuple[str, ...]:
        """See `Use`."""
        steps = [node.name]
        while function:
            if len(steps) > LONGEST_PATH:
                steps.append("...")
                break
            steps.append(function)
            if function not in self._callers:
                break
            function, caller = self._callers[function]
            steps.append(caller.name)
        return tuple(reversed(steps))

    def constants(self, function: str, node: Any) -> tuple[bytes, ...]:
        """See `Use`."""
        attributes = [node.attr[name] for name in NAMING if name in node.attr]
        named = [text for value in attributes for text in (value.s, *value.list.s) if text]
        edges = [edge for edge in node.input if not edge.startswith("^")]
        given = (text for edge in edges for text in self._texts(function, edge))
        shown = itertools.islice(itertools.chain(named, given), MOST_CONSTANTS)
        return tuple(text[:LONGEST_CONSTANT] for text in shown)

    def _texts(self, function: str, edge: str) -> list[bytes]:
        """The strings that an input of a node in a function is always, if it is a constant."""
        for _ in range(LONGEST_PATH):  # a chain of these may be a circle
            name = source(edge)
            node = self._body(function).get(name)
            if node is None:
                passed = self._passed(function, name)
                if passed is None:
                    return []
                function, edge = passed
            elif node.op == "Identity" and node.input:
                edge = node.input[0]
            elif node.op == "Const":
                return node.attr["value"].tensor.string_val[:MOST_CONSTANTS]
            else:
                return []
        return []

    def _body(self, function: str) -> Mapping[str, Any]:
        if function not in self._nodes:
            self._nodes[function] = _by_name(self._functions[function].node_def)
        return self._nodes[function]

    def _passed(self, function: str, name: str) -> tuple[str, str] | None:
        """Where the only call of a function has an argument from: the caller, and an edge in it."""
        if function not in self._callers or self._calls[function] != 1:
            return None
        caller, node = self._callers[function]
        names = [argument.name for argument in self._functions[function].signature.input_arg]
        edges = [edge for edge in node.input if not edge.startswith("^")]
        in_order = node.op in PASSING or node.op == function
        if name not in names or not in_order or len(edges) != len(names):
            return None
        return caller, edges[names.index(name)]


@functools.lru_cache(maxsize=256)
def may_reach_outside(section: Compiled) -> bool:
    """Whether a section has anything that has to be looked at to know what it does outside.

    Raises:
      WireError: its message is malformed.
    """
    if section.kind != "tensorflow":
        return True
    try:
        return has_outside(GraphDef.FromString(read_tensorflow(section.payload).graph_def))
    except DecodeError:
        return True
