"""MapReduceForm read off the stages of a round.

`prepare` computes what is broadcast, `work` what the clients contribute to every aggregation, the
next four parts are the aggregations side by side, and `update` computes the rest.  There is no
channel from `prepare` to `update`: server work that both need is done in both, which is right only
if it always gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tffc.backends.aggregations import PLAIN, SECURE, Aggregation, operands
from tffc.backends.emit import Emitter, Section
from tffc.backends.forms import MapReduceForm, local_type
from tffc.backends.purity import is_pure_step
from tffc.backends.stages import Round, Stage, Step, assign_stages, describe
from tffc.errors import FormError
from tffc.graphs.builder import Operand
from tffc.ir.nodes import Compiled, Node
from tffc.ir.types import FederatedType, StructType, Type, contains


def build_mapreduce(program: Node, *, allow_impure_duplicates: bool = False) -> MapReduceForm:
    """The MapReduceForm of a call-dominant program of one round.

    Raises:
      FormError: the program is no round, or one that this form can not express.
    """
    return _Builder(assign_stages(program), allow_impure_duplicates).build()


class _Builder:
    """The round at hand, its channels and their types."""

    def __init__(self, program: Round, allow_impure_duplicates: bool) -> None:
        self.round = program
        self.purity = None if allow_impure_duplicates else _Purity()
        self.broadcasts = program.of_stage(Stage.BROADCAST)
        aggregations = program.of_stage(Stage.AGGREGATE)
        self.plain = {s.name: PLAIN[_uri(s)](s.call) for s in aggregations if _uri(s) in PLAIN}
        self.secure = {uri: [s for s in aggregations if _uri(s) == uri] for uri in SECURE}
        parameter, result = program.type.parameter, program.type.result
        assert isinstance(parameter, StructType)
        assert isinstance(result, StructType)
        self.state, self.data = (local_type(element) for element in parameter)
        self.results = StructType([local_type(element) for element in result])
        self.context = struct(local_type(step.call.type) for step in self.broadcasts)
        self.update_type = struct(a.update for a in self.plain.values())
        self.accumulator = struct(a.accumulator for a in self.plain.values())
        self.report_type = struct(a.report_type for a in self.plain.values())

    def build(self) -> MapReduceForm:
        for step in self.broadcasts:
            if step.operator is None or step.operator.uri != "federated_broadcast":
                raise _no_channel(step)
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
            secure_sum_bitwidth=self._bound(SECURE[0]),
            secure_sum_max_input=self._bound(SECURE[1]),
            secure_modular_sum_modulus=self._bound(SECURE[2]),
            update=self._update(),
        )

    def _prepare(self) -> Compiled:
        section = Section.begin(self.state)
        self._scope(section.emitter, state=section.parameter)
        broadcast = [operand for step in self.broadcasts for operand in step.call.children()[1:]]
        self._emit(section.emitter, "prepare", broadcast)
        values = tuple(section.emitter.operand(node) for node in broadcast)
        return section.finish(values, self.context)

    def _work(self) -> Compiled:
        section = Section.begin(StructType([self.data, self.context]))
        data, context = elements(section.parameter)
        self._scope(section.emitter, data=data)
        given = self._give(section.emitter, self.broadcasts, context)
        secured = [[operands(s.call)[0] for s in steps] for steps in self.secure.values()]
        plain = [node for a in self.plain.values() for node in a.values]
        flat = [*plain, *(node for nodes in secured for node in nodes)]
        self._emit(section.emitter, "work", flat, given)
        result = (
            tuple(a.contribute(section.emitter) for a in self.plain.values()),
            *(tuple(section.emitter.operand(node) for node in nodes) for nodes in secured),
        )
        types = [struct(local_type(node.type) for node in nodes) for nodes in secured]
        return section.finish(result, StructType([self.update_type, *types]))

    def _zero(self) -> Compiled:
        section = self._aggregator("zero", None)
        values = tuple(a.zero(section.emitter) for a in self.plain.values())
        return section.finish(values, struct(a.zero_type for a in self.plain.values()))

    def _accumulate(self) -> Compiled:
        section = self._aggregator("accumulate", StructType([self.accumulator, self.update_type]))
        values = tuple(
            aggregation.accumulate(section.emitter, accumulator, update)
            for aggregation, accumulator, update in self._side_by_side(section)
        )
        return section.finish(values, self.accumulator)

    def _merge(self) -> Compiled:
        section = self._aggregator("merge", StructType([self.accumulator, self.accumulator]))
        values = tuple(
            aggregation.merge(section.emitter, first, second)
            for aggregation, first, second in self._side_by_side(section)
        )
        return section.finish(values, self.accumulator)

    def _side_by_side(self, section: Section) -> Iterable[tuple[Aggregation, Operand, Operand]]:
        first, second = elements(section.parameter)
        return zip(self.plain.values(), elements(first), elements(second), strict=True)

    def _report(self) -> Compiled:
        section = self._aggregator("report", self.accumulator)
        pairs = zip(self.plain.values(), elements(section.parameter), strict=True)
        values = tuple(a.report(section.emitter, value) for a, value in pairs)
        return section.finish(values, self.report_type)

    def _aggregator(self, part: str, parameter: Type | None) -> Section:
        section = Section.begin(parameter)
        captured = [node for a in self.plain.values() for node in a.operands_of(part)]
        self._emit(section.emitter, part, captured)
        return section

    def _bound(self, uri: str) -> Compiled:
        section = Section.begin(None)
        nodes = [operands(step.call)[1] for step in self.secure[uri]]
        self._emit(section.emitter, "the bounds of secure sums", nodes)
        values = tuple(section.emitter.operand(node) for node in nodes)
        return section.finish(values, struct(node.type for node in nodes))

    def _update(self) -> Compiled:
        channels = [struct(local_type(s.call.type) for s in ss) for ss in self.secure.values()]
        aggregate = StructType([self.report_type, *channels])
        section = Section.begin(StructType([self.state, aggregate]))
        state, aggregates = elements(section.parameter)
        reports, *sums = elements(aggregates)
        emitter = section.emitter
        self._scope(emitter, state=state)
        results = [self.round.state, self.round.output]
        given = list(self.plain)
        for steps, values in zip(self.secure.values(), sums, strict=True):
            given += self._give(emitter, steps, values)
        for (name, aggregation), report in zip(self.plain.items(), elements(reports), strict=True):
            emitter.values[name] = aggregation.conclude(emitter, report)
        self._emit(emitter, "update", results, given)
        return section.finish(tuple(emitter.operand(node) for node in results), self.results)

    # Scope.

    def _scope(
        self, emitter: Emitter, state: Operand | None = None, data: Operand | None = None
    ) -> None:
        """Binds the round's parameter; the half that a part does not see stands empty."""
        emitter.values[self.round.parameter] = (
            () if state is None else state,
            () if data is None else data,
        )

    def _give(self, emitter: Emitter, steps: Sequence[Step], values: Operand) -> list[str]:
        for step, value in zip(steps, elements(values), strict=True):
            emitter.values[step.name] = value
        return [step.name for step in steps]

    def _emit(
        self, emitter: Emitter, part: str, roots: Iterable[Node], given: Iterable[str] = ()
    ) -> None:
        names = [name for node in roots for name in self.round.uses_of(node)]
        steps = self.round.needed(names, given)
        if self.purity is not None:
            self.purity.record(part, steps)
        emitter.emit(steps)

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


class _Purity:
    """Which part runs which impure step: none may run in two, or once for every client."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}

    def record(self, part: str, steps: Iterable[Step]) -> None:
        for step in steps:
            if is_pure_step(step):
                continue
            first = self.parts.setdefault(step.name, part)
            repeated = step.stage is Stage.ANYWHERE and part == "work"
            if first != part or repeated:
                raise FormError(
                    "E532",
                    f"`{describe(step.binding)}` does not always give the same, and "
                    + ("every client would run it" if repeated else f"{first} and {part} need it"),
                    notes=("this form has no channel that could carry one result to both",),
                    help="compile to distribute-aggregate, or pass --allow-impure-duplicates",
                    span=step.binding.span,
                )


def _uri(step: Step) -> str:
    return "" if step.operator is None else step.operator.uri


def _no_channel(step: Step) -> FormError:
    return FormError(
        "E530",
        f"`{describe(step.binding)}` can not be part of this form",
        notes=("it sends every client what that client asks for, while `prepare` sends all alike",),
        help="compile to distribute-aggregate",
        span=step.binding.span,
    )


def struct(types: Iterable[Type]) -> StructType:
    """The struct of these types, none of them named."""
    elements = tuple(types)
    return StructType.of((None,) * len(elements), elements)


def elements(operand: Operand | None) -> tuple[Operand, ...]:
    """The elements of an operand that is known to be a struct."""
    assert isinstance(operand, tuple)
    return operand
