"""Dependency analysis of a round: what its aggregations, state and output may depend on."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tffc.audit.flow import DEEPEST_DATASET, NOTHING, Flow, Flows, dataset, flatten, join, total_of
from tffc.audit.sections import Draw, SectionWalk
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound
from tffc.ir.calls import operands, uri_of
from tffc.ir.nodes import (
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.ir.trampoline import Task, run
from tffc.ir.type_parts import leaves, local_type
from tffc.ir.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.linking.operand import from_leaves, rebuild


class Kind(enum.Enum):
    """The kind of a source."""

    DATA = "an element of a client's data"
    COUNT = "how many elements a client's data have"
    SHAPE = "the shape of an element of a client's data"
    STATE = "a part of the server's state"
    CHANNEL = "the result of an aggregation"
    DRAW = "a draw of random numbers"


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Something that values depend on.

    `name` is its path in the parameter, such as `images.pixels`, the name of an aggregation's call,
    or the operation of a draw; for a draw, `call` is the call whose section it is in.
    """

    kind: Kind
    name: str
    draw: Draw | None = None
    call: str = ""


class Sources:
    """The sources of a round, and the bit of each."""

    def __init__(self) -> None:
        self._bits: dict[Source, int] = {}

    def bit(self, source: Source) -> int:
        return self._bits.setdefault(source, 1 << len(self._bits))

    def of(self, bits: int, *kinds: Kind) -> list[Source]:
        """Return the sources of these kinds in a bit set, in order of discovery."""
        return [s for s, bit in self._bits.items() if bits & bit and s.kind in kinds]


@dataclasses.dataclass(frozen=True, slots=True)
class Contribution:
    """What each client contributes to an aggregation, and the set of its sources."""

    staged: StagedCall
    type: Type
    sources: int


@dataclasses.dataclass(frozen=True, slots=True)
class RoundFlows:
    """What the values of a round depend on.

    `broadcasts` are the sources of what is sent to clients, by call; `results` are those of each
    leaf of what the round returns, as `results_of` names it.
    """

    sources: Sources
    contributions: tuple[Contribution, ...]
    broadcasts: dict[str, int]
    results: dict[str, tuple[int, ...]]


def results_of(program: StagedRound) -> dict[str, Node]:
    """Return the new `state` of a round, unless it returns none, and its `output`."""
    result = program.type.result
    if isinstance(result, StructType) and len(result) == 2:
        return dict(zip(("state", "output"), program.results, strict=True))
    return {"output": program.result}


def leaf_paths(root: Type, label: str) -> list[str]:
    """Return a path for each leaf of a type without placements.

    It consists of names and, for elements without one, positions: `model.weights`, `[0]`.
    """
    found: list[str] = []
    stack = [(root, label)]
    while stack:
        part, path = stack.pop()
        if isinstance(part, StructType):
            pairs = list(enumerate(zip(part.names, part.types, strict=True)))
            for index, (name, each) in reversed(pairs):
                stack.append((each, f"{path}.{name}" if name else f"{path}[{index}]"))
        else:
            found.append(path)
    return found


def round_flows(program: StagedRound) -> RoundFlows:
    """Return what the values of a round may depend on.

    Raises:
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    return _RoundWalk(program).flows()


Value: TypeAlias = "Flows | _Function"


@dataclasses.dataclass(frozen=True, slots=True)
class _Function:
    """A function operand, with the values of the names it uses."""

    node: Node
    scope: Mapping[str, Any]


class _RoundWalk:
    def __init__(self, program: StagedRound) -> None:
        self._round = program
        self._sources = Sources()
        self._sections: dict[tuple[str, Compiled], SectionWalk] = {}
        self._call = ""
        self._contributions: list[Contribution] = []
        self._broadcasts: dict[str, int] = {}

    def flows(self) -> RoundFlows:
        parameter = self._round.type.parameter
        assert isinstance(parameter, StructType)
        state, data = (
            self._given(type, name or label, kind)
            for type, name, label, kind in zip(
                parameter.types,
                parameter.names,
                ("state", "data"),
                (Kind.STATE, Kind.DATA),
                strict=True,
            )
        )
        scope: dict[str, Value] = {self._round.parameter: (state, data)}
        for staged in self._round.calls.values():
            self._call = staged.name
            scope[staged.name] = self._staged(staged, scope)
        return RoundFlows(
            self._sources,
            tuple(self._contributions),
            self._broadcasts,
            {
                name: tuple(flow.total() for flow in flatten(self._value(node, scope)))
                for name, node in results_of(self._round).items()
            },
        )

    def _given(self, type: Type, label: str, kind: Kind) -> Flows:
        """Return the flows of a part of the round's parameter, with a source for each leaf."""

        def leaf_flow(leaf: Type, path: str, depth: int) -> Flow:
            if isinstance(leaf, SequenceType) and depth < DEEPEST_DATASET:
                element = leaf.element
                pairs = zip(leaves(element), leaf_paths(element, path), strict=True)
                inner = [leaf_flow(each, path, depth + 1) for each, path in pairs]
                counted = Source(Kind.COUNT, path) if kind is Kind.DATA else Source(kind, path)
                return dataset(self._sources.bit(counted), inner)
            value = self._sources.bit(Source(kind, path))
            if kind is not Kind.DATA or (isinstance(leaf, TensorType) and leaf.is_fully_defined):
                return Flow(value)
            return Flow(value, self._sources.bit(Source(Kind.SHAPE, path)))

        local = local_type(type)
        paths = iter(leaf_paths(local, label))
        return rebuild(local, lambda leaf: leaf_flow(leaf, next(paths), 0))

    # Calls of the round.

    def _staged(self, staged: StagedCall, scope: Mapping[str, Value]) -> Flows:
        call = staged.call
        if staged.stage is Stage.AGGREGATE:
            return self._aggregate(staged, scope)
        if staged.stage is Stage.BROADCAST:
            given = tuple(self._value(node, scope) for node in operands(call))
            self._broadcasts[staged.name] = total_of(flatten(given))
            return given[0] if len(given) == 1 else self._opaque(call.type, given)
        return self._value(call, scope)

    def _aggregate(self, staged: StagedCall, scope: Mapping[str, Value]) -> Flows:
        """Record what clients contribute; return a result that depends on the aggregation.

        Besides, it may depend on draws of the user's functions, and on operands beside the clients'
        values.
        """
        value, *rest = operands(staged.call)
        given = [value]
        if uri_of(staged.call) == "federated_weighted_mean":
            given, rest = [value, *rest], []
        found = self._total(given, scope)
        self._contributions.append(Contribution(staged, value.type, found))
        channel = Flow(self._sources.bit(Source(Kind.CHANNEL, staged.name)))
        if uri_of(staged.call) == "federated_aggregate":
            return self._concluded(channel, value.type, rest, scope)
        return self._filled(staged.call.type, Flow(channel.value | self._total(rest, scope)))

    def _concluded(
        self, channel: Flow, given: Type, rest: Iterable[Node], scope: Mapping[str, Value]
    ) -> Flows:
        """Return the result of the user's report for a total of values from a channel."""
        zero, accumulate, merge, report = rest
        value = self._filled(given, channel)
        total = self._value(zero, scope)
        while True:
            added = self._applied(accumulate, (total, value), scope)
            merged = self._applied(merge, (added, added), scope)
            after = _joined(_joined(total, added), merged)
            if after == total:
                return self._applied(report, total, scope)
            total = after

    # Expressions.

    def _total(self, nodes: Iterable[Node], scope: Mapping[str, Value]) -> int:
        return total_of(flow for node in nodes for flow in flatten(self._value(node, scope)))

    def _value(self, node: Node, scope: Mapping[str, Value]) -> Flows:
        found = run(self._evaluate(node, scope))
        assert not isinstance(found, _Function)
        return found

    def _applied(self, function: Node, argument: Flows, scope: Mapping[str, Value]) -> Flows:
        return run(self._apply(_Function(function, scope), argument))

    def _evaluate(self, node: Node, scope: Mapping[str, Value]) -> Task[Value]:
        match node:
            case Reference():
                return scope[node.name]
            case Selection():
                source = yield self._evaluate(node.source, scope)
                return source[node.index] if isinstance(source, tuple) else source
            case StructNode():
                values: list[Any] = []
                for each in node.values:
                    values.append((yield self._evaluate(each, scope)))
                return tuple(values)
            case Lambda() | Compiled():
                return _Function(node, scope)
            case Intrinsic() if isinstance(node.type, FunctionType):
                return _Function(node, scope)
            case Call() if isinstance(node.function, Intrinsic):
                return (yield self._operator(node, scope))
            case Call():
                function = yield self._evaluate(node.function, scope)
                argument = None
                if node.argument is not None:
                    argument = yield self._evaluate(node.argument, scope)
                return (yield self._apply(function, argument))
            case Block():
                inner = dict(scope)
                for binding in node.locals:
                    inner[binding.name] = yield self._evaluate(binding.value, inner)
                return (yield self._evaluate(node.result, inner))
            case _:
                return self._filled(node.type, NOTHING)

    def _apply(self, function: Any, argument: Flows | None) -> Task[Any]:
        """Return the result of a function for an argument."""
        assert isinstance(function, _Function)
        node = function.node
        if isinstance(node, Lambda):
            inner = dict(function.scope)
            if node.parameter_name is not None:
                inner[node.parameter_name] = argument
            return (yield self._evaluate(node.result, inner))
        assert isinstance(node.type, FunctionType)
        given = [] if argument is None else flatten(argument)
        if not isinstance(node, Compiled):
            return self._filled(node.type.result, Flow(total_of(given)))
        return from_leaves(node.type.result, self._section(node).results(given))

    def _section(self, section: Compiled) -> SectionWalk:
        key = self._call, section
        if key not in self._sections:
            call = self._call

            def source_of(draw: Draw) -> int:
                return self._sources.bit(Source(Kind.DRAW, draw.operation, draw, call))

            self._sections[key] = SectionWalk(section, source_of)
        return self._sections[key]

    def _operator(self, call: Call, scope: Mapping[str, Value]) -> Task[Value]:
        uri = uri_of(call)
        assert call.argument is not None
        if uri in UNCHANGED:
            return (yield self._evaluate(call.argument, scope))
        values: list[Any] = []
        for node in (call.argument,) if uri in UNARY else operands(call):
            values.append((yield self._evaluate(node, scope)))
        rule = OPERATORS.get(uri, _RoundWalk.unknown)
        return (yield rule(self, values, call.type))

    def mapped(self, values: list[Any], type: Type) -> Task[Any]:
        function, value = values
        return (yield self._apply(function, value))

    def evaluated(self, values: list[Any], type: Type) -> Task[Any]:
        return (yield self._apply(values[0], None))

    def unknown(self, values: list[Any], type: Type) -> Task[Any]:
        """Make every leaf depend on all operands, for an unknown operator."""
        given = tuple(value for value in values if not isinstance(value, _Function))
        yield ()
        return self._opaque(type, given)

    def sequence_mapped(self, values: list[Any], type: Type) -> Task[Any]:
        function, sequence = values
        element = _parameter(function)
        made = yield self._apply(function, _element(sequence, element))
        return dataset(sequence.value, flatten(made))

    def sequence_reduced(self, values: list[Any], type: Type) -> Task[Any]:
        sequence, state, function = values
        pair = _parameter(function)
        assert isinstance(pair, StructType)
        element = _element(sequence, pair[1])
        while True:
            made = yield self._apply(function, (state, element))
            after = _chosen(_joined(state, made), sequence.value)
            if after == state:
                return state
            state = after

    def sequence_summed(self, values: list[Any], type: Type) -> Task[Any]:
        yield ()
        return _chosen(_element(values[0], type), values[0].value)

    # Values.

    def _opaque(self, type: Type, given: Flows) -> Flows:
        """Return a value whose every leaf may depend on everything in a given value."""
        return self._filled(type, Flow(total_of(flatten(given))))

    @staticmethod
    def _filled(type: Type, flow: Flow) -> Flows:
        def leaf_flow(leaf: Type) -> Flow:
            return Flow(flow.value | flow.shape) if isinstance(leaf, SequenceType) else flow

        return rebuild(local_type(type), leaf_flow)


def _parameter(function: Any) -> Type:
    found = function.node.type
    assert isinstance(found, FunctionType)
    assert found.parameter is not None
    return found.parameter


def _element(sequence: Flow, type: Type) -> Flows:
    """Return the flows of an element of a sequence."""
    width = len(leaves(type))
    known = sequence.elements
    if known is None or len(known) != width:
        known = (Flow(sequence.total(), sequence.total()),) * width
    return from_leaves(type, known)


def _joined(first: Flows, second: Flows) -> Flows:
    """Return a value that is either of two of the same structure."""
    others = iter(flatten(second))
    return rebuild(first, lambda flow: join(flow, next(others)))


def _chosen(value: Flows, sources: int) -> Flows:
    return rebuild(value, lambda flow: flow.with_value(sources))


OPERATORS: dict[str, Callable[[_RoundWalk, list[Any], Type], Task[Any]]] = {
    "federated_apply": _RoundWalk.mapped,
    "federated_map": _RoundWalk.mapped,
    "federated_map_all_equal": _RoundWalk.mapped,
    "federated_eval_at_clients": _RoundWalk.evaluated,
    "federated_eval_at_server": _RoundWalk.evaluated,
    "sequence_map": _RoundWalk.sequence_mapped,
    "sequence_reduce": _RoundWalk.sequence_reduced,
    "sequence_sum": _RoundWalk.sequence_summed,
}
"""The results of operators that work where their operands are."""


UNCHANGED = frozenset(
    {
        "federated_value_at_clients",
        "federated_value_at_server",
        "federated_zip_at_clients",
        "federated_zip_at_server",
    }
)
"""Operators that return their argument with another placement."""

UNARY = frozenset({"federated_eval_at_clients", "federated_eval_at_server", "sequence_sum"})
"""Operators whose argument is a single operand."""
