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
from typing import Any

from tffc.backends.forms.channels import Channel, channels
from tffc.backends.forms.component import ComponentBuilder, elements
from tffc.backends.forms.form import Form, Side, connect, pair, runs_at, signature, struct_of
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.secure_sums import SecureSums
from tffc.backends.forms.signatures import (
    ROUND,
    check_state,
    is_placed,
    place_of_result,
    wrong_signature,
)
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound, assign_stages
from tffc.backends.forms.steps import Runtime, parameter, struct
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
        return (
            self.secure_sum_bitwidth,
            self.secure_sum_max_input,
            self.secure_modular_sum_modulus,
        )

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


def _check_takes_nothing(component: str, found: FunctionType) -> None:
    if found.parameter is not None:
        raise FormError("E655", f"{component} takes no argument, found one of type `{found}`")


def check_signature(program: Node) -> None:
    """Check that a program is of the type `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.

    Raises:
      FormError: it is not, naming the first part of it that differs.
    """
    output = check_state(program)
    if not is_placed(output, SERVER):
        raise wrong_signature(
            "the output of a round is placed at the server",
            program,
            ROUND,
            "aggregate what is at the clients, and place what is nowhere with tff.federated_value",
            place_of_result(program, 1),
        )


def build(program: Node, *, allow_impure_duplicates: bool = False) -> MapReduceForm:
    """Return the MapReduceForm of a call-dominant program of one round.

    Raises:
      FormError: the program is not a round, or one that this form cannot express.
    """
    return _MapReduceBuilder(assign_stages(program), allow_impure_duplicates).build()


class _MapReduceBuilder:
    """The round at hand, its channels and their types."""

    def __init__(self, program: StagedRound, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.purity = None if allow_impure_duplicates else Purity(MapReduceForm)
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        aggregations = program.aggregations()
        self.plain = {s.name: PLAIN[_uri(s)](s.call) for s in aggregations if _uri(s) in PLAIN}
        self.secure = {uri: [s for s in aggregations if _uri(s) == uri] for uri in SECURE}
        self.state, self.data = (local_type(each) for each in struct(program.type.parameter))
        self.results = local_type(program.type.result)
        self.context = struct_type(local_type(call.call.type) for call in self.broadcasts)
        self.update_type = struct_type(a.update for a in self.plain.values())
        self.accumulator = struct_type(a.accumulator for a in self.plain.values())
        self.report_type = struct_type(a.report_type for a in self.plain.values())

    def build(self) -> MapReduceForm:
        for call in itertools.chain(*self.secure.values()):
            _check_bound(call)
        return MapReduceForm(
            type_signature=self.round.type,
            prepare=self._prepare(),
            work=self._work(),
            zero=self._zero(),
            accumulate=self._accumulate(),
            merge=self._merge(),
            report=self._report(),
            **{name: self._bound(name, uri) for name, uri in zip(BOUNDS, SECURE, strict=True)},
            update=self._update(),
        )

    def _component(self, name: str, parameter: Type | None) -> ComponentBuilder:
        return ComponentBuilder(self.round, name, parameter, self.purity)

    def _prepare(self) -> Compiled:
        component = self._component("prepare", self.state)
        component.scope(state=component.parameter)
        sent = [node for call in self.broadcasts for node in operands(call.call)]
        component.run(sent)
        return component.finish(tuple(map(component.operand, sent)), self.context)

    def _work(self) -> Compiled:
        component = self._component("work", StructType([self.data, self.context]))
        data, context = elements(component.parameter)
        component.scope(data=data)
        component.give(self.broadcasts, context)
        secured = [[operands(s.call)[0] for s in calls] for calls in self.secure.values()]
        plain = [node for a in self.plain.values() for node in a.values]
        component.run([*plain, *(node for nodes in secured for node in nodes)])
        result = (
            self._each(lambda a: a.contribute(component.emitter)),
            *(tuple(map(component.operand, nodes)) for nodes in secured),
        )
        types = [struct_type(local_type(node.type) for node in nodes) for nodes in secured]
        return component.finish(result, StructType([self.update_type, *types]))

    def _zero(self) -> Compiled:
        component = self._aggregator("zero", None)
        values = self._each(lambda a: a.zero(component.emitter))
        return component.finish(values, struct_type(a.zero_type for a in self.plain.values()))

    def _accumulate(self) -> Compiled:
        component = self._aggregator("accumulate", StructType([self.accumulator, self.update_type]))
        accumulators, updates = elements(component.parameter)
        values = self._each(
            lambda a, accumulator, update: a.accumulate(component.emitter, accumulator, update),
            accumulators,
            updates,
        )
        return component.finish(values, self.accumulator)

    def _merge(self) -> Compiled:
        component = self._aggregator("merge", StructType([self.accumulator, self.accumulator]))
        values = self._each(
            lambda a, first, second: a.merge(component.emitter, first, second),
            *elements(component.parameter),
        )
        return component.finish(values, self.accumulator)

    def _report(self) -> Compiled:
        component = self._aggregator("report", self.accumulator)
        values = self._each(
            lambda a, value: a.report(component.emitter, value), component.parameter
        )
        return component.finish(values, self.report_type)

    def _each(self, make: Callable[..., Operand], *operands: Operand | None) -> tuple[Operand, ...]:
        """Return what `make` gives for each plain aggregation and its elements of the operands."""
        values = []
        for place, (name, aggregation) in enumerate(self.plain.items()):
            try:
                values.append(make(aggregation, *(elements(each)[place] for each in operands)))
            except TffcError as error:
                add_place(error, self.round.calls[name].binding)
                raise
        return tuple(values)

    def _aggregator(self, name: str, parameter: Type | None) -> ComponentBuilder:
        component = self._component(name, parameter)
        component.run(node for a in self.plain.values() for node in a.operands_of(name))
        return component

    def _bound(self, name: str, uri: str) -> Compiled:
        component = self._component(name, None)
        nodes = [operands(call.call)[1] for call in self.secure[uri]]
        component.run(nodes)
        return component.finish(
            tuple(map(component.operand, nodes)), struct_type(node.type for node in nodes)
        )

    def _update(self) -> Compiled:
        channels = [struct_type(local_type(s.call.type) for s in ss) for ss in self.secure.values()]
        aggregate = StructType([self.report_type, *channels])
        component = self._component("update", StructType([self.state, aggregate]))
        state, aggregates = elements(component.parameter)
        reports, *sums = elements(aggregates)
        component.scope(state=state)
        concluded = self._each(lambda a, report: a.conclude(component.emitter, report), reports)
        for name, value in zip(self.plain, concluded, strict=True):
            component.bind(name, value)
        for calls, values in zip(self.secure.values(), sums, strict=True):
            component.give(calls, values)
        component.run(self.round.results)
        return component.finish(tuple(map(component.operand, self.round.results)), self.results)


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


def struct_type(types: Iterable[Type]) -> StructType:
    """Return the struct of these types, none of them named."""
    elements = tuple(types)
    return StructType.of((None,) * len(elements), elements)


def decompile(form: MapReduceForm) -> Lambda:
    """Return the round that a MapReduceForm computes.

    Its aggregations are taken apart again wherever the form's graphs keep them apart.
    """
    writer = RoundWriter(form.type_signature)
    state, data = writer.state(), writer.data()
    received = writer.broadcast_each(form.prepare, state)
    worked = writer.bind("work", apply(form.work, zip_placed(pack((data, received)), CLIENTS)))
    aggregations = channels(Channel((), form.zero, form.accumulate, form.merge, form.report))
    plain = [
        writer.bind(f"aggregate_{index}", _aggregate(each, element(worked, 0, *each.path)))
        for index, each in enumerate(aggregations)
    ]
    secure: list[Node] = []
    for position, (uri, bound) in enumerate(zip(SECURE, form.bounds, strict=True), start=1):
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
    updated = writer.bind("update", apply(form.update, zip_placed(gathered, SERVER)))
    return writer.close(writer.results(updated))


def _aggregate(channel: Channel, value: Node) -> Node:
    """Return the aggregation of clients' values by a channel's four functions."""
    functions = (by_position(channel.accumulate), by_position(channel.merge), channel.report)
    operands = (value, Call(channel.zero), *functions)
    accumulator, _ = pair(signature(channel.accumulate).parameter, "accumulate", "parameter")
    parameter = StructType([value.type, accumulator, *(each.type for each in operands[2:])])
    type_ = FunctionType(parameter, at_server(signature(channel.report).result))
    return Call(Intrinsic("federated_aggregate", type_), pack(operands))


class MapReduceSteps:
    """See `RoundSteps`."""

    client_output_type = None

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        self._form = form
        self._run = runtime.run
        self.state_type = parameter(form.prepare)
        self.data_type = struct(parameter(form.work))[0]
        self.output_type = struct(signature(form.update).result)[1]
        self._aggregation = _MapReduceAggregation(form, runtime)
        self.aggregations = (self._aggregation,)

    def prepare(self, state: Any) -> tuple[Any, Any]:
        return state, self._run(self._form.prepare, state)

    def work(self, data: Any, sent: Any) -> Any:
        return self._run(self._form.work, (data, sent))

    def work_and_accumulate(
        self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str
    ) -> list[Any]:
        return [self._aggregation.work_and_accumulate(totals[0], data, sent, client)]

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        state, output = self._run(self._form.update, (kept, reports[0]))
        return state, output


class _MapReduceAggregation:
    """See `AggregationSteps`; an accumulator holds that of the form and three secure sums."""

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        self._form = form
        self._run = runtime.run
        self._secure = SecureSums(
            struct(signature(form.work).result).types[1:], form.bounds, runtime
        )

    def zero(self, kept: Any) -> Any:
        return self._run(self._form.zero, None), self._secure.zero()

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        plain, sums = accumulator
        contribution, *secured = update
        sums = self._secure.add(sums, secured, client)
        return self._run(self._form.accumulate, (plain, contribution)), sums

    def work_and_accumulate(self, accumulator: Any, data: Any, sent: Any, client: str) -> Any:
        plain, sums = accumulator
        plain, *secured = self._run(self._work_and_accumulate, (plain, (data, sent)))
        return plain, self._secure.add(sums, secured, client)

    @functools.cached_property
    def _work_and_accumulate(self) -> Compiled:
        return link_work_and_accumulate(self._form)

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        plain = self._run(self._form.merge, (first[0], second[0]))
        return plain, self._secure.merge(first[1], second[1])

    def report(self, accumulator: Any, kept: Any) -> Any:
        plain, sums = accumulator
        return self._run(self._form.report, plain), *sums


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


FORM = MapReduceForm
OUTPUT = SERVER
STEPS = MapReduceSteps
