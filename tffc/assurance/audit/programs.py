"""Dependency analysis of a round: what its aggregations, state and output may depend on."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from typing import Any

from tffc.assurance.audit.evaluation import AbstractEvaluator
from tffc.assurance.audit.flow import (
    DEEPEST_DATASET,
    NOTHING,
    Flow,
    Flows,
    dataset,
    flatten,
    handles_of,
    join,
    total_of,
    union,
)
from tffc.assurance.audit.memory import ELSEWHERE
from tffc.assurance.audit.outcomes import Draw, NodeEffect, Outside
from tffc.assurance.audit.sections import SectionWalk
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound
from tffc.language.calls import operands, uri_of
from tffc.language.nodes import (
    Compiled,
    Intrinsic,
    Node,
)
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.linking.operand import from_leaves, in_component_order, rebuild
from tffc.support.trampoline import Task, run


class Kind(enum.Enum):
    """The kind of a source."""

    DATA = "an element of a client's data"
    COUNT = "the number of elements in a client's data"
    SHAPE = "the shape of an element of a client's data"
    STATE = "a part of the server's state"
    CHANNEL = "the result of an aggregation"
    DRAW = "a draw of random numbers"


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A part of the argument, an aggregation or a draw that values may depend on.

    `name` is its path in the parameter, such as `images.pixels`, the name of an aggregation's call,
    or the operation of a draw; for a draw, `call` is the call whose section draws.
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

    def all_of(self, *kinds: Kind) -> int:
        """Return the bits of all sources of these kinds."""
        return union(bit for source, bit in self._bits.items() if source.kind in kinds)

    def of(self, bits: int, *kinds: Kind) -> list[Source]:
        """Return the sources of these kinds in a bit set, in order of discovery."""
        return [s for s, bit in self._bits.items() if bits & bit and s.kind in kinds]


@dataclasses.dataclass(frozen=True, slots=True)
class Contribution:
    """The type of each client's contribution to an aggregation, and the set of its sources."""

    type: Type
    sources: int


@dataclasses.dataclass(frozen=True, slots=True)
class SectionEffect:
    """An effect of a section in a round: the call that runs the section, and the sources of what
    the effect shows or passes on, and of whether and how often it happens."""

    call: str
    effect: NodeEffect
    sources: int


@dataclasses.dataclass(frozen=True, slots=True)
class RoundFlows:
    """The sources of the values of a round.

    `contributions` has the contribution to each aggregation, and `broadcasts` the sources of each
    broadcast, both by call; `results` has the sources of each leaf, by the names of `results_of`,
    and `calls` those of each leaf of a call's result.
    """

    sources: Sources
    contributions: dict[str, Contribution]
    broadcasts: dict[str, int]
    results: dict[str, tuple[int, ...]]
    effects: tuple[SectionEffect, ...]
    calls: dict[str, tuple[int, ...]]


def results_of(program: StagedRound) -> dict[str, Node]:
    """Return the new `state` of a round, unless it returns none, its `output`, and the new
    `client_state` of each client, if clients keep one."""
    kept = program.kept
    result = program.type.result
    if kept or (isinstance(result, StructType) and len(result) == 2):
        labels = ("state", "output", *(["client_state"] if kept else []))
        return dict(zip(labels, (*program.results, *kept), strict=True))
    return {"output": program.result}


def leaf_paths(root: Type, label: str) -> list[str]:
    """Return a path for each leaf of a type without placements.

    It consists of names and, for elements without one, positions: `model.weights`, `[0]`.
    """
    paths: list[str] = []
    stack = [(root, label)]
    while stack:
        part, path = stack.pop()
        if isinstance(part, StructType):
            pairs = list(enumerate(zip(part.names, part.types, strict=True)))
            for index, (name, member) in reversed(pairs):
                stack.append((member, f"{path}.{name}" if name else f"{path}[{index}]"))
        else:
            paths.append(path)
    return paths


def round_flows(program: StagedRound) -> RoundFlows:
    """Return the sources that the values of a round may depend on.

    Raises:
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    return _RoundWalk(program).flows()


class _RoundWalk(AbstractEvaluator):
    """Evaluates a round over flows instead of tensors."""

    def __init__(self, program: StagedRound) -> None:
        super().__init__()
        self._round = program
        self._sources = Sources()
        self._outside = Outside()
        self._sections: dict[tuple[str, Compiled], SectionWalk] = {}
        self._call = ""
        self._decides = 0
        """The sources of how often what is evaluated runs."""
        self._contributions: dict[str, Contribution] = {}
        self._broadcasts: dict[str, int] = {}

    def flows(self) -> RoundFlows:
        parameter = self._round.type.parameter
        assert isinstance(parameter, StructType)
        state, data = parameter.names
        self.values[self._round.parameter] = (
            self._given(parameter[0], state or "state", Kind.STATE),
            self._given(parameter[1], data or "data", Kind.DATA),
        )
        before = None
        while before != (self._outside.state(), self.values[self._round.parameter]):
            # What one section leaves outside, another may find, in this round or the next.
            before = self._outside.state(), self.values[self._round.parameter]
            for staged in self._round.calls.values():
                self._call = staged.name
                self.values[staged.name] = self._staged(staged)
            self._begin_next_round()
        return RoundFlows(
            self._sources,
            self._contributions,
            self._broadcasts,
            {
                name: tuple(flow.total() for flow in flatten(self.value(node)))
                for name, node in results_of(self._round).items()
            },
            tuple(
                SectionEffect(call, effect, sources)
                for (call, _), walk in self._sections.items()
                for effect, sources in walk.effects().items()
            ),
            {
                name: tuple(flow.total() for flow in flatten(self.values[name]))
                for name in self._round.calls
            },
        )

    def _begin_next_round(self) -> None:
        """Let what clients keep of this round be in the states that they have in the next."""
        server, held = self.values[self._round.parameter]
        for kept in self._round.kept:
            data, state = held
            joined = _joined(state, self.value(kept))
            self.values[self._round.parameter] = server, (data, joined)

    def _given(self, type: Type, label: str, kind: Kind) -> Flows:
        """Return the flows of a part of the round's parameter, with a source for each leaf."""

        def leaf_flow(leaf: Type, path: str, depth: int) -> Flow:
            if isinstance(leaf, SequenceType) and depth < DEEPEST_DATASET:
                element = leaf.element
                pairs = zip(leaves(element), leaf_paths(element, path), strict=True)
                inner = [leaf_flow(leaf, path, depth + 1) for leaf, path in pairs]
                counted = Source(Kind.COUNT, path) if kind is Kind.DATA else Source(kind, path)
                return dataset(self._sources.bit(counted), in_component_order(element, inner))
            value = self._sources.bit(Source(kind, path))
            if kind is not Kind.DATA or _is_fixed(leaf):
                return _of_leaf(leaf, value)
            return Flow(value, self._sources.bit(Source(Kind.SHAPE, path)))

        local = local_type(type)
        paths = iter(leaf_paths(local, label))
        return rebuild(local, lambda leaf: leaf_flow(leaf, next(paths), 0))

    # Calls of the round.

    def _staged(self, staged: StagedCall) -> Flows:
        call = staged.call
        if staged.stage is Stage.AGGREGATE:
            return self._aggregate(staged)
        if staged.stage is Stage.BROADCAST:
            values = tuple(map(self.value, operands(call)))
            self._broadcasts[staged.name] = total_of(flatten(values))
            return values[0] if len(values) == 1 else _opaque(call.type, values)
        return self.value(call)

    def _aggregate(self, staged: StagedCall) -> Flows:
        """Record the clients' contributions; return a result that depends on the aggregation.

        It may also depend on draws of the user's functions, and on operands other than the clients'
        values.
        """
        value, *rest = operands(staged.call)
        contributions = [value]
        if uri_of(staged.call) == "federated_weighted_mean":
            contributions, rest = [value, *rest], []
        self._contributions[staged.name] = Contribution(value.type, self._total(contributions))
        channel = Flow(self._sources.bit(Source(Kind.CHANNEL, staged.name)))
        if uri_of(staged.call) == "federated_aggregate":
            return self._concluded(channel, value.type, rest)
        return _filled(staged.call.type, Flow(channel.value | self._total(rest)))

    def _concluded(self, channel: Flow, type: Type, rest: Iterable[Node]) -> Flows:
        """Return the result of the user's `report` for the total of a channel.

        The total is a fixed point: `accumulate` and `merge` are applied until they add no sources,
        which covers any number of clients.
        """
        total, accumulate, merge, report = map(self.value, rest)
        value = _filled(type, channel)
        while True:
            added = run(self.apply(accumulate, (total, value)))
            merged = run(self.apply(merge, (added, added)))
            after = _joined(_joined(total, added), merged)
            if after == total:
                return run(self.apply(report, total))
            total = after

    # Expressions.

    def _total(self, nodes: Iterable[Node]) -> int:
        return total_of(flow for node in nodes for flow in flatten(self.value(node)))

    def constant(self, node: Node) -> Any:
        return _filled(node.type, NOTHING)

    def section(self, section: Compiled, argument: Any) -> Any:
        assert isinstance(section.type, FunctionType)
        arguments = [] if argument is None else flatten(argument)
        flows = self._walk(section).results(arguments, self._decides)
        return from_leaves(section.type.result, flows)

    def _walk(self, section: Compiled) -> SectionWalk:
        key = self._call, section
        if key not in self._sections:
            call = self._call

            def source_of(draw: Draw) -> int:
                return self._sources.bit(Source(Kind.DRAW, draw.operation, draw, call))

            self._sections[key] = SectionWalk(section, source_of, self._outside)
        return self._sections[key]

    def operate(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        assert isinstance(operator.type, FunctionType)
        match operator.uri:
            case "sequence_map":
                function, sequence = argument
                element = self._element(sequence, _parameter(function))
                result = yield self._repeatedly(function, element, sequence)
                flows = in_component_order(function.type.result, flatten(result))
                # The function may fail by anything in its scope.
                fails = self._sources.all_of(*Kind)
                return dataset(sequence.count(), flows, handles_of((sequence,)), fails)
            case "sequence_reduce":
                sequence, state, function = argument
                pair = _parameter(function)
                assert isinstance(pair, StructType)
                element = self._element(sequence, pair[1])
                while True:
                    result = yield self._repeatedly(function, (state, element), sequence)
                    after = _chosen(_joined(state, result), sequence.count())
                    if after == state:
                        return state
                    state = after
            case "sequence_sum":
                return _chosen(self._element(argument, operator.type.result), argument.count())
            case _:
                return _opaque(operator.type.result, argument)

    def _repeatedly(self, function: Any, argument: Any, sequence: Flow) -> Task[Any]:
        """Return the result of a function that runs for each element of a sequence."""
        before = self._decides
        self._decides |= sequence.count()
        result = yield self.apply(function, argument)
        self._decides = before
        return result

    def _element(self, sequence: Flow, type: Type) -> Flows:
        """Return the flows of an element of a sequence that somebody goes through."""
        sources = self._outside.elsewhere if ELSEWHERE in handles_of((sequence,)) else 0
        if sequence.handles:
            self._outside.elsewhere |= sequence.count() | self._decides
        return _chosen(_element(sequence, type), sources) if sources else _element(sequence, type)


def _opaque(type: Type, value: Flows) -> Flows:
    """Return a value of a type, with leaves that may depend on everything in a given value."""
    flows = flatten(value)
    return _filled(type, Flow(total_of(flows), 0, None, handles_of(flows)))


def _filled(type: Type, flow: Flow) -> Flows:
    def leaf_flow(leaf: Type) -> Flow:
        if isinstance(leaf, SequenceType):
            return Flow(flow.total(), 0, None, flow.handles, flow.total())
        return _of_leaf(leaf, flow.total())

    return rebuild(local_type(type), leaf_flow)


def _of_leaf(leaf: Type, sources: int) -> Flow:
    """Return the flow of a leaf that may depend on some sources: its shape may too, unless its
    type fixes it."""
    return Flow(sources, 0 if _is_fixed(leaf) else sources)


def _is_fixed(leaf: Type) -> bool:
    return isinstance(leaf, TensorType) and leaf.is_fully_defined()


def _parameter(function: Any) -> Type:
    type = function.type
    assert isinstance(type, FunctionType)
    assert type.parameter is not None
    return type.parameter


def _element(sequence: Flow, type: Type) -> Flows:
    """Return the flows of an element of a sequence."""
    places = in_component_order(type, list(range(len(leaves(type)))))
    known = sequence.elements
    if known is None or len(known) != len(places):
        known = (Flow(sequence.total(), sequence.total(), None, sequence.handles),) * len(places)
    flows = dict(zip(places, known, strict=True))
    return from_leaves(type, [flows[place] for place in range(len(places))])


def _joined(first: Flows, second: Flows) -> Flows:
    """Return the flows of a value that may be either of two of the same structure."""
    others = iter(flatten(second))
    return rebuild(first, lambda flow: join(flow, next(others)))


def _chosen(value: Flows, sources: int) -> Flows:
    return rebuild(value, lambda flow: flow.with_value(sources))
