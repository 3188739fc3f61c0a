"""The strings that a tensor in a section may hold, found without running anything.

A string is followed backwards from its use to the constants it comes from: through operations that
pass strings on, function calls, and dataset elements.  The result also says whether other strings
are possible, because one is computed or comes from outside.  It may hold strings that are never
used, such as a whole list although only one is taken, but it is never silently incomplete.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tffc.graphs.body import Body, Edge
from tffc.graphs.functions import ALTERNATIVES, Library
from tffc.graphs.operations.effects import read_table
from tffc.support.trampoline import Task, run

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView
    from tffc.graphs.proto import OpDef


MOST_STEPS = 100_000
"""The limit on tensors visited in a section; those beyond count as computed."""

MOST_TEXTS, LONGEST_TEXT = 100, 2000
"""The limits on the number and length of a tensor's strings, beyond which it counts as computed."""

TABLES = pathlib.Path(__file__).parent
"""The folder of the tables of operations."""

HANDING_ON = {
    operation: slice(*(int(bound) if bound else None for bound in inputs.split(":")))
    for operation, inputs in read_table(TABLES / "handing_on.txt").items()
}
"""The operations that pass strings on, with the inputs that the strings come from."""

JOINING = frozenset({"Add", "StringJoin"})
"""Operations that concatenate one string of each input."""

CALLS = {
    "Case": 1,
    "If": 1,
    "PartitionedCall": 0,
    "StatefulPartitionedCall": 0,
    "StatelessCase": 1,
    "StatelessIf": 1,
}
"""The operations that call functions, with the index of the first input that they pass to them."""

LOOPS = frozenset({"StatelessWhile", "While"})

DATASETS = read_table(TABLES / "datasets.txt")
"""How operations use the elements of the dataset that is their first input."""

APPLYING = frozenset({"maps", "flattens", "selects", "consumes"})
"""The uses that pass the elements to a function, followed by further inputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Texts:
    """The strings that a tensor may hold, in order of discovery, and whether those are all."""

    known: tuple[bytes, ...]
    all_known: bool


COMPUTED = Texts((), all_known=False)


class TensorPlace(NamedTuple):
    """An edge in a function of this name, or in the graph if the name is empty.

    With `part`, the tensor is a dataset, and the place is that component of its elements.
    """

    function: str
    edge: Edge
    part: int | None = None


class KnownTexts:
    """The strings in a section.

    `graph` has the nodes of the graph itself, and `callers` for each function of the library the
    functions and nodes that call it.
    """

    def __init__(
        self,
        library: Library,
        graph: Body,
        callers: Mapping[str, Sequence[tuple[str, NodeView]]],
    ) -> None:
        self._library = library
        self._graph = graph
        self._callers = callers
        self._steps = itertools.count()
        self._joined: dict[TensorPlace, Texts] = {}

    def of(self, function: str, edge: Edge) -> Texts:
        """Return the strings that an edge in a function, or in the graph, may hold."""
        return run(self._texts(TensorPlace(function, edge)))

    def inputs(self, function: str, node: str) -> Sequence[Edge]:
        """Return the inputs of a node in a function, or in the graph."""
        return self._body(function).inputs.get(node, ())

    def _body(self, function: str) -> Body:
        return self._library.body(function) if function else self._graph

    def _texts(self, start: TensorPlace) -> Task[Texts]:
        """Collect the strings of all places that lead to this one, visiting each place once."""
        known: dict[bytes, None] = {}
        all_known = True
        order = {start: None}
        waiting = [start]
        while waiting:
            place = waiting.pop()
            node = self._node(place)
            if next(self._steps) >= MOST_STEPS or len(known) > MOST_TEXTS:
                return Texts(tuple(known)[:MOST_TEXTS], all_known=False)
            if node is not None and node.op == "Const":
                known.update(dict.fromkeys(_constants(node)))
                all_known = all_known and _is_given(node)
                continue
            if node is not None and node.op in JOINING and place.part is None:
                joined = yield self._join(place, node)
                known.update(dict.fromkeys(joined.known))
                all_known = all_known and joined.all_known
                continue
            before = list(self._before(place, node))
            all_known = all_known and bool(before) and None not in before
            new = [earlier for earlier in before if earlier is not None and earlier not in order]
            order.update(dict.fromkeys(new))
            waiting.extend(reversed(new))
        return Texts(tuple(known), all_known)

    def _join(self, place: TensorPlace, node: NodeView) -> Task[Texts]:
        if place not in self._joined:
            # Set before its inputs are visited, so that a cycle counts as computed.
            self._joined[place] = COMPUTED
            parts: list[Texts] = []
            for edge in self.inputs(place.function, node.name):
                parts.append((yield self._texts(TensorPlace(place.function, edge))))
            self._joined[place] = _joined(parts, node.attr["separator"].s)
        return self._joined[place]

    def _node(self, place: TensorPlace) -> NodeView | None:
        return self._body(place.function).nodes.get(place.edge.node)

    def _before(self, place: TensorPlace, node: NodeView | None) -> Iterator[TensorPlace | None]:
        """Yield the places whose strings this place passes on; None where they are unknown."""
        if node is None:
            return self._given(place)
        edges = self.inputs(place.function, node.name)
        if place.part is not None:
            return self._elements(place, node, edges)
        if node.op in HANDING_ON:
            return (TensorPlace(place.function, edge) for edge in edges[HANDING_ON[node.op]])
        if node.op == "IdentityN":
            return _only(place.function, edges, place.edge.port)
        return self._results(place, node, edges)

    def _elements(
        self, place: TensorPlace, node: NodeView, edges: Sequence[Edge]
    ) -> Iterator[TensorPlace | None]:
        assert place.part is not None
        match DATASETS.get(node.op):
            case "maps":
                yield self._result(node.attr["f"].func.name, place.part)
            case "flattens":
                yield self._result(node.attr["f"].func.name, 0, place.part)
            case "keeps" | "selects":
                yield from _only(place.function, edges, 0, place.part)
            case _ if node.op in ("TensorDataset", "TensorSliceDataset"):
                yield from _only(place.function, edges, place.part)
            case _:
                yield from self._results(place, node, edges)

    def _results(
        self, place: TensorPlace, node: NodeView, edges: Sequence[Edge]
    ) -> Iterator[TensorPlace | None]:
        """Yield the places that the results of a calling node come from."""
        port = place.edge.port
        if node.op in LOOPS:
            yield from _only(place.function, edges, port, place.part)
            yield self._result(node.attr["body"].func.name, port, place.part)
        elif node.op in CALLS:
            for key in ("f", "then_branch", "else_branch"):
                if key in node.attr:
                    yield self._result(node.attr[key].func.name, port, place.part)
            for branch in node.attr["branches"].list.func if "branches" in node.attr else ():
                yield self._result(branch.name, port, place.part)
        else:
            yield None

    def _result(self, function: str, number: int, part: int | None = None) -> TensorPlace | None:
        """Return the place in a function that a result of it comes from, or None if it is
        unknown."""
        if function not in self._library.functions:
            return None
        outputs = _names(self._library.functions[function].signature.output_arg)
        if not 0 <= number < len(outputs):
            return None
        return TensorPlace(function, self._library.body(function).results[number], part)

    def _given(self, place: TensorPlace) -> Iterator[TensorPlace | None]:
        """Yield the places of the values that callers pass for the argument at this place."""
        if not place.function:
            yield None
            return
        function = self._library.functions[place.function]
        names = _names(function.signature.input_arg)
        replaceable = any(attribute in function.attr for attribute in ALTERNATIVES)
        if names.count(place.edge.node) != 1 or replaceable:
            yield None
            return
        number = names.index(place.edge.node)
        callers = self._callers.get(place.function)
        if not callers:  # what is passed to a function that nothing calls cannot be known
            yield None
            return
        for caller, node in callers:
            yield from self._passed(caller, node, place, number, len(names))

    def _passed(
        self, caller: str, node: NodeView, place: TensorPlace, number: int, count: int
    ) -> Iterator[TensorPlace | None]:
        edges = self.inputs(caller, node.name)
        if node.op in CALLS or node.op == place.function:
            yield from _only(caller, edges, CALLS.get(node.op, 0) + number, place.part)
        elif node.op in LOOPS:
            yield from _only(caller, edges, number, place.part)
            yield self._result(node.attr["body"].func.name, number, place.part)
        elif DATASETS.get(node.op) in APPLYING:
            yield from self._applied(caller, node, place, number, count)
        else:
            yield None

    def _applied(
        self, caller: str, node: NodeView, place: TensorPlace, number: int, count: int
    ) -> Iterator[TensorPlace | None]:
        """Yield the places of what a dataset passes to its function: a state, an element's
        components, further inputs."""
        edges = self.inputs(caller, node.name)
        states, own = _count(node, "Tstate"), _count(node, "Targuments")
        if states is None or own is None:
            yield None
        elif number < states:
            yield from _only(caller, edges, 1 + number, place.part)
            yield self._result(place.function, number, place.part)
        elif number >= count - own:
            yield from _only(caller, edges, 1 + states + number - (count - own), place.part)
        elif place.part is None and edges:
            yield TensorPlace(caller, edges[0], number - states)
        else:
            yield None


def _only(
    function: str, edges: Sequence[Edge], number: int, part: int | None = None
) -> Iterator[TensorPlace | None]:
    yield TensorPlace(function, edges[number], part) if 0 <= number < len(edges) else None


def _names(arguments: Sequence[OpDef.ArgDef]) -> list[str]:
    """Return the names of arguments or results; none if one of them is a list of tensors."""
    if any(argument.number_attr or argument.type_list_attr for argument in arguments):
        return []
    return [argument.name for argument in arguments]


def _count(node: NodeView, types: str) -> int | None:
    """Return the number of types in an attribute's list; None if the caller of the function sets
    it."""
    if types not in node.attr:
        return 0
    return None if node.attr[types].placeholder else len(node.attr[types].list.type)


def _constants(node: NodeView) -> list[bytes]:
    tensor = node.attr["value"].tensor
    return list(tensor.string_val[: MOST_TEXTS + 1]) or [b""]


def _is_given(node: NodeView) -> bool:
    """Return whether a constant's value is in the node itself, not set by the caller of its
    function."""
    return "value" in node.attr and node.attr["value"].HasField("tensor")


def _joined(parts: list[Texts], separator: bytes) -> Texts:
    """Return all concatenations of one string from each part."""
    ways = math.prod(len(part.known) for part in parts)
    if not all(part.all_known for part in parts) or ways > MOST_TEXTS:
        return COMPUTED
    chosen = itertools.product(*(part.known for part in parts))
    texts = tuple(map(separator.join, chosen))
    return COMPUTED if any(len(text) > LONGEST_TEXT for text in texts) else Texts(texts, True)
