"""DistributeAggregateForm: five programs between which only six values pass.

    b, t = server_prepare(s)
    b'   = server_to_client_broadcast(b)
    a    = client_work((d, b'))
    a'   = client_to_server_aggregation((t, a))
    s, x = server_result((t, a'))

The temporary state `t` carries from the first server component to the others what they need: the
parts of the state, what both server components use (so that nothing is computed twice), and the
parameters of aggregations.  The two communicating components hold nothing but their operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tffc.backends.forms.distribute_aggregate_graphs import link_graphs, secure_places
from tffc.backends.forms.form import Form, Side, connect, pair, runs_at, struct
from tffc.backends.forms.purity import ComponentEffects, Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import (
    ROUND,
    check_state,
    is_placed,
    place_of_result,
    wrong_signature,
)
from tffc.backends.forms.stages import (
    STATE,
    Half,
    Stage,
    StagedCall,
    StagedRound,
    Use,
    assign_stages,
    placement_of,
)
from tffc.backends.forms.steps import AggregationSteps, ClientGraphs, RoundSteps, Runtime, Value
from tffc.errors import FormError
from tffc.ir.calls import operands, pack, with_operands
from tffc.ir.intrinsics import definition_of
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.ir.traverse import rewrite, walk
from tffc.ir.type_parts import distinct_leaves, leaves, local_type
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)

ARGUMENTS, TEMPORARY = "intrinsic_args_from_before_comp", "intermediate_state"
"""Names of elements, as in TFF's forms: operands that another component made, and the temporary
state.  Nothing asks for them: elements are taken by position."""


@dataclass(frozen=True, slots=True)
class DistributeAggregateForm(Form):
    """A round as five programs; see the picture at the top of this module."""

    component_class: ClassVar[type[Lambda]] = Lambda

    server_prepare: Lambda = field(metadata=runs_at(Side.SERVER))
    server_to_client_broadcast: Lambda = field(metadata=runs_at(Side.SERVER))
    client_work: Lambda = field(metadata=runs_at(Side.CLIENTS))
    client_to_server_aggregation: Lambda = field(metadata=runs_at(Side.AGGREGATION))
    server_result: Lambda = field(metadata=runs_at(Side.SERVER))

    def _check_connections(self) -> None:
        _check_placement("server_prepare", self.server_prepare, SERVER)
        _check_communicates(
            "server_to_client_broadcast", self.server_to_client_broadcast, "broadcast"
        )
        _check_placement("client_work", self.client_work, CLIENTS)
        _check_communicates(
            "client_to_server_aggregation", self.client_to_server_aggregation, "aggregation"
        )
        _check_placement("server_result", self.server_result, SERVER)
        self._check_types()

    def _check_types(self) -> None:
        state, data = pair(self.type_signature.parameter, "the round", "parameter")
        new_state, output = pair(self.type_signature.result, "the round", "result")
        connect("the state", state, "server_prepare", self.server_prepare.parameter_type)
        sent, temporary = pair(self.server_prepare.type.result, "server_prepare", "result")
        broadcast = self.server_to_client_broadcast.type
        connect("what is sent", sent, "server_to_client_broadcast", broadcast.parameter)
        held, received = pair(self.client_work.parameter_type, "client_work", "parameter")
        connect("clients' data", data, "client_work", held)
        connect("what is received", broadcast.result, "client_work", received)
        aggregation = self.client_to_server_aggregation.type
        beside, collected = pair(aggregation.parameter, "client_to_server_aggregation", "parameter")
        connect("the temporary state", temporary, "client_to_server_aggregation", beside)
        worked = self.client_work.type.result
        connect("client_work's result", worked, "client_to_server_aggregation", collected)
        beside, summed = pair(self.server_result.parameter_type, "server_result", "parameter")
        connect("the temporary state", temporary, "server_result", beside)
        connect("the aggregates", aggregation.result, "server_result", summed)
        found_state, found_output = pair(self.server_result.type.result, "server_result", "result")
        connect("server_result's state", found_state, "the round", new_state)
        connect("server_result's output", found_output, "the round", output)
        connect("the new state", found_state, "the next round", state)

    @staticmethod
    def check_signature(program: Node) -> None:
        # Parts of the output may go without a placement.
        if not all(
            isinstance(part, (TensorType, SequenceType)) or is_placed(part, SERVER)
            for part in distinct_leaves(check_state(program))
        ):
            raise wrong_signature(
                "the output of a round is not placed at the clients",
                program,
                ROUND,
                "aggregate what is at the clients",
                place_of_result(program, 1),
            )

    @classmethod
    def build(
        cls, program: Node, *, allow_impure_duplicates: bool = False
    ) -> DistributeAggregateForm:
        return _DistributeAggregateBuilder(assign_stages(program), allow_impure_duplicates).build()

    def decompile(self) -> Lambda:
        """Return the round that the form computes: its components in sequence."""
        writer = RoundWriter(self.type_signature)
        state, data = Selection(writer.argument, 0), Selection(writer.argument, 1)
        prepared = writer.bind("prepared", Call(self.server_prepare, state))
        sent, temporary = Selection(prepared, 0), Selection(prepared, 1)
        received = writer.bind("received", Call(self.server_to_client_broadcast, sent))
        worked = writer.bind("worked", Call(self.client_work, pack((data, received))))
        collected = Call(self.client_to_server_aggregation, pack((temporary, worked)))
        summed = writer.bind("aggregated", collected)
        return writer.close(Call(self.server_result, pack((temporary, summed))))

    def steps(self, runtime: Runtime) -> DistributeAggregateSteps:
        return DistributeAggregateSteps(self, runtime)


def _check_placement(component: str, node: Lambda, placement: Placement) -> None:
    for inner in walk(node):
        found = inner.type
        if isinstance(found, FederatedType) and found.placement is not placement:
            raise FormError(
                "E505",
                f"{component} runs at {placement} alone, found a value of type `{found}`",
                help=f"keep only values at {placement} in it; what runs elsewhere is "
                "another component of the form",
            )


def _check_communicates(component: str, node: Lambda, kind: str) -> None:
    """Check that a component is a block of operators of one kind, returned in order."""
    block = node.result
    names = [binding.name for binding in block.locals] if isinstance(block, Block) else []
    result = block.result if isinstance(block, Block) else block
    returned = [getattr(value, "name", None) for value in result.children()]
    if not isinstance(result, StructNode) or returned != names:
        raise FormError("E506", f"{component} has to return the results of its operators, in order")
    for binding in block.locals if isinstance(block, Block) else ():
        call = binding.value
        function = call.function if isinstance(call, Call) else None
        definition = definition_of(function.uri) if isinstance(function, Intrinsic) else None
        if definition is None or not getattr(definition, f"is_{kind}"):
            raise FormError(
                "E507",
                f"{component} holds {kind} operators only, found `{binding.value}`",
                help="compute the rest in the components before and after it",
            )


class _DistributeAggregateBuilder:
    """The round at hand and which of its calls run in which component."""

    def __init__(self, program: StagedRound, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.allow_impure_duplicates = allow_impure_duplicates
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        self.aggregations = _by_operator(program.aggregations())
        self.broadcast_names = [call.name for call in self.broadcasts]
        self.aggregate_names = [call.name for call in self.aggregations]
        self.state, self.data = struct(program.type.parameter)
        self.sent = [node for call in self.broadcasts for node in operands(call.call)]
        taken = [node for call in self.aggregations for node in operands(call.call)]
        self.collected = [node for node in taken if placement_of(node.type) is CLIENTS]
        self.parameters = [node for node in taken if placement_of(node.type) is not CLIENTS]
        self.prepared = self._needed([*self.sent, *self.parameters])
        self.worked = self._needed(self.collected, self.broadcast_names)
        self.carried = self._carried()
        self.concluded = self._needed(program.results, [*self.aggregate_names, *self.carried])

    def build(self) -> DistributeAggregateForm:
        self._check_purity()
        return DistributeAggregateForm(
            type_signature=self.round.type,
            server_prepare=self._server_prepare(),
            server_to_client_broadcast=self._broadcast(),
            client_work=self._client_work(),
            client_to_server_aggregation=self._aggregation(),
            server_result=self._server_result(),
        )

    # What runs where.

    def _needed(self, nodes: Iterable[Node], given: Iterable[Use] = ()) -> list[StagedCall]:
        names = [name for node in nodes for name in self.round.uses_of(node)]
        return self.round.needed(names, given)

    def _carried(self) -> dict[Use, Type]:
        """Return the temporary state: what later components use of the state and of the first one's
        calls."""
        prepared = {call.name: call.call.type for call in self.prepared}
        used_later = (*self.parameters, *self.round.results)
        wanted = [name for node in used_later for name in self.round.uses_of(node)]
        for call in self._needed(self.round.results, [*self.aggregate_names, *prepared]):
            wanted += call.uses
        types = {STATE: self.state, **prepared}
        return {name: types[name] for name in wanted if name in types}

    def _check_purity(self) -> None:
        if not self.allow_impure_duplicates:
            purity = Purity(DistributeAggregateForm)
            ran = {
                "server_prepare": self.prepared,
                "client_work": self.worked,
                "server_result": self.concluded,
            }
            for name, calls in ran.items():
                effects = ComponentEffects(name)
                for call in calls:
                    purity.record(effects, call)

    # The components.

    def _server_prepare(self) -> Lambda:
        scope = _ComponentScope(self.round, "server_prepare", self.state)
        scope.parameters(state=scope.argument)
        temporary = [
            scope.argument if isinstance(name, Half) else Reference(name, carried)
            for name, carried in self.carried.items()
        ]
        result = StructNode((pack(self.sent), pack(temporary)), (ARGUMENTS, TEMPORARY))
        return scope.close(self.prepared, result)

    def _broadcast(self) -> Lambda:
        sent = StructType([node.type for node in self.sent])
        scope = _ComponentScope(self.round, "server_to_client_broadcast", sent)
        return scope.communicate(self.broadcasts, _selections(scope.argument))

    def _client_work(self) -> Lambda:
        context = StructType([call.call.type for call in self.broadcasts])
        scope = _ComponentScope(self.round, "client_work", StructType([self.data, context]))
        data, received = _selections(scope.argument)
        scope.parameters(data=data)
        scope.give(self.broadcast_names, _selections(received))
        return scope.close(self.worked, pack(self.collected))

    def _aggregation(self) -> Lambda:
        collected = StructType([node.type for node in self.collected])
        temporary = StructType(list(self.carried.values()))
        parameter = StructType([(None, temporary), (ARGUMENTS, collected)])
        scope = _ComponentScope(self.round, "client_to_server_aggregation", parameter)
        state, values = _selections(scope.argument)
        self._unpack_state(scope, state)
        return scope.communicate(self.aggregations, _selections(values))

    def _server_result(self) -> Lambda:
        temporary = StructType(list(self.carried.values()))
        aggregates = StructType([call.call.type for call in self.aggregations])
        scope = _ComponentScope(self.round, "server_result", StructType([temporary, aggregates]))
        state, results = _selections(scope.argument)
        self._unpack_state(scope, state)
        scope.give(self.aggregate_names, _selections(results))
        names = struct(self.round.type.result).names
        return scope.close(self.concluded, StructNode(self.round.results, names))

    def _unpack_state(self, scope: _ComponentScope, state: Node) -> None:
        whole = None
        for name, part in zip(self.carried, _selections(state), strict=True):
            if isinstance(name, Half):
                whole = part
            else:
                scope.give([name], [part])
        scope.parameters(state=whole)


class _ComponentScope:
    """A component under construction: its parameter, and what the round's names stand for in it."""

    def __init__(self, program: StagedRound, component: str, parameter: Type) -> None:
        self.round = program
        name = f"{component}_arg"
        while name in program.calls:
            name += "_"
        self.argument = Reference(name, parameter)
        self.values: dict[str, Node] = {}

    def parameters(self, state: Node | None = None, data: Node | None = None) -> None:
        """Give the round's parameter; the half that this component does not see stands empty."""
        self.values[self.round.parameter] = pack([state or pack([]), data or pack([])])

    def give(self, names: Iterable[str], values: Iterable[Node]) -> None:
        """Say what the results of calls that ran in other components are called here."""
        self.values.update(zip(names, values, strict=True))

    def close(self, calls: Iterable[StagedCall], result: Node) -> Lambda:
        """Return the component that runs these calls and gives `result`."""
        bindings = (
            Binding(call.name, _substitute(call.call, self.values), call.binding.span)
            for call in calls
        )
        body = Block(tuple(bindings), _substitute(result, self.values))
        return Lambda(self.argument.name, self.argument.type, body)

    def communicate(self, calls: Sequence[StagedCall], moved: Iterable[Node]) -> Lambda:
        """Return the component of these operators only; `moved` are their operands that come in."""
        waiting = iter(moved)
        bindings: list[Binding] = []
        for call in calls:
            given = [
                next(waiting) if _is_moved(call, node) else _substitute(node, self.values)
                for node in operands(call.call)
            ]
            moved_call = Call(call.call.function, with_operands(call.call, given))
            bindings.append(Binding(call.name, moved_call, call.binding.span))
        result = pack([Reference(call.name, call.call.type) for call in calls])
        return Lambda(self.argument.name, self.argument.type, Block(tuple(bindings), result))


def _by_operator(calls: Iterable[StagedCall]) -> list[StagedCall]:
    """Return calls grouped by operator, in the order in which each operator comes first."""
    groups: dict[str, list[StagedCall]] = {}
    for call in calls:
        groups.setdefault(str(call.call.function), []).append(call)
    return [call for group in groups.values() for call in group]


def _is_moved(call: StagedCall, operand: Node) -> bool:
    return call.stage is Stage.BROADCAST or placement_of(operand.type) is CLIENTS


def _selections(node: Node) -> list[Node]:
    return [Selection(node, index) for index in range(len(struct(node.type)))]


def _substitute(root: Node, values: Mapping[str, Node]) -> Node:
    """Return `root` with other terms in place of names; selections from structs are resolved."""

    def rule(node: Node) -> Node | None:
        match node:
            case Reference(name=name) if name in values:
                return values[name]
            case Selection(source=StructNode() as source, index=index):
                return source.values[index]
            case _:
                return None

    return rewrite(root, rule)


class DistributeAggregateSteps(RoundSteps):
    """Every client's work is evaluated by itself."""

    def __init__(self, form: DistributeAggregateForm, runtime: Runtime) -> None:
        self._form = form
        self._evaluate = runtime.evaluate
        self._state, self._data = pair(form.type_signature.parameter, "the round", "parameter")
        self._new_state, self._output = pair(form.type_signature.result, "the round", "result")
        self.state_type = local_type(self._state)
        self.data_type = local_type(self._data)
        self.output_type = local_type(self._output)
        self.aggregations = runtime.aggregations(form.client_to_server_aggregation)
        self.batches = _DistributeAggregateBatches(form, self.aggregations)

    def prepare(self, state: Value) -> tuple[Value, Value]:
        sent, kept = self._evaluate(self._form.server_prepare, _place(state, self._state), 0)
        return kept, self._evaluate(self._form.server_to_client_broadcast, sent, 0)

    def shared(self, kept: Value) -> Value:
        used = _used_of_state(self._form.client_to_server_aggregation)
        return kept if used is None else tuple(p if i in used else None for i, p in enumerate(kept))

    def work(self, data: Value, sent: Value) -> Value:
        return self._evaluate(self._form.client_work, (_place(data, self._data), sent), 1)

    def finish(self, kept: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        state, output = self._evaluate(self._form.server_result, (kept, tuple(reports)), 0)
        return _unplace(state, self._new_state), _unplace(output, self._output)


def _used_of_state(component: Lambda) -> frozenset[int] | None:
    """Return which parts of the temporary state a component takes; None where it may take all."""
    used: set[int] = set()
    for node in walk(component):
        for child in node.children():
            is_state = _is_state(child, component)
            if isinstance(node, Selection):
                used |= {node.index} if is_state else set()
            elif is_state or _is_argument(child, component):
                return None
    return frozenset(used)


def _is_state(node: Node, component: Lambda) -> bool:
    return isinstance(node, Selection) and node.index == 0 and _is_argument(node.source, component)


def _is_argument(node: Node, component: Lambda) -> bool:
    return isinstance(node, Reference) and node.name == component.parameter_name


def _place(value: Value, type: Type) -> Value:
    """Return a value of one client or of the server, as the program's types place it."""
    from tffc.values.concrete import Federated, flatten, unflatten  # NumPy, which only rounds need

    parts = zip(flatten(value, type), leaves(type), strict=True)
    placed = (
        Federated((part,), all_equal=isinstance(leaf, FederatedType) and leaf.all_equal)
        for part, leaf in parts
    )
    return unflatten(placed, type)


def _unplace(value: Value, type: Type) -> Value:
    """Return the value that the server holds; parts of it without a placement are what they are."""
    from tffc.values.concrete import Federated, flatten, unflatten

    parts = flatten(value, type)
    members = (part.members[0] if isinstance(part, Federated) else part for part in parts)
    return unflatten(members, type)


class _DistributeAggregateBatches:
    """See `BatchSteps`: what goes into secure sums is what each client gives by itself."""

    def __init__(
        self, form: DistributeAggregateForm, aggregations: Sequence[AggregationSteps]
    ) -> None:
        self._form = form
        self._aggregations = aggregations
        self._secure = secure_places(form.client_to_server_aggregation)

    def graphs(self) -> ClientGraphs:
        return link_graphs(self._form.client_work, self._form.client_to_server_aggregation)

    def graph_sent(self, sent: Value) -> Value:
        _, received = pair(self._form.client_work.parameter_type, "client_work", "parameter")
        return _unplace(sent, received)

    def graph_accumulator(self, totals: list[Value]) -> Value:
        return tuple(total for at, total in enumerate(totals) if at not in self._secure)

    def totals(
        self, accumulator: Value, given: Sequence[Value], clients: Sequence[str], kept: Value
    ) -> list[Value]:
        plain = iter(accumulator)
        found: list[Value] = []
        for at, aggregation in enumerate(self._aggregations):
            if at not in self._secure:
                found.append(next(plain))
                continue
            place, total = self._secure.index(at), aggregation.zero(kept)
            (sums,) = aggregation.secured(kept)
            for values, client in zip(given, clients, strict=True):
                total = sums.merge(total, sums.contribution(values[place], client))
            found.append(aggregation.with_secure_parts(total, (total,)))
        return found

    def outputs(self, given: Sequence[Value]) -> Sequence[Value]:
        return ()
