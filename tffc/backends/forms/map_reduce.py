"""MapReduceForm read off the stages of a round.

`prepare` computes what is broadcast, `work` what the clients contribute to every aggregation, the
next four parts are the aggregations side by side, and `update` computes the rest.  There is no
channel from `prepare` to `update`: server work that both need is done in both, which is right only
if it always gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tffc.backends.forms.form import MapReduceForm
from tffc.backends.forms.part import Part, elements
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.stages import Round, Stage, Step, assign_stages
from tffc.errors import FormError, TffcError
from tffc.ir.calls import describe, operands
from tffc.ir.nodes import Compiled, Node
from tffc.ir.traverse import contains
from tffc.ir.type_parts import local_type
from tffc.ir.types import FederatedType, StructType, Type
from tffc.linking.aggregations import PLAIN, SECURE
from tffc.linking.emit import add_place
from tffc.linking.operand import Operand


def build_map_reduce_form(program: Node, *, allow_impure_duplicates: bool = False) -> MapReduceForm:
    """The MapReduceForm of a call-dominant program of one round.

    Raises:
      FormError: the program is no round, or one that this form cannot express.
    """
    return _Builder(assign_stages(program), allow_impure_duplicates).build()


class _Builder:
    """The round at hand, its channels and their types."""

    def __init__(self, program: Round, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.purity = None if allow_impure_duplicates else Purity()
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        aggregations = program.aggregations()
        self.plain = {s.name: PLAIN[_uri(s)](s.call) for s in aggregations if _uri(s) in PLAIN}
        self.secure = {uri: [s for s in aggregations if _uri(s) == uri] for uri in SECURE}
        parameter, result = program.type.parameter, program.type.result
        assert isinstance(parameter, StructType)
        self.state, self.data = (local_type(element) for element in parameter)
        self.results = local_type(result)
        self.context = struct(local_type(step.call.type) for step in self.broadcasts)
        self.update_type = struct(a.update for a in self.plain.values())
        self.accumulator = struct(a.accumulator for a in self.plain.values())
        self.report_type = struct(a.report_type for a in self.plain.values())

    def build(self) -> MapReduceForm:
        for steps in self.secure.values():
            for step in steps:
                self._check_bound(step)
        return MapReduceForm(
            type_signature=self.round.type,
            prepare=self._prepare(),
            work=self._work(),
            zero=self._zero(),
            accumulate=self._accumulate(),
            merge=self._merge(),
            report=self._report(),
            secure_sum_bitwidth=self._bound("secure_sum_bitwidth", SECURE[0]),
            secure_sum_max_input=self._bound("secure_sum_max_input", SECURE[1]),
            secure_modular_sum_modulus=self._bound("secure_modular_sum_modulus", SECURE[2]),
            update=self._update(),
        )

    def _part(self, name: str, parameter: Type | None) -> Part:
        return Part(self.round, name, parameter, self.purity)

    def _prepare(self) -> Compiled:
        part = self._part("prepare", self.state)
        part.scope(state=part.parameter)
        sent = [node for step in self.broadcasts for node in operands(step.call)]
        part.run(sent)
        return part.finish(tuple(map(part.operand, sent)), self.context)

    def _work(self) -> Compiled:
        part = self._part("work", StructType([self.data, self.context]))
        data, context = elements(part.parameter)
        part.scope(data=data)
        part.give(self.broadcasts, context)
        secured = [[operands(s.call)[0] for s in steps] for steps in self.secure.values()]
        plain = [node for a in self.plain.values() for node in a.values]
        part.run([*plain, *(node for nodes in secured for node in nodes)])
        result = (
            self._each(lambda a: a.contribute(part.emitter)),
            *(tuple(map(part.operand, nodes)) for nodes in secured),
        )
        types = [struct(local_type(node.type) for node in nodes) for nodes in secured]
        return part.finish(result, StructType([self.update_type, *types]))

    def _zero(self) -> Compiled:
        part = self._aggregator("zero", None)
        values = self._each(lambda a: a.zero(part.emitter))
        return part.finish(values, struct(a.zero_type for a in self.plain.values()))

    def _accumulate(self) -> Compiled:
        part = self._aggregator("accumulate", StructType([self.accumulator, self.update_type]))
        accumulators, updates = elements(part.parameter)
        values = self._each(
            lambda a, accumulator, update: a.accumulate(part.emitter, accumulator, update),
            accumulators,
            updates,
        )
        return part.finish(values, self.accumulator)

    def _merge(self) -> Compiled:
        part = self._aggregator("merge", StructType([self.accumulator, self.accumulator]))
        values = self._each(
            lambda a, first, second: a.merge(part.emitter, first, second),
            *elements(part.parameter),
        )
        return part.finish(values, self.accumulator)

    def _report(self) -> Compiled:
        part = self._aggregator("report", self.accumulator)
        values = self._each(lambda a, value: a.report(part.emitter, value), part.parameter)
        return part.finish(values, self.report_type)

    def _each(self, make: Callable[..., Operand], *operands: Operand | None) -> tuple[Operand, ...]:
        """What `make` gives for each plain aggregation and its elements of the operands."""
        values = []
        for place, (name, aggregation) in enumerate(self.plain.items()):
            try:
                values.append(make(aggregation, *(elements(each)[place] for each in operands)))
            except TffcError as error:
                add_place(error, self.round.steps[name].binding)
                raise
        return tuple(values)

    def _aggregator(self, name: str, parameter: Type | None) -> Part:
        part = self._part(name, parameter)
        part.run(node for a in self.plain.values() for node in a.operands_of(name))
        return part

    def _bound(self, name: str, uri: str) -> Compiled:
        part = self._part(name, None)
        nodes = [operands(step.call)[1] for step in self.secure[uri]]
        part.run(nodes)
        return part.finish(tuple(map(part.operand, nodes)), struct(node.type for node in nodes))

    def _update(self) -> Compiled:
        channels = [struct(local_type(s.call.type) for s in ss) for ss in self.secure.values()]
        aggregate = StructType([self.report_type, *channels])
        part = self._part("update", StructType([self.state, aggregate]))
        state, aggregates = elements(part.parameter)
        reports, *sums = elements(aggregates)
        part.scope(state=state)
        concluded = self._each(lambda a, report: a.conclude(part.emitter, report), reports)
        for name, value in zip(self.plain, concluded, strict=True):
            part.bind(name, value)
        for steps, values in zip(self.secure.values(), sums, strict=True):
            part.give(steps, values)
        part.run(self.round.results)
        return part.finish(tuple(map(part.operand, self.round.results)), self.results)

    def _check_bound(self, step: Step) -> None:
        bound = operands(step.call)[1]
        if contains(bound.type, FederatedType):
            raise FormError(
                "E531",
                f"a bound of `{describe(step.binding)}` depends on the server state",
                notes=("this form has no channel from the server to its secure sums",),
                help="compile to distribute-aggregate, or make the bound a constant",
                span=step.binding.span,
            )


def _uri(step: Step) -> str:
    return "" if step.operator is None else step.operator.uri


def struct(types: Iterable[Type]) -> StructType:
    """The struct of these types, none of them named."""
    elements = tuple(types)
    return StructType.of((None,) * len(elements), elements)
