"""Graphs for forms whose components are programs, so that many clients are computed together.

If the programs and the functions of their aggregations call only sections, these are linked into
two graphs: one of a client's work and its accumulation, and one that merges accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable

from tffc.backends.forms.component import SideBySide, argument_paths, elements
from tffc.backends.forms.form import parameter
from tffc.backends.forms.steps import CannotBatchError, ClientGraphs
from tffc.language.calls import uri_of
from tffc.language.invariants import CALL_DOMINANT
from tffc.language.nodes import Block, Call, Compiled, Lambda
from tffc.language.scope import free_names
from tffc.language.type_parts import local_type
from tffc.language.types import StructType, Type
from tffc.language.verify import first_violation
from tffc.linking.aggregations import PLAIN, Aggregation, Sum
from tffc.linking.attributes import type_attribute
from tffc.linking.emit import Emitter, FunctionValue
from tffc.linking.operand import Operand, Tensor, from_leaves, tensors
from tffc.support.trampoline import Task


def link_programs(work: Lambda, component: Lambda) -> ClientGraphs:
    """Return the graphs of the components `work` and `aggregate`; see `ClientGraphs`.

    Raises:
      CannotBatchError: they call more than sections, or an aggregation uses server values.
      TffcError: no graph can hold them.
    """
    for program in (work, component):
        if first_violation(program, (CALL_DOMINANT,)) is not None:
            raise CannotBatchError("the programs of its form call more than sections")
    bindings = component.result.locals if isinstance(component.result, Block) else ()
    calls = [(binding, binding.value) for binding in bindings if isinstance(binding.value, Call)]
    plain = SideBySide([(b, PLAIN[uri_of(c)](c)) for b, c in calls if uri_of(c) in PLAIN])
    # Contributions to secure sums are returned for each client, not summed.
    secure = SideBySide([(b, Sum(c)) for b, c in calls if uri_of(c) not in PLAIN])
    _check(component, [aggregation for _, aggregation in (*plain.members, *secure.members)])
    return ClientGraphs(_link_take(work, component, plain, secure), _link_merge(plain))


def _check(component: Lambda, aggregations: Iterable[Aggregation]) -> None:
    """Check that aggregations use only clients' contributions, and have a zero."""
    for aggregation in aggregations:
        functions = [*aggregation.operands_of("accumulate"), *aggregation.operands_of("merge")]
        uses = {name for node in functions for name in free_names(node)}
        for value in aggregation.values:
            uses |= free_names(value) - {component.parameter_name}
            if any(path[:1] != (1,) for path in argument_paths(value, component)):
                uses.add(str(component.parameter_name))
        if uses or not aggregation.has_zero:
            what = "uses what only the server has" if uses else "begins with the first client"
            raise CannotBatchError(f"its {uri_of(aggregation.call)} {what}")


def _link_take(work: Lambda, component: Lambda, plain: SideBySide, secure: SideBySide) -> Compiled:
    assert component.parameter_name is not None
    emitter = _WholeEmitter()
    accumulator = plain.accumulator
    type = StructType([accumulator, local_type(parameter(work))])
    totals, argument = elements(emitter.builder.parameter(type))
    emitter.values[component.parameter_name] = ((), emitter.apply(work, argument))
    added = plain.accumulate(emitter, totals, plain.contribute(emitter))
    contributions = elements(secure.contribute(emitter))
    return emitter.finish((added, *contributions), StructType([accumulator, *secure.update]))


def _link_merge(plain: SideBySide) -> Compiled:
    emitter = Emitter()
    accumulator = plain.accumulator
    first, second = elements(emitter.builder.parameter(StructType([accumulator, accumulator])))
    return emitter.builder.finish(plain.merge(emitter, first, second), accumulator)


class _WholeEmitter(Emitter):
    """Evaluates local code into a graph that computes every result of each section, even unused
    ones: they may fail, as they do when sections run one after another."""

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, Tensor] = {}

    def _apply(self, function: FunctionValue, argument: Operand | None) -> Task[Operand]:
        result = yield super()._apply(function, argument)
        if isinstance(function, Compiled):
            self._given.update((tensor.node, tensor) for tensor in tensors(result))
        return result

    def finish(self, result: Operand, type: Type) -> Compiled:
        """Return the section that returns `result` after all sections in it have run."""
        results = tensors(result)
        if not results:
            if self._given:
                raise CannotBatchError("nothing comes of what its clients compute")
            return self.builder.finish(result, type)
        held = results[0]
        waits = [Tensor(f"^{tensor.node}", tensor.type) for tensor in self._given.values()]
        attributes = {"T": type_attribute(held.type)}
        last = self.builder.add("Identity", [held, *waits], attributes, [held.type])
        return self.builder.finish(from_leaves(result, [*last, *results[1:]]), type)
