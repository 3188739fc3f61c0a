"""DistributeAggregateForm read off the stages of a round.

    b, t = server_prepare(s)
    b'   = server_to_client_broadcast(b)
    a    = client_work((d, b'))
    a'   = client_to_server_aggregation((t, a))
    s, x = server_result((t, a'))

The temporary state `t` carries from the first server part to the others what they need: the parts
of the state, what both server parts use (so that nothing is computed twice), and the parameters of
aggregations.  The two communicating parts hold nothing but their operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tffc.backends.forms.form import DistributeAggregateForm
from tffc.backends.forms.purity import Component, Purity
from tffc.backends.forms.stages import (
    STATE,
    Half,
    Round,
    Stage,
    Step,
    Use,
    assign_stages,
    placement_of,
)
from tffc.ir.calls import operands, with_operands
from tffc.ir.nodes import Binding, Block, Call, Lambda, Node, Reference, Selection, Struct
from tffc.ir.traverse import rewrite
from tffc.ir.types import CLIENTS, StructType, Type


def build_distribute_aggregate_form(
    program: Node, *, allow_impure_duplicates: bool = False
) -> DistributeAggregateForm:
    """The DistributeAggregateForm of a call-dominant program of one round.

    Raises:
      FormError: the program is no round, or one that this form cannot express.
    """
    return _Builder(assign_stages(program), allow_impure_duplicates).build()


class _Builder:
    """The round at hand and which of its steps run in which part."""

    def __init__(self, program: Round, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.allow_impure_duplicates = allow_impure_duplicates
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        self.aggregations = by_operator(program.aggregations())
        self.broadcast_names = [step.name for step in self.broadcasts]
        self.aggregate_names = [step.name for step in self.aggregations]
        parameter = program.type.parameter
        assert isinstance(parameter, StructType)
        self.state, self.data = parameter.types
        self.sent = [node for step in self.broadcasts for node in operands(step.call)]
        self.collected = [node for step in self.aggregations for node in self._at_clients(step)]
        self.prepared = self._needed([*self.sent, *self._aggregation_parameters()])
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

    def _needed(self, nodes: Iterable[Node], given: Iterable[Use] = ()) -> list[Step]:
        names = [name for node in nodes for name in self.round.uses_of(node)]
        return self.round.needed(names, given)

    def _at_clients(self, step: Step) -> list[Node]:
        return [node for node in operands(step.call) if placement_of(node.type) is CLIENTS]

    def _aggregation_parameters(self) -> list[Node]:
        return [
            node
            for step in self.aggregations
            for node in operands(step.call)
            if placement_of(node.type) is not CLIENTS
        ]

    def _carried(self) -> dict[Use, Type]:
        """The temporary state: what later parts use of the state and of the first part's steps."""
        prepared = {step.name: step.call.type for step in self.prepared}
        wanted = [name for n in self._aggregation_parameters() for name in self.round.uses_of(n)]
        for node in self.round.results:
            wanted += self.round.uses_of(node)
        for step in self._needed(self.round.results, [*self.aggregate_names, *prepared]):
            wanted += step.uses
        types = {STATE: self.state, **prepared}
        return {name: types[name] for name in wanted if name in types}

    def _check_purity(self) -> None:
        if not self.allow_impure_duplicates:
            purity = Purity()
            parts = {
                "server_prepare": self.prepared,
                "client_work": self.worked,
                "server_result": self.concluded,
            }
            for name, steps in parts.items():
                for step in steps:
                    purity.record(Component(name), step)

    # The parts.

    def _server_prepare(self) -> Lambda:
        scope = _Scope(self, "server_prepare", self.state)
        scope.parameters(state=scope.argument)
        temporary = [
            scope.argument if isinstance(name, Half) else Reference(name, carried)
            for name, carried in self.carried.items()
        ]
        return scope.close(self.prepared, _pack([_pack(self.sent), _pack(temporary)]))

    def _broadcast(self) -> Lambda:
        sent = StructType([node.type for node in self.sent])
        scope = _Scope(self, "server_to_client_broadcast", sent)
        return scope.communicate(self.broadcasts, _selections(scope.argument))

    def _client_work(self) -> Lambda:
        context = StructType([step.call.type for step in self.broadcasts])
        scope = _Scope(self, "client_work", StructType([self.data, context]))
        data, received = _selections(scope.argument)
        scope.parameters(data=data)
        scope.give(self.broadcast_names, _selections(received))
        return scope.close(self.worked, _pack(self.collected))

    def _aggregation(self) -> Lambda:
        collected = StructType([node.type for node in self.collected])
        temporary = StructType(list(self.carried.values()))
        scope = _Scope(self, "client_to_server_aggregation", StructType([temporary, collected]))
        state, values = _selections(scope.argument)
        self._unpack_state(scope, state)
        return scope.communicate(self.aggregations, _selections(values))

    def _server_result(self) -> Lambda:
        temporary = StructType(list(self.carried.values()))
        aggregates = StructType([step.call.type for step in self.aggregations])
        scope = _Scope(self, "server_result", StructType([temporary, aggregates]))
        state, results = _selections(scope.argument)
        self._unpack_state(scope, state)
        scope.give(self.aggregate_names, _selections(results))
        result = self.round.type.result
        assert isinstance(result, StructType)
        return scope.close(self.concluded, Struct(self.round.results, result.names))

    def _unpack_state(self, scope: _Scope, state: Node) -> None:
        whole = None
        for name, part in zip(self.carried, _selections(state), strict=True):
            if isinstance(name, Half):
                whole = part
            else:
                scope.give([name], [part])
        scope.parameters(state=whole)


class _Scope:
    """One part under construction: its parameter and what the round's names stand for in it."""

    def __init__(self, builder: _Builder, part: str, parameter: Type) -> None:
        self.round = builder.round
        name = f"{part}_arg"
        while name in self.round.steps:
            name += "_"
        self.argument = Reference(name, parameter)
        self.values: dict[str, Node] = {}

    def parameters(self, state: Node | None = None, data: Node | None = None) -> None:
        """Gives the round's parameter; the half that this part does not see stands empty."""
        self.values[self.round.parameter] = _pack([state or _pack([]), data or _pack([])])

    def give(self, names: Iterable[str], values: Iterable[Node]) -> None:
        """Says what the results of steps that ran in other parts are called here."""
        self.values.update(zip(names, values, strict=True))

    def close(self, steps: Iterable[Step], result: Node) -> Lambda:
        """The part that runs these steps and returns `result`."""
        bindings = (
            Binding(step.name, substitute(step.call, self.values), step.binding.span)
            for step in steps
        )
        body = Block(tuple(bindings), substitute(result, self.values))
        return Lambda(self.argument.name, self.argument.type, body)

    def communicate(self, steps: Sequence[Step], moved: Iterable[Node]) -> Lambda:
        """The part that holds these operators only; `moved` are their operands that come in."""
        waiting = iter(moved)
        bindings = []
        for step in steps:
            given = [
                next(waiting) if _is_moved(step, node) else substitute(node, self.values)
                for node in operands(step.call)
            ]
            call = Call(step.call.function, with_operands(step.call, given))
            bindings.append(Binding(step.name, call, step.binding.span))
        result = _pack([Reference(step.name, step.call.type) for step in steps])
        return Lambda(self.argument.name, self.argument.type, Block(tuple(bindings), result))


def by_operator(steps: Iterable[Step]) -> list[Step]:
    """Steps grouped by operator, in the order in which each operator comes first."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(str(step.call.function), []).append(step)
    return [step for group in groups.values() for step in group]


def _is_moved(step: Step, operand: Node) -> bool:
    return step.stage is Stage.BROADCAST or placement_of(operand.type) is CLIENTS


def _pack(nodes: Iterable[Node]) -> Struct:
    return Struct(tuple(nodes))


def _selections(node: Node) -> list[Node]:
    assert isinstance(node.type, StructType)
    return [Selection(node, index) for index in range(len(node.type))]


def substitute(root: Node, values: Mapping[str, Node]) -> Node:
    """`root` with other terms in place of names; selections from structs are resolved."""

    def rule(node: Node) -> Node | None:
        match node:
            case Reference(name=name) if name in values:
                return values[name]
            case Selection(source=Struct() as source, index=index):
                return source.values[index]
        return None

    return rewrite(root, rule)
