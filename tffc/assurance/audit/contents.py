"""Digests of what the calls of a round compute, which names, lines and other calls do not change.

The digest of a value covers the operator that makes it and the digests of its operands, down to the
parameter and to sections.  Of a section whose operations keep no state, only what the value needs
counts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tffc.assurance.audit.programs import leaf_paths, results_of
from tffc.backends.forms.stages import StagedRound
from tffc.graphs.canonical import canonical_graph
from tffc.graphs.node import all_nodes, hash_of
from tffc.graphs.operations import op_table
from tffc.graphs.reading import read_graph
from tffc.language.alpha import canonical
from tffc.language.fingerprint import fingerprint, leaf_names
from tffc.language.intrinsics import MAPS, PLACEMENTS_ONLY
from tffc.language.nodes import (
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.traverse import postorder
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.wire import TensorFlowSection, read_tensorflow, to_bytes
from tffc.support.errors import GraphError, WireError
from tffc.support.trampoline import Task, run

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


LENGTH = 32
"""The number of hexadecimal digits of a digest."""

MOST_VISITS = 300_000
"""A section is taken whole if its results and nodes are more than this when they are multiplied."""

SEPARATE = frozenset(
    {
        "Assert",
        "Case",
        "CheckNumerics",
        "CheckNumericsV2",
        "DatasetToSingleElement",
        "If",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "RangeDataset",
        "ReduceDataset",
        "ShuffleDatasetV2",
        "StatefulPartitionedCall",
        "TensorDataset",
        "TensorSliceDataset",
        "TruncatedNormal",
        "While",
    }
)
"""Operations that are marked as stateful but leave nothing for others to read."""


class Contents:
    """The digests of what a round's calls, results and effects compute."""

    def __init__(self, program: StagedRound) -> None:
        self._round = program
        self._known: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._closed: dict[Node, bytes] = {}

    def of_call(self, name: str) -> str:
        """Return the digest of a call."""
        return run(self._call(name, ())).hex()[:LENGTH]

    def of_result(self, path: str) -> str:
        """Return the digest of a leaf of the round's result, by its path in reports."""
        for label, node in results_of(self._round).items():
            type = local_type(node.type)
            for at, name in enumerate(leaf_paths(type, label)):
                if name == path:
                    steps = _steps_to(type, at)
                    return run(self._value(node, steps)).hex()[:LENGTH]
        raise AssertionError(f"the round has no result {path}")

    def of_effect(self, labels: Iterable[str], parts: Iterable[Node]) -> str:
        """Return the digest of an effect that some labels describe, in any of some components."""
        digests = [run(self._function(part)) for part in parts]
        return hash_of(("effect", hash_of(labels), *digests)).hex()[:LENGTH]

    def _value(self, node: Node, path: tuple[int, ...]) -> Task[bytes]:
        """Return the digest of an element of a value, by a path of positions."""
        match node:
            case Selection():
                return (yield self._value(node.source, (node.index, *path)))
            case StructNode() if path:
                return (yield self._value(node.values[path[0]], path[1:]))
            case StructNode():
                parts: list[bytes] = []
                for element in node.values:
                    parts.append((yield self._value(element, ())))
                return hash_of(("struct", node.type, *parts))
            case Reference() if node.name in self._round.calls:
                return (yield self._call(node.name, path))
            case Reference():
                return hash_of(("parameter", path, _type_at(node.type, path)))
            case _:
                return hash_of(("value", path, (yield self._function(node))))

    def _call(self, name: str, path: tuple[int, ...]) -> Task[bytes]:
        """Return the digest of an element of the result of a call."""
        if (name, path) not in self._known:
            self._known[name, path] = yield self._result(self._round.calls[name].call, path)
        return self._known[name, path]

    def _result(self, call: Call, path: tuple[int, ...]) -> Task[bytes]:
        function, argument = call.function, call.argument
        if isinstance(function, Compiled):
            operand = b"" if argument is None else (yield self._value(argument, ()))
            return hash_of(("section", _part(function, path), operand))
        assert isinstance(function, Intrinsic)
        if function.uri in PLACEMENTS_ONLY and argument is not None:
            return hash_of((function.uri, (yield self._value(argument, path))))
        if function.uri in MAPS and isinstance(argument, StructNode):
            mapped, value = argument.values
            chosen = selected(mapped)
            if chosen is not None:
                return (yield self._value(value, (*chosen, *path)))
            if isinstance(mapped, Compiled):
                operand = yield self._value(value, ())
                return hash_of((function.uri, _part(mapped, path), operand))
        operand = b"" if argument is None else (yield self._value(argument, ()))
        return hash_of(("call", function.uri, function.type, path, operand))

    def _function(self, root: Node) -> Task[bytes]:
        """Return the digest of a function, or of another expression that is not a flat operand."""
        if root not in self._closed:
            self._closed[root] = yield self._tree(root)
        return self._closed[root]

    def _tree(self, root: Node) -> Task[bytes]:
        digests: dict[int, bytes] = {}
        renamed = canonical(root)
        for node in postorder(renamed):
            label = _label(node)
            if isinstance(node, Reference) and node.name in self._round.calls:
                label = ((yield self._call(node.name, ())),)
            parts = (digests[id(child)] for child in node.children())
            digests[id(node)] = hash_of((type(node).__name__, *label, *parts))
        return digests[id(renamed)]


def _label(node: Node) -> tuple[object, ...]:
    """Return the content of a node besides its children."""
    match node:
        case Compiled():
            return (fingerprint(node),)
        case Selection():
            return (node.index,)
        case Lambda():
            return (node.parameter_name, node.type)
        case Reference() | Call() | StructNode() | Intrinsic():
            return (getattr(node, "name", ""), getattr(node, "uri", ""), node.type)
        case _ if node.children():
            return (node.own_label(), node.type)
        case _:
            return (to_bytes(node),)


def selected(function: Node) -> tuple[int, ...] | None:
    """Return the path that a function selects from its argument, None if it does something else."""
    path: tuple[int, ...] = ()
    if not isinstance(function, Lambda):
        return None
    body = function.result
    while isinstance(body, Selection):
        path, body = (body.index, *path), body.source
    is_own = isinstance(body, Reference) and body.name == function.parameter_name
    return path if is_own else None


def _part(section: Compiled, path: tuple[int, ...]) -> bytes:
    """Return the digest of what an element of a section's result needs."""
    assert isinstance(section.type, FunctionType)
    wanted = _type_at(section.type.result, path)
    if path and section.kind == "tensorflow":
        first, width = _leaf_position(section.type.result, path), len(leaves(wanted))
        body = _needed_for(section, first, first + width)
        if body is not None:
            return hash_of(("part", wanted, body))
    return hash_of(("whole", fingerprint(section), path))


@functools.lru_cache(maxsize=1024)
def _needed_for(section: Compiled, first: int, last: int) -> bytes | None:
    """Return the canonical form of what some leaves of a section's result need.

    None if the rest of the section may change them otherwise, or if it would take long.
    """
    separable = _separable(section)
    if separable is None:
        return None
    content, graph = separable
    parameters = list(dict.fromkeys(leaf_names(content.parameter)))
    results = leaf_names(content.result)[first:last]
    return canonical_graph(graph, parameters, results, content.initialize_op)


@functools.lru_cache(maxsize=16)
def _separable(section: Compiled) -> tuple[TensorFlowSection, GraphDef] | None:
    """Return the content and the graph of a section whose results can be taken apart, or None."""
    try:
        content = read_tensorflow(section.payload)
        graph = read_graph(content.graph_def)
    except (WireError, GraphError):
        return None
    size = sum(1 for _ in all_nodes(graph))
    visits = len(leaf_names(content.result)) * size
    return (content, graph) if visits <= MOST_VISITS and _is_separable(graph) else None


def _is_separable(graph: GraphDef) -> bool:
    """Tell whether no operation of a graph can read what another has left behind."""
    called = {function.signature.name for function in graph.library.function}
    return all(node.op in called or _leaves_nothing(node.op) for node in all_nodes(graph))


def _leaves_nothing(op: str) -> bool:
    operation = op_table.find(op)
    if operation is None or operation.has_named_state:
        return False
    return not operation.is_stateful or op in SEPARATE


def _type_at(type: Type, path: Iterable[int]) -> Type:
    """Return the type of an element, by a path of positions."""
    for index in path:
        type = local_type(type)
        assert isinstance(type, StructType)
        type = type.types[index]
    return type


def _leaf_position(type: Type, path: Iterable[int]) -> int:
    """Return the number of leaves before those of an element."""
    position = 0
    for index in path:
        assert isinstance(type, StructType)
        position += sum(len(leaves(part)) for part in type.types[:index])
        type = type.types[index]
    return position


def _steps_to(type: Type, leaf: int) -> tuple[int, ...]:
    """Return the path of positions to a leaf of a type."""
    steps: list[int] = []
    while isinstance(type, StructType):
        for index, part in enumerate(type.types):
            width = len(leaves(part))
            if leaf < width:
                steps.append(index)
                type = part
                break
            leaf -= width
    return tuple(steps)
