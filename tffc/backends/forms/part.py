"""One part of a form under construction: which steps of the round it runs, in which scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tffc.backends.forms.purity import Component, Purity
from tffc.backends.forms.stages import Round, Step
from tffc.ir.nodes import Compiled, Node
from tffc.ir.types import Type
from tffc.linking import arithmetic
from tffc.linking.emit import Emitter
from tffc.linking.operand import Operand


class PartEmitter(Emitter):
    """Evaluates local code of a component, in which the ones that weigh values are constants."""

    def ones(self, value: Operand, kind: Type) -> Operand:
        return arithmetic.ones(self.builder, kind)


class Part:
    """A component being linked into one graph.

    The part sees its own parameter; what the round's parameter and the results of steps that ran
    elsewhere stand for in it is given by `scope` and `give`.
    """

    def __init__(
        self, program: Round, name: str, parameter: Type | None, purity: Purity | None
    ) -> None:
        self.round = program
        self.name = name
        self.purity = purity
        self.emitter = PartEmitter()
        self.parameter = None if parameter is None else self.emitter.builder.parameter(parameter)
        self.given: set[str] = set()
        self.steps: list[Step] = []

    def scope(self, state: Operand | None = None, data: Operand | None = None) -> None:
        """Binds the round's parameter; the half that this part does not see stands empty."""
        halves = (() if state is None else state, () if data is None else data)
        self.emitter.values[self.round.parameter] = halves

    def give(self, steps: Sequence[Step], values: Operand) -> None:
        """Binds the results of steps that ran in other parts to the elements of `values`."""
        for step, value in zip(steps, elements(values), strict=True):
            self.bind(step.name, value)

    def bind(self, name: str, value: Operand) -> None:
        """Binds the result of one step that ran in another part."""
        self.emitter.values[name] = value
        self.given.add(name)

    def run(self, roots: Iterable[Node]) -> None:
        """Emits the steps that the expressions `roots` need."""
        names = [name for node in roots for name in self.round.uses_of(node)]
        steps = self.round.needed(names, self.given)
        self.emitter.emit(step.binding for step in steps)
        self.steps += steps

    def operand(self, node: Node) -> Operand:
        """The value of an expression whose steps have run."""
        return self.emitter.operand(node)

    def finish(self, result: Operand, result_type: Type) -> Compiled:
        """The component that returns `result`.

        Raises:
          FormError: something is left in it that must not be repeated, and another part has it too.
        """
        builder = self.emitter.builder
        section = builder.finish(result, result_type)
        if self.purity is not None:
            component = Component(self.name, section)
            for step in self.steps:
                made = self.emitter.made[step.name]
                self.purity.record(component, step, builder.computing[made.start : made.stop])
        return section


def elements(operand: Operand | None) -> tuple[Operand, ...]:
    """The elements of an operand that is known to be a struct."""
    assert isinstance(operand, tuple)
    return operand
