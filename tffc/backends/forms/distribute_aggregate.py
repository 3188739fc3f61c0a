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

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tffc.backends.forms.component import (
    argument_paths,
    selections,
    substitute,
    without_argument,
)
from tffc.backends.forms.form import (
    Connection,
    Form,
    Side,
    check_lambda,
    parameter,
    result_of,
    runs_at,
    struct,
    taken_by,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import ROUND, check_state, is_placed, wrong_signature
from tffc.backends.forms.stages import (
    STATE,
    Stage,
    StagedCall,
    StagedRound,
    Use,
    operator_of,
    placement_of,
)
from tffc.backends.forms.steps import BatchSteps, RoundSteps, Runtime, Value
from tffc.language.calls import operands, pack, with_operands
from tffc.language.nodes import Binding, Block, Call, Lambda, Node, Reference, Selection, StructNode
from tffc.language.traverse import walk
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.errors import ExecutionError, FormError

ARGUMENTS, TEMPORARY = "intrinsic_args_from_before_comp", "intermediate_state"
"""Names of elements, as in TFF's forms: operands that another component made, and the temporary
state.  Nothing reads these names: elements are selected by position."""

COMMUNICATING = {
    "server_to_client_broadcast": "broadcast",
    "client_to_server_aggregation": "aggregation",
}
"""The components that hold operators only, and the kind of these operators."""


@dataclass(frozen=True, slots=True)
class DistributeAggregateForm(Form):
    """A round as five programs; see the picture at the top of this module."""

    component_class: ClassVar[type[Lambda]] = Lambda

    server_prepare: Lambda = field(metadata=runs_at(Side.SERVER))
    server_to_client_broadcast: Lambda = field(metadata=runs_at(Side.SERVER))
    client_work: Lambda = field(metadata=runs_at(Side.CLIENTS))
    client_to_server_aggregation: Lambda = field(metadata=runs_at(Side.AGGREGATION))
    server_result: Lambda = field(metadata=runs_at(Side.SERVER))

    def connections(self) -> Iterator[Connection]:
        state, data = self.taken_by_round()
        prepared = result_of("server_prepare", self.server_prepare)
        broadcast = self.server_to_client_broadcast
        received = result_of("server_to_client_broadcast", broadcast)
        work = taken_by("client_work", self.client_work)
        worked = result_of("client_work", self.client_work)
        collected = self.client_to_server_aggregation
        aggregation = taken_by("client_to_server_aggregation", collected)
        aggregates = result_of("client_to_server_aggregation", collected)
        conclusion = taken_by("server_result", self.server_result)
        concluded = result_of("server_result", self.server_result)
        new_state, output = self.results_of_round()
        yield Connection("the state", state, taken_by("server_prepare", self.server_prepare))
        sent = taken_by("server_to_client_broadcast", broadcast)
        yield Connection("what is sent", prepared.element(0), sent)
        yield Connection("clients' data", data, work.element(0))
        yield Connection("what is received", received, work.element(1))
        yield Connection("the temporary state", prepared.element(1), aggregation.element(0))
        yield Connection("client_work's result", worked, aggregation.element(1))
        yield Connection("the temporary state", prepared.element(1), conclusion.element(0))
        yield Connection("the aggregates", aggregates, conclusion.element(1))
        yield Connection("server_result's state", concluded.element(0), new_state)
        yield Connection("server_result's output", concluded.element(1), output)
        yield Connection("the new state", concluded.element(0), state)

    def _check_component(self, name: str, component: Node) -> None:
        program = check_lambda(name, component)
        if name in COMMUNICATING:
            _check_communicates(name, program, COMMUNICATING[name])
        else:
            _check_placement(name, program, CLIENTS if name == "client_work" else SERVER)

    @staticmethod
    def check_signature(program: Node) -> None:
        # Parts of the output may go without a placement.
        if not all(
            isinstance(part, (TensorType, SequenceType)) or is_placed(part, SERVER)
            for part in distinct_leaves(check_state(program))
        ):
            rule = "the output of a round is not placed at the clients"
            help = "aggregate what is at the clients"
            raise wrong_signature(rule, program, ROUND, help, at=(1,))

    @classmethod
    def build(
        cls, program: StagedRound, *, allow_impure_duplicates: bool = False
    ) -> DistributeAggregateForm:
        purity = None if allow_impure_duplicates else Purity(cls)
        return _DistributeAggregateBuilder(program, purity).build()

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
        type = inner.type
        if isinstance(type, FederatedType) and type.placement is not placement:
            raise FormError(
                "E501",
                f"{component} runs at {placement} alone, found a value of type `{type}`",
                help=f"keep only values at {placement} in it; what runs elsewhere is "
                "another component of the form",
            )


def _check_communicates(component: str, node: Lambda, kind: str) -> None:
    """Check that a component is a block of operators of one kind, returned in order."""
    body = node.result
    bindings, result = (body.locals, body.result) if isinstance(body, Block) else ((), body)
    returned = [getattr(value, "name", None) for value in result.children()]
    if not isinstance(result, StructNode) or returned != [binding.name for binding in bindings]:
        raise FormError("E501", f"{component} has to return the results of its operators, in order")
    for binding in bindings:
        if not getattr(operator_of(binding.value), f"is_{kind}", False):
            raise FormError(
                "E501",
                f"{component} holds {kind} operators only, found `{binding.value}`",
                help="compute the rest in the components before and after it",
            )


class _DistributeAggregateBuilder:
    """The round at hand, what its aggregations take, and the temporary state."""

    def __init__(self, program: StagedRound, purity: Purity | None) -> None:
        self.round = program
        self.purity = purity
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        self.aggregations = _by_operator(program.aggregations())
        self.state, self.data = struct(program.type.parameter)
        self.sent = program.sent
        taken = [node for call in self.aggregations for node in operands(call.call)]
        self.collected = [node for node in taken if placement_of(node.type) is CLIENTS]
        self.parameters = [node for node in taken if placement_of(node.type) is not CLIENTS]
        self.carried = self._carried()
        self.temporary = _type_of(self.carried.values())

    def _carried(self) -> dict[Use, Node]:
        """Return the temporary state: the parts of the state, and the results of `server_prepare`,
        that later components use."""
        argument = Reference(self.round.parameter, StructType([self.state, self.data]))
        prepared: dict[Use, Node] = {STATE: Selection(argument, 0)}
        for call in self.round.needed([*self.sent, *self.parameters]):
            prepared[call.name] = Reference(call.name, call.call.type)
        known = [*prepared, *(call.name for call in self.aggregations)]
        later = self.round.needed(self.round.results, known)
        nodes = (*self.parameters, *self.round.results)
        wanted = [*map(self.round.uses_of, nodes), *(call.uses for call in later)]
        return {use: prepared[use] for uses in wanted for use in uses if use in prepared}

    def build(self) -> DistributeAggregateForm:
        return DistributeAggregateForm(
            type_signature=self.round.type,
            server_prepare=self._server_prepare(),
            server_to_client_broadcast=self._broadcast(),
            client_work=self._client_work(),
            client_to_server_aggregation=self._aggregation(),
            server_result=self._server_result(),
        )

    def _server_prepare(self) -> Lambda:
        component = _ProgramBuilder(self.round, "server_prepare", self.state, self.purity)
        component.scope(state=component.parameter)
        passed = (pack(self.sent), pack(self.carried.values()))
        return component.finish(StructNode(passed, (ARGUMENTS, TEMPORARY)))

    def _broadcast(self) -> Lambda:
        sent = _type_of(self.sent)
        component = _ProgramBuilder(self.round, "server_to_client_broadcast", sent)
        return component.communicate(self.broadcasts, selections(component.parameter))

    def _client_work(self) -> Lambda:
        context = _type_of(call.call for call in self.broadcasts)
        taken = StructType([self.data, context])
        component = _ProgramBuilder(self.round, "client_work", taken, self.purity)
        data, received = selections(component.parameter)
        component.scope(data=data)
        component.give(self.broadcasts, selections(received))
        return component.finish(pack(self.collected))

    def _aggregation(self) -> Lambda:
        collected = (ARGUMENTS, _type_of(self.collected))
        taken = StructType([(None, self.temporary), collected])
        component = _ProgramBuilder(self.round, "client_to_server_aggregation", taken)
        state, values = selections(component.parameter)
        self._unpack(component, state)
        return component.communicate(self.aggregations, selections(values))

    def _server_result(self) -> Lambda:
        aggregates = _type_of(call.call for call in self.aggregations)
        taken = StructType([self.temporary, aggregates])
        component = _ProgramBuilder(self.round, "server_result", taken, self.purity)
        state, results = selections(component.parameter)
        self._unpack(component, state)
        component.give(self.aggregations, selections(results))
        names = struct(self.round.type.result).names
        return component.finish(StructNode(self.round.results, names))

    def _unpack(self, component: _ProgramBuilder, state: Node) -> None:
        parts = dict(zip(self.carried, selections(state), strict=True))
        component.scope(state=parts.pop(STATE, None))
        calls = [self.round.calls[name] for name in parts if isinstance(name, str)]
        component.give(calls, parts.values())


class _ProgramBuilder:
    """A component under construction: its parameter, and what the round's names stand for in it."""

    def __init__(
        self, program: StagedRound, name: str, parameter: Type, purity: Purity | None = None
    ) -> None:
        self.round = program
        self.name = name
        self.purity = purity
        argument = f"{name}_arg"
        while argument in program.calls:
            argument += "_"
        self.parameter = Reference(argument, parameter)
        self.values: dict[str, Node] = {}

    def scope(self, state: Node | None = None, data: Node | None = None) -> None:
        """Bind the round's parameter; the half that this component does not see stands empty."""
        self.values[self.round.parameter] = pack([state or pack([]), data or pack([])])

    def give(self, calls: Iterable[StagedCall], values: Iterable[Node]) -> None:
        """Bind the results of calls that ran in other components."""
        self.values.update(zip((call.name for call in calls), values, strict=True))

    def finish(self, result: Node) -> Lambda:
        """Return the component that runs the calls which `result` needs, and gives it."""
        calls = self.round.needed([result], self.values)
        if self.purity is not None:
            for call in calls:
                self.purity.record(self.name, call)
        bindings = (
            Binding(call.name, substitute(call.call, self.values), call.binding.span)
            for call in calls
        )
        body = Block(tuple(bindings), substitute(result, self.values))
        return Lambda(self.parameter.name, self.parameter.type, body)

    def communicate(self, calls: Sequence[StagedCall], moved: Iterable[Node]) -> Lambda:
        """Return the component that holds these operators only; `moved` are the operands that other
        components computed."""
        waiting = iter(moved)
        bindings: list[Binding] = []
        for call in calls:
            arguments = [
                next(waiting) if _is_moved(call, node) else substitute(node, self.values)
                for node in operands(call.call)
            ]
            moved_call = Call(call.call.function, with_operands(call.call, arguments))
            bindings.append(Binding(call.name, moved_call, call.binding.span))
        result = pack([Reference(call.name, call.call.type) for call in calls])
        return Lambda(self.parameter.name, self.parameter.type, Block(tuple(bindings), result))


def _by_operator(calls: Iterable[StagedCall]) -> list[StagedCall]:
    """Return calls grouped by operator, in the order in which each operator comes first."""
    groups: dict[str, list[StagedCall]] = {}
    for call in calls:
        groups.setdefault(str(call.call.function), []).append(call)
    return [call for group in groups.values() for call in group]


def _is_moved(call: StagedCall, operand: Node) -> bool:
    return call.stage is Stage.BROADCAST or placement_of(operand.type) is CLIENTS


def _type_of(nodes: Iterable[Node]) -> StructType:
    return StructType([node.type for node in nodes])


class DistributeAggregateSteps(RoundSteps):
    """The work of each client is evaluated alone."""

    def __init__(self, form: DistributeAggregateForm, runtime: Runtime) -> None:
        self._form = form
        self._evaluate = runtime.evaluate
        self._placed, self._unplaced = runtime.placed, runtime.unplaced
        self._worked_on = parameter(form.client_work)
        self._state, data = struct(form.type_signature.parameter)
        self._new_state, self._output = struct(form.type_signature.result)
        self.state_type = local_type(self._state)
        self.data_type = local_type(data)
        self.sent_type = local_type(form.server_to_client_broadcast.type.result)
        self.output_type = local_type(self._output)
        self.aggregations = runtime.aggregations(form.client_to_server_aggregation)
        programs = form.client_work, form.client_to_server_aggregation
        self.batches = BatchSteps(self.aggregations, lambda: runtime.link(*programs))

    def prepare(self, state: Value) -> tuple[Value, Value]:
        sent, carried = self._evaluate(
            self._form.server_prepare, self._placed(state, self._state), 0
        )
        received = self._evaluate(self._form.server_to_client_broadcast, sent, 0)
        return carried, self._unplaced(received, self._form.server_to_client_broadcast.type.result)

    def shared(self, carried: Value) -> Value:
        places = self._shared_places()
        if places is None:
            return carried
        return tuple(part if at in places else None for at, part in enumerate(carried))

    def _shared_places(self) -> set[int] | None:
        """Return which parts of what the server keeps the aggregations need, None for all."""
        component = self._form.client_to_server_aggregation
        paths = argument_paths(component, component)
        if not paths.isdisjoint({(), (0,)}):
            return None
        return {at for half, at in paths if half == 0}

    def parameters(self) -> Value:
        return self._parameters

    @functools.cached_property
    def _parameters(self) -> Value:
        component, places = self._form.server_prepare, self._shared_places()
        body = component.result
        result = body.result if isinstance(body, Block) else body
        carried = result.values[1] if isinstance(result, StructNode) else result
        own = None
        if places is not None and isinstance(carried, StructNode):
            wanted = [node for at, node in enumerate(carried.values) if at in places]
            own = without_argument(wanted, component)
        if own is None or places is None or not isinstance(carried, StructNode):
            raise ExecutionError(
                "E775",
                "what the aggregations take besides clients' values is not known without the "
                "server's state",
                help="compile the program again, or to a MapReduceForm",
            )
        values = iter(self._evaluate(own, None, 0))
        return tuple(next(values) if at in places else None for at in range(len(carried.values)))

    def work(self, data: Value, sent: Value) -> Value:
        return self._evaluate(
            self._form.client_work, self._placed((data, sent), self._worked_on), 1
        )

    def finish(self, carried: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        state, output = self._evaluate(self._form.server_result, (carried, tuple(reports)), 0)
        return self._unplaced(state, self._new_state), self._unplaced(output, self._output)
