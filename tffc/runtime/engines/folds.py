"""Running the aggregations of a component that is a program, one client at a time.

Such a component is a block of aggregation operators.  The reference interpreter takes all clients'
values at once; here each operator is folded over the clients, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tffc.language.calls import operands, uri_of
from tffc.language.nodes import Block, Call, Lambda, Node
from tffc.language.type_parts import local_type
from tffc.language.types import Type
from tffc.language.values.concrete import Federated
from tffc.linking.aggregations import PLAIN, Arithmetic, Sum
from tffc.runtime.engines.arithmetic import ValueArithmetic
from tffc.runtime.engines.secure_sums import MakeSecureSum, SecureSum, zero_of
from tffc.runtime.interpreter.interpreter import EMPTY, Interpreter
from tffc.support.trampoline import run

MakeInterpreter: TypeAlias = Callable[[int], Interpreter]


class Operands(ValueArithmetic):
    """Evaluates operands in a component, given its argument: the server's values and one client's
    update.

    `client` is that client's name.
    """

    def __init__(
        self,
        component: Lambda,
        argument: Any,
        interpreter: Interpreter,
        make_sum: MakeSecureSum,
        client: str,
    ) -> None:
        assert component.parameter_name is not None
        self.make_sum = make_sum
        self.client = client
        self._scope = EMPTY.bind(component.parameter_name, argument)
        self._interpreter = interpreter

    def operand(self, node: Node) -> Any:
        value = self._evaluate(node)
        return value.members[0] if isinstance(value, Federated) else value

    def apply(self, function: Node, argument: Any) -> Any:
        return run(self._interpreter.apply(self._evaluate(function), argument))

    def _evaluate(self, node: Node) -> Any:
        return run(self._interpreter.evaluate(node, self._scope))


class SecureFold(Sum):
    """A secure sum as an aggregation: a sum of checked values, possibly modulo a number."""

    def contribute(self, by: Arithmetic) -> Any:
        assert isinstance(by, Operands)
        return self.secure_sum(by).contribution(super().contribute(by), by.client)

    @property
    def has_zero(self) -> bool:
        return True

    def zero(self, by: Arithmetic) -> Any:
        return zero_of(self.update)

    def accumulate(self, by: Arithmetic, accumulator: Any, update: Any) -> Any:
        return self.secure_sum(by).merge(accumulator, update)

    def report(self, by: Arithmetic, accumulator: Any) -> Any:
        return self.secure_sum(by).report(super().report(by, accumulator))

    def secure_sum(self, by: Arithmetic) -> SecureSum:
        """Return the secure sum with the value of its bound."""
        assert isinstance(by, Operands)
        _, bound = operands(self.call)
        return by.make_sum(
            self.call, uri_of(self.call), self.update, by.operand(bound), local_type(bound.type)
        )


class Fold:
    """One aggregation of a component; see `tffc.backends.forms.steps.AggregationSteps`.

    If there is no zero (see `Aggregation.has_zero`), the accumulator of no clients is None.
    """

    def __init__(
        self, component: Lambda, call: Call, make: MakeInterpreter, make_sum: MakeSecureSum
    ) -> None:
        self._component = component
        self._make = make
        self._make_sum = make_sum
        self._aggregation = PLAIN.get(uri_of(call), SecureFold)(call)

    @property
    def accumulator_type(self) -> Type:
        return local_type(self._aggregation.accumulator)

    def zero(self, carried: Any) -> Any:
        return (
            self._aggregation.zero(self._operands(carried)) if self._aggregation.has_zero else None
        )

    def accumulate(self, accumulator: Any, update: Any, carried: Any, client: str) -> Any:
        by = self._operands(carried, update, client)
        contribution = self._aggregation.contribute(by)
        if accumulator is None:
            return contribution
        return self._aggregation.accumulate(by, accumulator, contribution)

    def merge(self, first: Any, second: Any, carried: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return self._aggregation.merge(self._operands(carried), first, second)

    def report(self, accumulator: Any, carried: Any) -> Federated:
        by = self._operands(carried)
        if accumulator is None:
            accumulator = self._aggregation.zero(by)
        report = self._aggregation.report(by, accumulator)
        return Federated.everywhere(self._aggregation.conclude(by, report))

    def secure_sum(self, carried: Any) -> SecureSum | None:
        fold = self._aggregation
        return fold.secure_sum(self._operands(carried)) if isinstance(fold, SecureFold) else None

    def _operands(self, carried: Any, update: Any = None, client: str = "") -> Operands:
        return Operands(self._component, (carried, update), self._make(1), self._make_sum, client)


def folds(component: Lambda, make: MakeInterpreter, make_sum: MakeSecureSum) -> tuple[Fold, ...]:
    """Return the folds of a component that is a block of aggregation operators, in order.

    `make` returns the interpreter for a number of clients, and `make_sum` a secure sum.
    """
    bindings = component.result.locals if isinstance(component.result, Block) else ()
    return tuple(
        Fold(component, b.value, make, make_sum) for b in bindings if isinstance(b.value, Call)
    )
