"""MapReduceForm: ten local computations.

One round, for state `s` and clients' data `d1 ... dn`:

    c    = prepare(s)
    ui   = work((di, c))                        each: (update, bitwidth, max_input, modulus)
    a    = fold(accumulate, zero(), [ui[0]])    in shards, joined by merge
    r    = report(a)
    b    = sum of ui[1]                         each below 2 ** secure_sum_bitwidth()
    m    = sum of ui[2]                         each at most secure_sum_max_input()
    q    = sum of ui[3] mod secure_modular_sum_modulus()
    s, x = update((s, (r, b, m, q)))

The form is read off the stages of a round: `prepare` computes what is broadcast, `work` what the
clients contribute to every aggregation, the next four components are the aggregations side by side,
and `update` computes the rest.  There is no channel from `prepare` to `update`: server work that
both need is done in both, which is right only if it always gives the same.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tffc.backends.forms.channels import Channel, channels
from tffc.backends.forms.component import ComponentBuilder, elements
from tffc.backends.forms.form import (
    Form,
    Side,
    connect,
    pair,
    parameter,
    runs_at,
    signature,
    struct,
    struct_of,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import (
    ROUND,
    check_state,
    is_placed,
    place_of_result,
    wrong_signature,
)
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound, assign_stages
from tffc.backends.forms.steps import ClientGraphs, RoundSteps, Runtime, Value
from tffc.errors import FormError, TffcError
from tffc.ir.calls import (
    apply,
    by_position,
    describe,
    element,
    members,
    operands,
    pack,
    secure_sum,
    zip_placed,
)
from tffc.ir.nodes import Call, Compiled, Intrinsic, Lambda, Node, Selection
from tffc.ir.traverse import contains
from tffc.ir.type_parts import local_type
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
    at_server,
)
from tffc.linking.aggregations import PLAIN, SECURE
from tffc.linking.builder import GraphBuilder
from tffc.linking.emit import add_place
from tffc.linking.operand import Operand

if TYPE_CHECKING:
    from tffc.backends.forms.secure_sums import SecureSum

BOUNDS = ("secure_sum_bitwidth", "secure_sum_max_input", "secure_modular_sum_modulus")
"""The components that give the bounds of secure sums."""


@dataclass(frozen=True, slots=True)
class MapReduceForm(Form):
    """A round as ten local computations; see the picture at the top of this module.

    `type_signature` is that of the round: `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.
    """

    prepare: Compiled = field(metadata=runs_at(Side.SERVER))
    work: Compiled = field(metadata=runs_at(Side.CLIENTS))
    zero: Compiled = field(metadata=runs_at(Side.AGGREGATION, "every group of clients"))
    accumulate: Compiled = field(metadata=runs_at(Side.AGGREGATION, "every client"))
    merge: Compiled = field(metadata=runs_at(Side.AGGREGATION, "every two groups of clients"))
    report: Compiled = field(metadata=runs_at(Side.AGGREGATION))
    secure_sum_bitwidth: Compiled = field(metadata=runs_at(Side.AGGREGATION))
    secure_sum_max_input: Compiled = field(metadata=runs_at(Side.AGGREGATION))
    secure_modular_sum_modulus: Compiled = field(metadata=runs_at(Side.AGGREGATION))
    update: Compiled = field(metadata=runs_at(Side.SERVER))

    @property
    def bounds(self) -> tuple[Compiled, ...]:
        """Return what gives the bounds of the three secure sums."""
        return tuple(getattr(self, name) for name in BOUNDS)

    @property
    def securely_aggregates_tensors(self) -> bool:
        """Return whether any tensor goes through a secure sum."""
        outputs = struct_of(signature(self.work).result, 4, "work", "result")
        return any(contains(output, TensorType) for output in outputs.types[1:])

    def _check_connections(self) -> None:
        work = signature(self.work)
        data, context = pair(work.parameter, "work", "parameter")
        _, held = pair(self.type_signature.parameter, "the round", "parameter")
        connect("clients' data", local_type(held), "work", data)
        connect("prepare's result", signature(self.prepare).result, "work", context)
        for name in ("zero", *BOUNDS):
            _check_takes_nothing(name, signature(getattr(self, name)))
        outputs = struct_of(work.result, 4, "work", "result")
        self._check_aggregation(outputs[0])
        self._check_update(outputs)

    def _check_aggregation(self, update: Type) -> None:
        zero, accumulate = signature(self.zero).result, signature(self.accumulate)
        accumulator, value = pair(accumulate.parameter, "accumulate", "parameter")
        connect("zero's result", zero, "accumulate", accumulator)
        connect("work's update", update, "accumulate", value)
        connect("accumulate's result", accumulate.result, "accumulate", accumulator)
        merge = signature(self.merge)
        for each in pair(merge.parameter, "merge", "parameter"):
            connect("accumulate's result", accumulate.result, "merge", each)
            connect("merge's result", merge.result, "merge", each)
        connect("merge's result", merge.result, "report", signature(self.report).parameter)

    def _check_update(self, outputs: StructType) -> None:
        state, _ = pair(self.type_signature.parameter, "the round", "parameter")
        state = local_type(state)
        aggregate = (signature(self.report).result, *outputs.types[1:])
        update = signature(self.update)
        argument = StructType([state, StructType(aggregate)])
        connect("state and aggregates", argument, "update", update.parameter)
        new_state, output = pair(update.result, "update", "result")
        connect("the state", state, "prepare", signature(self.prepare).parameter)
        connect("update's new state", new_state, "prepare", signature(self.prepare).parameter)
        _, given = pair(self.type_signature.result, "the round", "result")
        connect("update's output", output, "the round", local_type(given))

    @staticmethod
    def check_signature(program: Node) -> None:
        if not is_placed(check_state(program), SERVER):
            raise wrong_signature(
                "the output of a round is placed at the server",
                program,
                ROUND,
                "aggregate what is at the clients, and place what is nowhere with "
                "tff.federated_value",
                place_of_result(program, 1),
            )

    @classmethod
    def build(cls, program: Node, *, allow_impure_duplicates: bool = False) -> MapReduceForm:
        return _MapReduceBuilder(assign_stages(program), allow_impure_duplicates).build()

    def decompile(self) -> Lambda:
        """Return the round that the form was, or could have been, compiled from.

        Its aggregations are taken apart again wherever the form's graphs keep them apart.
        """
        writer = RoundWriter(self.type_signature)
        state, data = writer.state(), writer.data()
        received = writer.broadcast_each(self.prepare, state)
        worked = writer.bind("work", apply(self.work, zip_placed(pack((data, received)), CLIENTS)))
        aggregations = channels(Channel((), self.zero, self.accumulate, self.merge, self.report))
        plain = [
            writer.bind(f"aggregate_{index}", _aggregate(each, element(worked, 0, *each.path)))
            for index, each in enumerate(aggregations)
        ]
        secure: list[Node] = []
        for position, (uri, bound) in enumerate(zip(SECURE, self.bounds, strict=True), start=1):
            limits = writer.bind(f"{uri}_bounds", Call(bound))
            if not isinstance(limits.type, StructType):
                total = secure_sum(uri, element(worked, position), limits)
                secure.append(writer.bind(f"{uri}_0", total))
                continue
            sums = (
                secure_sum(uri, element(worked, position, index), Selection(limits, index))
                for index in range(len(members(worked, position)))
            )
            secure.append(pack(writer.bind(f"{uri}_{i}", each) for i, each in enumerate(sums)))
        is_joint = any(not each.path for each in aggregations)
        gathered = pack((state, pack((plain[0] if is_joint else pack(plain), *secure))))
        updated = writer.bind("update", apply(self.update, zip_placed(gathered, SERVER)))
        return writer.close(writer.results(updated))

    def steps(self, runtime: Runtime) -> MapReduceSteps:
        return MapReduceSteps(self, runtime)


def _check_takes_nothing(component: str, found: FunctionType) -> None:
    if found.parameter is not None:
        raise FormError("E655", f"{component} takes no argument, found one of type `{found}`")


class _MapReduceBuilder:
    """The round at hand, its channels and their types."""

    def __init__(self, program: StagedRound, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.purity = None if allow_impure_duplicates else Purity(MapReduceForm)
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        calls = program.aggregations()
        self.plain = [(s, PLAIN[_uri(s)](s.call)) for s in calls if _uri(s) in PLAIN]
        self.secure = [[s for s in calls if _uri(s) == uri] for uri in SECURE]
        self.state, self.data = (local_type(each) for each in struct(program.type.parameter))
        self.context = _struct_type(call.call for call in self.broadcasts)
        aggregations = [aggregation for _, aggregation in self.plain]
        self.zero_type = StructType([each.zero_type for each in aggregations])
        self.update_type = StructType([each.update for each in aggregations])
        self.accumulator = StructType([each.accumulator for each in aggregations])
        self.report_type = StructType([each.report_type for each in aggregations])

    def build(self) -> MapReduceForm:
        for call in itertools.chain(*self.secure):
            _check_bound(call)
        accumulator = self.accumulator
        return MapReduceForm(
            type_signature=self.round.type,
            prepare=self._prepare(),
            work=self._work(),
            zero=self._aggregator("zero", self.zero_type),
            accumulate=self._aggregator("accumulate", accumulator, accumulator, self.update_type),
            merge=self._aggregator("merge", accumulator, accumulator, accumulator),
            report=self._aggregator("report", self.report_type, accumulator),
            **{name: self._bound(name, s) for name, s in zip(BOUNDS, self.secure, strict=True)},
            update=self._update(),
        )

    def _component(self, name: str, parameter: Type | None) -> ComponentBuilder:
        return ComponentBuilder(self.round, name, parameter, self.purity)

    def _prepare(self) -> Compiled:
        component = self._component("prepare", self.state)
        component.scope(state=component.parameter)
        sent = [node for call in self.broadcasts for node in operands(call.call)]
        return component.finish(component.compute(sent), self.context)

    def _work(self) -> Compiled:
        component = self._component("work", StructType([self.data, self.context]))
        data, context = elements(component.parameter)
        component.scope(data=data)
        component.give(self.broadcasts, context)
        plain = [node for _, aggregation in self.plain for node in aggregation.values]
        secured = [[operands(s.call)[0] for s in calls] for calls in self.secure]
        component.run(itertools.chain(plain, *secured))
        updates = self._each("contribute", component)
        result = (updates, *map(component.compute, secured))
        return component.finish(result, StructType([self.update_type, *map(_struct_type, secured)]))

    def _aggregator(self, step: str, result: Type, *taken: Type) -> Compiled:
        """Return the component that does one step of all plain aggregations, side by side; it takes
        values of these types."""
        parameter = StructType(list(taken)) if len(taken) > 1 else next(iter(taken), None)
        component = self._component(step, parameter)
        component.run(node for _, each in self.plain for node in each.operands_of(step))
        given = component.parameter
        values = () if given is None else elements(given) if len(taken) > 1 else (given,)
        return component.finish(self._each(step, component, *values), result)

    def _each(
        self, step: str, component: ComponentBuilder, *operands: Operand
    ) -> tuple[Operand, ...]:
        """Return what a step of each plain aggregation gives for its elements of the operands; the
        steps are methods of aggregations."""
        values: list[Operand] = []
        for place, (call, aggregation) in enumerate(self.plain):
            compute: Callable[..., Operand] = getattr(aggregation, step)
            own = (elements(each)[place] for each in operands)
            try:
                values.append(compute(component.emitter, *own))
            except TffcError as error:
                add_place(error, call.binding)
                raise
        return tuple(values)

    def _bound(self, name: str, calls: Sequence[StagedCall]) -> Compiled:
        component = self._component(name, None)
        bounds = [operands(call.call)[1] for call in calls]
        return component.finish(component.compute(bounds), _struct_type(bounds))

    def _update(self) -> Compiled:
        sums = [_struct_type(s.call for s in calls) for calls in self.secure]
        aggregates = StructType([self.report_type, *sums])
        component = self._component("update", StructType([self.state, aggregates]))
        state, received = elements(component.parameter)
        reports, *secured = elements(received)
        component.scope(state=state)
        component.give((call for call, _ in self.plain), self._each("conclude", component, reports))
        for calls, values in zip(self.secure, secured, strict=True):
            component.give(calls, values)
        results = component.compute(self.round.results)
        return component.finish(results, local_type(self.round.type.result))


def _check_bound(call: StagedCall) -> None:
    bound = operands(call.call)[1]
    if contains(bound.type, FederatedType):
        raise FormError(
            "E531",
            f"a bound of `{describe(call.binding)}` depends on the server state",
            notes=("this form has no channel from the server to its secure sums",),
            help="compile to distribute-aggregate, or make the bound a constant",
            span=call.binding.span,
        )


def _uri(call: StagedCall) -> str:
    return "" if call.operator is None else call.operator.uri


def _struct_type(nodes: Iterable[Node]) -> StructType:
    """Return the type of the struct of these values, without their placements."""
    return StructType([local_type(node.type) for node in nodes])


def _aggregate(channel: Channel, value: Node) -> Node:
    """Return the aggregation of clients' values by a channel's four functions."""
    functions = (by_position(channel.accumulate), by_position(channel.merge), channel.report)
    operands = (value, Call(channel.zero), *functions)
    accumulator, _ = pair(signature(channel.accumulate).parameter, "accumulate", "parameter")
    parameter = StructType([value.type, accumulator, *(each.type for each in operands[2:])])
    type_ = FunctionType(parameter, at_server(signature(channel.report).result))
    return Call(Intrinsic("federated_aggregate", type_), pack(operands))


class MapReduceSteps(RoundSteps):
    """All aggregations are one, for the form's graphs carry them out together."""

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        self._form = form
        self._run = runtime.run
        self.state_type = parameter(form.prepare)
        self.data_type = struct(parameter(form.work))[0]
        self.output_type = struct(signature(form.update).result)[1]
        self._aggregation = _MapReduceAggregation(form, runtime)
        self.aggregations = (self._aggregation,)
        self.batches = self._aggregation

    def prepare(self, state: Value) -> tuple[Value, Value]:
        return state, self._run(self._form.prepare, state)

    def work(self, data: Value, sent: Value) -> Value:
        return self._run(self._form.work, (data, sent))

    def work_and_accumulate(
        self, totals: list[Value], data: Value, sent: Value, kept: Value, client: str
    ) -> list[Value]:
        return [self._aggregation.work_and_accumulate(totals[0], data, sent, client)]

    def finish(self, kept: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        state, output = self._run(self._form.update, (kept, reports[0]))
        return state, output


class _MapReduceAggregation:
    """See `AggregationSteps` and `BatchSteps`; an accumulator holds that of the form and three
    secure sums."""

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        # Here, for it loads NumPy, which only rounds need.
        from tffc.backends.forms.secure_sums import SecureSums

        self._form = form
        self._run = runtime.run
        self._secure = SecureSums(
            struct(signature(form.work).result).types[1:],
            form.bounds,
            runtime.run,
            runtime.secure_sum,
        )

    def zero(self, kept: Value) -> Value:
        return self._run(self._form.zero, None), self._secure.zero()

    def accumulate(self, accumulator: Value, update: Value, kept: Value, client: str) -> Value:
        plain, sums = accumulator
        contribution, *secured = update
        sums = self._secure.add(sums, secured, client)
        return self._run(self._form.accumulate, (plain, contribution)), sums

    def work_and_accumulate(
        self, accumulator: Value, data: Value, sent: Value, client: str
    ) -> Value:
        plain, sums = accumulator
        plain, *secured = self._run(self._work_and_accumulate, (plain, (data, sent)))
        return plain, self._secure.add(sums, secured, client)

    @functools.cached_property
    def _work_and_accumulate(self) -> Compiled:
        return link_work_and_accumulate(self._form)

    def graphs(self) -> ClientGraphs:
        return ClientGraphs(self._work_and_accumulate, self._form.merge)

    def graph_sent(self, sent: Value) -> Value:
        return sent

    def graph_accumulator(self, totals: list[Value]) -> Value:
        return totals[0][0]

    def totals(
        self, accumulator: Value, given: Sequence[Value], clients: Sequence[str], kept: Value
    ) -> list[Value]:
        sums = self._secure.zero()
        for values, client in zip(given, clients, strict=True):
            sums = self._secure.add(sums, values, client)
        return [(accumulator, sums)]

    def outputs(self, given: Sequence[Value]) -> Sequence[Value]:
        return ()

    def merge(self, first: Value, second: Value, kept: Value) -> Value:
        plain = self._run(self._form.merge, (first[0], second[0]))
        return plain, self._secure.merge(first[1], second[1])

    def report(self, accumulator: Value, kept: Value) -> Value:
        plain, sums = accumulator
        return self._run(self._form.report, plain), *self._secure.report(sums)

    def secured(self, kept: Value) -> Sequence[SecureSum]:
        return self._secure.each()

    def secure_parts(self, accumulator: Value) -> Sequence[Value]:
        return accumulator[1] if self._secure.each() else ()

    def with_secure_parts(self, accumulator: Value, parts: Sequence[Value]) -> Value:
        return (accumulator[0], tuple(parts)) if self._secure.each() else accumulator


def link_work_and_accumulate(form: MapReduceForm) -> Compiled:
    """Return the section `(<A,<D,C>> -> <A,secure sums>)` that does both for one client.

    A system that sends updates from clients to a server needs the two by themselves.  Where they
    run in one place, one call into TensorFlow takes half as long as two.
    """
    work, accumulate = signature(form.work), signature(form.accumulate)
    accumulator, _ = struct(accumulate.parameter)
    builder = GraphBuilder()
    before, argument = elements(
        builder.parameter(StructType([accumulator, struct(work.parameter)]))
    )
    update, *secured = elements(builder.call(form.work, argument))
    after = builder.call(form.accumulate, (before, update))
    result = StructType([accumulate.result, *struct(work.result).types[1:]])
    return builder.finish((after, *secured), result)
