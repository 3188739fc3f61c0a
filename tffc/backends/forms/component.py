"""One component of a form under construction: which calls of the round it runs, in which scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tffc.backends.forms.purity import ComponentEffects, Purity
from tffc.backends.forms.stages import StagedCall, StagedRound
from tffc.ir.nodes import Compiled, Node
from tffc.ir.types import Type
from tffc.linking.emit import Emitter
from tffc.linking.operand import Operand


class ComponentEmitter(Emitter):
    """Evaluates local code of a component, in which the ones that weigh values are constants."""

    def ones(self, value: Operand, kind: Type) -> Operand:
        return self.constant_ones(kind)


class ComponentBuilder:
    """A component being linked into one graph.

    The component sees its own parameter; what the round's parameter and the results of calls that
    ran elsewhere stand for in it is given by `scope` and `give`.
    """

    def __init__(
        self, program: StagedRound, name: str, parameter: Type | None, purity: Purity | None
    ) -> None:
        self.round = program
        self.name = name
        self.purity = purity
        self.emitter = ComponentEmitter()
        self.parameter = None if parameter is None else self.emitter.builder.parameter(parameter)
        self.given: set[str] = set()
        self.calls: list[StagedCall] = []

    def scope(self, state: Operand | None = None, data: Operand | None = None) -> None:
        """Bind the round's parameter; the half that this component does not see stands empty."""
        halves = (() if state is None else state, () if data is None else data)
        self.emitter.values[self.round.parameter] = halves

    def give(self, calls: Iterable[StagedCall], values: Operand) -> None:
        """Bind the results of calls that ran in other components to the elements of `values`."""
        for call, value in zip(calls, elements(values), strict=True):
            self.emitter.values[call.name] = value
            self.given.add(call.name)

    def run(self, roots: Iterable[Node]) -> None:
        """Emit the calls that the expressions `roots` need and that have not run."""
        names = [name for node in roots for name in self.round.uses_of(node)]
        calls = self.round.needed(names, self.given)
        self.emitter.emit(call.binding for call in calls)
        self.calls += calls
        self.given.update(call.name for call in calls)

    def compute(self, nodes: Sequence[Node]) -> tuple[Operand, ...]:
        """Emit the calls that expressions need, and return the values of these."""
        self.run(nodes)
        return tuple(map(self.operand, nodes))

    def operand(self, node: Node) -> Operand:
        """Return the value of an expression whose calls have run."""
        return self.emitter.operand(node)

    def finish(self, result: Operand, result_type: Type) -> Compiled:
        """Return the component that gives `result`.

        Raises:
          FormError: something is left in it that must not be repeated, and another component has
            it too.
        """
        builder = self.emitter.builder
        section = builder.finish(result, result_type)
        if self.purity is not None:
            effects = ComponentEffects(self.name, section)
            for call in self.calls:
                made = self.emitter.made[call.name]
                self.purity.record(effects, call, builder.computing[made.start : made.stop])
        return section


def elements(operand: Operand | None) -> tuple[Operand, ...]:
    """Return the elements of an operand that is known to be a struct."""
    assert isinstance(operand, tuple)
    return operand
