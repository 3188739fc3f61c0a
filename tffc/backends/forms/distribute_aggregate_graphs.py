"""The clients' part of a DistributeAggregateForm as graphs, for clients that are computed together.

The form has programs where MapReduceForm has graphs.  A program that calls nothing but sections,
and aggregations whose functions do, are linked into one graph of a client's work and its
accumulation, and one that merges.
"""

from __future__ import annotations

from collections.abc import Sequence

from tffc.backends.forms.component import elements
from tffc.backends.forms.steps import CannotBatchError, ClientGraphs
from tffc.ir.calls import uri_of
from tffc.ir.invariants import CALL_DOMINANT
from tffc.ir.nodes import Block, Call, Compiled, Lambda, Node, Reference, Selection
from tffc.ir.scope import free_references
from tffc.ir.trampoline import Task
from tffc.ir.traverse import walk
from tffc.ir.type_parts import local_type
from tffc.ir.types import StructType, Type
from tffc.ir.verify import first_violation
from tffc.linking.aggregations import PLAIN, Aggregation, Sum
from tffc.linking.attributes import type_attribute
from tffc.linking.emit import Emitter, FunctionValue
from tffc.linking.operand import Operand, Tensor, map_tensors, tensors


def secure_places(component: Lambda) -> tuple[int, ...]:
    """Return which aggregations of a component are secure sums."""
    return tuple(at for at, call in enumerate(_calls(component)) if uri_of(call) not in PLAIN)


def link_graphs(work: Lambda, component: Lambda) -> ClientGraphs:
    """Return the graphs of the components that work and aggregate; see `ClientGraphs`.

    Raises:
      CannotBatchError: what they call is not sections alone.
      TffcError: no graph can hold them.
    """
    for each in (work, component):
        if first_violation(each, (CALL_DOMINANT,)) is not None:
            raise CannotBatchError("the programs of its form call more than sections")
    plain = [PLAIN[uri_of(call)](call) for call in _calls(component) if uri_of(call) in PLAIN]
    secure = [Sum(call) for call in _calls(component) if uri_of(call) not in PLAIN]
    _check(component, plain, secure)
    accumulator = StructType([each.accumulator for each in plain])
    take = _link_take(work, component, accumulator, plain, secure)
    return ClientGraphs(take, _link_merge(accumulator, plain))


def _calls(component: Lambda) -> list[Call]:
    """Return the calls of a component that holds aggregations only."""
    bindings = component.result.locals if isinstance(component.result, Block) else ()
    return [binding.value for binding in bindings if isinstance(binding.value, Call)]


def _check(component: Lambda, plain: Sequence[Aggregation], secure: Sequence[Aggregation]) -> None:
    """Check that aggregations take nothing but what clients contribute."""
    for each in (*plain, *secure):
        functions = [*each.operands_of("accumulate"), *each.operands_of("merge")]
        uses = {name for node in functions for name, _ in free_references(node)}
        for value in each.values:
            uses |= {name for name, _ in free_references(value)} - {component.parameter_name}
            if _takes_state(value, component):
                uses.add(str(component.parameter_name))
        if uses or not each.has_zero:
            what = "uses what only the server has" if uses else "begins with the first client"
            raise CannotBatchError(f"its {uri_of(each.call)} {what}")


def _takes_state(node: Node, component: Lambda) -> bool:
    """Return whether an expression takes of a component's argument anything but its second half,
    which clients contribute."""

    def is_argument(each: Node) -> bool:
        return isinstance(each, Reference) and each.name == component.parameter_name

    def parts(each: Node) -> tuple[Node, ...]:
        contributed = isinstance(each, Selection) and each.index == 1 and is_argument(each.source)
        return () if contributed else each.children()

    return any(map(is_argument, walk(node, parts)))


def _link_take(
    work: Lambda,
    component: Lambda,
    accumulator: StructType,
    plain: Sequence[Aggregation],
    secure: Sequence[Aggregation],
) -> Compiled:
    assert work.parameter_type is not None
    assert component.parameter_name is not None
    emitter = _WholeEmitter()
    type = StructType([accumulator, local_type(work.parameter_type)])
    totals, argument = elements(emitter.builder.parameter(type))
    emitter.values[component.parameter_name] = ((), emitter.apply(work, argument))
    added = tuple(
        each.accumulate(emitter, total, each.contribute(emitter))
        for each, total in zip(plain, elements(totals), strict=True)
    )
    given = [each.contribute(emitter) for each in secure]
    result = StructType([accumulator, *(each.update for each in secure)])
    return emitter.finish((added, *given), result)


def _link_merge(accumulator: StructType, plain: Sequence[Aggregation]) -> Compiled:
    emitter = Emitter()
    first, second = elements(emitter.builder.parameter(StructType([accumulator, accumulator])))
    triples = zip(plain, elements(first), elements(second), strict=True)
    merged = tuple(each.merge(emitter, one, other) for each, one, other in triples)
    return emitter.builder.finish(merged, accumulator)


class _WholeEmitter(Emitter):
    """Evaluates local code into a graph that computes all of each section, also what nothing uses,
    for that may fail, as it does where sections run one after another."""

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, Tensor] = {}

    def _apply(self, function: FunctionValue, argument: Operand | None) -> Task[Operand]:
        result = yield super()._apply(function, argument)
        if isinstance(function, Compiled):
            self._given.update((each.node, each) for each in tensors(result))
        return result

    def finish(self, result: Operand, type: Type) -> Compiled:
        """Return the section that gives `result` when all sections in it have run."""
        results = tensors(result)
        if not results:
            if self._given:
                raise CannotBatchError("nothing comes of what its clients compute")
            return self.builder.finish(result, type)
        held = results[0]
        waits = [Tensor(f"^{each.node}", each.type) for each in self._given.values()]
        attributes = {"T": type_attribute(held.type)}
        last = self.builder.add("Identity", [held, *waits], attributes, [held.type])
        given = iter([*last, *results[1:]])
        return self.builder.finish(map_tensors(result, lambda _: next(given)), type)
