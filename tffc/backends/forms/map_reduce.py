"""MapReduceForm: ten local computations.

One round, for state `s` and clients' data `d1 ... dn`:

    c    = prepare(s)
    ui   = work((di, c))                        each: (update, bitwidth, max_input, modulus)
    a    = fold(accumulate, zero(), [ui[0]])    in shards, joined by merge
    r    = report(a)
    b    = sum of ui[1]                         each from 0, below 2 ** secure_sum_bitwidth()
    m    = sum of ui[2]                         each from 0 to secure_sum_max_input()
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from tffc.backends.forms.channels import Channel, channels
from tffc.backends.forms.component import ComponentBuilder, SideBySide, elements, local_struct
from tffc.backends.forms.form import (
    Connection,
    Form,
    Side,
    check_section,
    parameter,
    result_of,
    runs_at,
    signature,
    struct,
    taken_by,
    together,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import ROUND, check_output, check_state
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound
from tffc.backends.forms.steps import (
    BatchSteps,
    ClientGraphs,
    RoundSteps,
    Runtime,
    SecureSumSteps,
    Value,
)
from tffc.language.calls import (
    apply,
    by_position,
    describe,
    element,
    members,
    operands,
    pack,
    secure_sum,
    uri_of,
    zip_placed,
)
from tffc.language.nodes import Call, Compiled, Intrinsic, Lambda, Node, Selection
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import CLIENTS, SERVER, FunctionType, StructType, Type, at_server
from tffc.linking.aggregations import PLAIN, SECURE, Part
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand
from tffc.support.errors import MISSING_PACKAGE, FormError, TffcError

BOUNDS = ("secure_sum_bitwidth", "secure_sum_max_input", "secure_modular_sum_modulus")
"""The components that give the bounds of secure sums."""


@dataclass(frozen=True, slots=True)
class MapReduceForm(Form):
    """A round as ten local computations; see the picture at the top of this module.

    `type_signature` is that of the round: `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.
    """

    work_results: ClassVar[int] = 1 + len(SECURE)
    """The number of elements of the result of `work`."""

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

    def connections(self) -> Iterator[Connection]:
        state, data = self.taken_by_round()
        prepare, work = taken_by("prepare", self.prepare), taken_by("work", self.work)
        accumulate, merge = taken_by("accumulate", self.accumulate), taken_by("merge", self.merge)
        accumulated = result_of("accumulate", self.accumulate)
        merged = result_of("merge", self.merge)
        worked, updated = result_of("work", self.work), result_of("update", self.update)
        size = self.work_results
        aggregates = together(
            result_of("report", self.report), *(worked.element(i, size) for i in (1, 2, 3))
        )
        zero = result_of("zero", self.zero)
        yield Connection("clients' data", data, work.element(0))
        yield Connection("prepare's result", result_of("prepare", self.prepare), work.element(1))
        yield Connection("zero's result", zero, accumulate.element(0))
        yield Connection("work's update", worked.element(0, size), accumulate.element(1))
        yield Connection("accumulate's result", accumulated, accumulate.element(0))
        for group in (0, 1):
            yield Connection("accumulate's result", accumulated, merge.element(group))
            yield Connection("merge's result", merged, merge.element(group))
        yield Connection("merge's result", merged, taken_by("report", self.report))
        gathered = together(state, aggregates)
        yield Connection("state and aggregates", gathered, taken_by("update", self.update))
        yield Connection("the state", state, prepare)
        yield Connection("update's new state", updated.element(0), prepare)
        yield Connection("update's output", updated.element(1), self.results_of_round()[1])

    @property
    def bounds(self) -> tuple[Compiled, ...]:
        """Return the components that give the bounds of the three secure sums."""
        return tuple(getattr(self, name) for name in BOUNDS)

    @property
    def summed(self) -> list[int]:
        """Return the indices of the elements of the result of `work` whose tensors go into secure
        sums."""
        worked = struct(signature(self.work).result).types
        return [index for index in (1, 2, 3) if leaves(worked[index])]

    def _check_component(self, name: str, component: Node) -> None:
        check_section(name, component)
        type = signature(component)
        if name in ("zero", *BOUNDS) and type.parameter is not None:
            raise FormError("E501", f"{name} takes no argument, found one of type `{type}`")

    @staticmethod
    def check_signature(program: Node) -> None:
        check_output(program, check_state(program), ROUND, 1)

    @classmethod
    def build(cls, program: StagedRound, *, allow_impure_duplicates: bool = False) -> Self:
        return cls(**MapReduceBuilder(cls, program, allow_impure_duplicates).parts())

    def decompile(self) -> Lambda:
        """Return the round that the form was, or could have been, compiled from.

        Aggregations that the form's graphs keep apart become separate operators again.
        """
        writer = RoundWriter(self.type_signature)
        state, data = writer.state(), writer.data()
        received = writer.broadcast_each(self.prepare, state)
        worked = writer.bind("work", apply(self.work, zip_placed(pack((data, received)), CLIENTS)))
        aggregations = channels(Channel((), self.zero, self.accumulate, self.merge, self.report))
        plain: list[Node] = []
        for index, aggregation in enumerate(aggregations):
            updates = element(worked, 0, *aggregation.path)
            plain.append(writer.bind(f"aggregate_{index}", _aggregate(aggregation, updates)))
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
            secure.append(pack(writer.bind(f"{uri}_{i}", sum) for i, sum in enumerate(sums)))
        is_joint = any(not aggregation.path for aggregation in aggregations)
        gathered = pack((state, pack((plain[0] if is_joint else pack(plain), *secure))))
        updated = writer.bind("update", apply(self.update, zip_placed(gathered, SERVER)))
        return writer.close(self._written_results(writer, worked, updated))

    def _written_results(self, writer: RoundWriter, worked: Node, updated: Node) -> Node:
        """Return the results of the round from those of `work` and `update`."""
        return writer.results(updated)

    def steps(self, runtime: Runtime) -> MapReduceSteps:
        return MapReduceSteps(self, runtime)


class MapReduceBuilder:
    """The round at hand, its channels and their types; it makes the `parts` of a form."""

    def __init__(
        self, form: type[MapReduceForm], program: StagedRound, allow_impure_duplicates: bool
    ) -> None:
        self.round = program
        self.purity = None if allow_impure_duplicates else Purity(form)
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        calls = program.aggregations()
        self.plain = [s for s in calls if uri_of(s.call) in PLAIN]
        self.secure = [[s for s in calls if uri_of(s.call) == uri] for uri in SECURE]
        self.state, self.data = (local_type(part) for part in struct(program.type.parameter))
        self.together = SideBySide([(s.binding, PLAIN[uri_of(s.call)](s.call)) for s in self.plain])

    def parts(self) -> dict[str, Any]:
        """Return the type of the round and its components, by the names of the form's fields."""
        for call in itertools.chain(*self.secure):
            _check_bound(call)
        together = self.together
        total, update = together.accumulator, together.update
        return {
            "type_signature": self.round.type,
            "prepare": self._prepare(),
            "work": self._work(),
            "zero": self._aggregator("zero", together.zero, together.zero_type),
            "accumulate": self._aggregator("accumulate", together.accumulate, total, total, update),
            "merge": self._aggregator("merge", together.merge, total, total, total),
            "report": self._aggregator("report", together.report, together.report_type, total),
            **{name: self._bound(name, s) for name, s in zip(BOUNDS, self.secure, strict=True)},
            "update": self._update(),
        }

    def _component(self, name: str, *taken: Type) -> ComponentBuilder:
        return ComponentBuilder(self.round, name, taken, self.purity)

    def _prepare(self) -> Compiled:
        component = self._component("prepare", self.state)
        component.scope(state=component.arguments[0])
        return component.finish_struct(self.round.sent)

    def _work(self) -> Compiled:
        context = local_struct(self.round.sent)
        component = self._component("work", self.data, context)
        data, received = component.arguments
        component.scope(data=data)
        component.give(self.broadcasts, received)
        plain = [node for _, aggregation in self.together.members for node in aggregation.values]
        secured = [[operands(s.call)[0] for s in calls] for calls in self.secure]
        kept = self.round.kept
        component.run(itertools.chain(plain, *secured, kept))
        updates = self.together.contribute(component.emitter)
        result = (updates, *map(component.compute, secured), *component.compute(kept))
        types = [self.together.update, *map(local_struct, secured)]
        return component.finish(result, StructType([*types, *(local_type(n.type) for n in kept)]))

    def _aggregator(
        self, name: Part, step: Callable[..., Operand], result: Type, *taken: Type
    ) -> Compiled:
        """Return the component that does one step of all plain aggregations; `taken` are the types
        of its arguments."""
        component = self._component(name, *taken)
        component.run(self.together.operands_of(name))
        return component.finish(step(component.emitter, *component.arguments), result)

    def _bound(self, name: str, calls: Sequence[StagedCall]) -> Compiled:
        return self._component(name).finish_struct([operands(call.call)[1] for call in calls])

    def _update(self) -> Compiled:
        sums = [local_struct(s.call for s in calls) for calls in self.secure]
        aggregates = StructType([self.together.report_type, *sums])
        component = self._component("update", self.state, aggregates)
        state, received = component.arguments
        reports, *secured = elements(received)
        component.scope(state=state)
        component.give(self.plain, self.together.conclude(component.emitter, reports))
        for calls, values in zip(self.secure, secured, strict=True):
            component.give(calls, values)
        results = component.compute(self.round.results)
        return component.finish(results, self.round.results_type)


def _check_bound(call: StagedCall) -> None:
    bound = operands(call.call)[1]
    if bound.type.has_placement:
        raise FormError(
            "E531",
            f"a bound of `{describe(call.binding)}` depends on the server state",
            notes=("this form has no channel from the server to its secure sums",),
            help="compile to distribute-aggregate, or make the bound a constant",
            span=call.binding.span,
        )


def _aggregate(channel: Channel, value: Node) -> Node:
    """Return the aggregation of clients' values by a channel's four functions."""
    functions = (by_position(channel.accumulate), by_position(channel.merge), channel.report)
    operands = (value, Call(channel.zero), *functions)
    accumulator, _ = struct(signature(channel.accumulate).parameter)
    parameter = StructType([value.type, accumulator, *(operand.type for operand in operands[2:])])
    type_ = FunctionType(parameter, at_server(signature(channel.report).result))
    return Call(Intrinsic("federated_aggregate", type_), pack(operands))


class MapReduceSteps(RoundSteps):
    """One aggregation for the form's graphs, and one for each secure sum that adds anything."""

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        self._form = form
        self._runtime = runtime
        self._worked = struct(signature(form.work).result)
        self.state_type = parameter(form.prepare)
        self.data_type, self.sent_type = struct(parameter(form.work))
        self.output_type = struct(signature(form.update).result)[1]
        sums = (_SecureSums(form, runtime, index) for index in form.summed)
        self.aggregations = (_GraphAggregation(form, runtime), *sums)
        self.batches = self._batches = BatchSteps(self.aggregations, lambda: _link_graphs(form))

    def prepare(self, state: Value) -> tuple[Value, Value]:
        return state, self._runtime.run(self._form.prepare, state)

    def work(self, data: Value, sent: Value) -> Value:
        return self._runtime.run(self._form.work, (data, sent))

    def work_and_accumulate(
        self, totals: list[Value], data: Value, sent: Value, carried: Value, client: str
    ) -> tuple[list[Value], Value]:
        before = self._batches.graph_accumulator(totals, carried)
        take = self._batches.graphs().take
        try:
            accumulator, *apart = self._runtime.run(take, (before, (data, sent)))
        except TffcError as error:
            if error.code != MISSING_PACKAGE:
                raise
            # Run one by one, the components that do not need it run, and the error names the other.
            return super().work_and_accumulate(totals, data, sent, carried, client)
        after = self._batches.totals(totals, accumulator, [apart], [client], carried)
        return after, self.client_output(apart)

    def finish(self, carried: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        sums = self._worked.types[1 : 1 + len(SECURE)]
        aggregates = [reports[0], *map(self._runtime.no_sum, sums)]
        for index, total in zip(self._form.summed, reports[1:], strict=True):
            aggregates[index] = total
        state, output = self._runtime.run(self._form.update, (carried, tuple(aggregates)))
        return state, output


class _GraphAggregation:
    """The plain aggregations, which the form's graphs carry out together."""

    def __init__(self, form: MapReduceForm, runtime: Runtime) -> None:
        self._form = form
        self._run = runtime.run
        self.accumulator_type = struct(parameter(form.accumulate))[0]

    def zero(self, carried: Value) -> Value:
        return self._run(self._form.zero, None)

    def accumulate(self, accumulator: Value, update: Value, carried: Value, client: str) -> Value:
        return self._run(self._form.accumulate, (accumulator, update[0]))

    def merge(self, first: Value, second: Value, carried: Value) -> Value:
        return self._run(self._form.merge, (first, second))

    def report(self, accumulator: Value, carried: Value) -> Value:
        return self._run(self._form.report, accumulator)

    def secure_sum(self, carried: Value) -> None:
        return None


class _SecureSums:
    """The secure sums of one operator, which stand at an index of the result of `work`."""

    def __init__(self, form: MapReduceForm, runtime: Runtime, index: int) -> None:
        self._bound = form.bounds[index - 1]
        self._runtime = runtime
        self._index = index
        self._type = struct(signature(form.work).result).types[index]

    @property
    def accumulator_type(self) -> Type:
        return self._type

    @functools.cached_property
    def _sum(self) -> SecureSumSteps:
        limit = self._runtime.run(self._bound, None)
        uri, bound_type = SECURE[self._index - 1], signature(self._bound).result
        return self._runtime.secure_sum(uri, uri, self._type, limit, bound_type)

    def zero(self, carried: Value) -> Value:
        _ = self._sum  # computes the bound now, not within the work of a client
        return self._runtime.no_sum(self._type)

    def accumulate(self, accumulator: Value, update: Value, carried: Value, client: str) -> Value:
        contribution = self._sum.contribution(update[self._index], client)
        return self._sum.merge(accumulator, contribution)

    def merge(self, first: Value, second: Value, carried: Value) -> Value:
        return self._sum.merge(first, second)

    def report(self, accumulator: Value, carried: Value) -> Value:
        return self._sum.report(accumulator)

    def secure_sum(self, carried: Value) -> SecureSumSteps:
        return self._sum


def _link_graphs(form: MapReduceForm) -> ClientGraphs:
    """Return the graphs of a client's work with its accumulation, and of merging.

    A system that sends updates from clients to a server needs work and accumulation as separate
    graphs.  Where both run in one place, one call into TensorFlow takes half as long as two.
    """
    accumulate, worked = signature(form.accumulate), struct(signature(form.work).result)
    totals = StructType([struct(accumulate.parameter)[0]])
    take, merge = GraphBuilder(), GraphBuilder()
    before, argument = elements(take.parameter(StructType([totals, parameter(form.work)])))
    updates = elements(take.call(form.work, argument))
    after = take.call(form.accumulate, (*elements(before), updates[0]))
    apart = [*form.summed, *range(1 + len(SECURE), form.work_results)]
    taken = [StructType([accumulate.result]), *(worked[index] for index in apart)]
    first, second = elements(merge.parameter(StructType([totals, totals])))
    merged = merge.call(form.merge, (*elements(first), *elements(second)))
    return ClientGraphs(
        take.finish(((after,), *(updates[index] for index in apart)), StructType(taken)),
        merge.finish((merged,), StructType([signature(form.merge).result])),
    )
