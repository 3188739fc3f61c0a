"""Aggregation operators one client at a time.

The reference interpreter is given all clients' values at once.  A fold computes the same from
partial results: `first` that of one client, `merge` that of the clients of two, and `report` what
the operator gives in the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tffc.engines.sections import EngineInterpreter
from tffc.engines.steps import struct
from tffc.errors import ExecutionError
from tffc.interpreter import arithmetic
from tffc.interpreter.interpreter import EMPTY
from tffc.interpreter.operators import OPERATORS, check_mean
from tffc.ir.nodes import Block, Call, Intrinsic, Lambda, Node
from tffc.ir.trampoline import run
from tffc.ir.types import FederatedType, FunctionType, Type
from tffc.values.concrete import Federated

Combine = Callable[[Any, Any, Type], Any]


class Fold:
    """The fold of an operator whose partial results are results: sums and extremes.

    `argument` is that of the part in which the operator stands: what the server keeps, and the
    values of one client, or of none for `merge` and `report`.
    """

    def __init__(self, part: Lambda, call: Call, combine: Combine = arithmetic.plus) -> None:
        assert isinstance(call.function, Intrinsic)
        assert isinstance(call.function.type, FunctionType)
        self._part = part
        self._operator = call
        self._combine = combine
        self.uri = call.function.uri
        self.type = call.function.type
        self.member = _member(self.type.result)

    def operands(self, argument: Any, clients: int) -> Any:
        """The operator's operands."""
        assert self._operator.argument is not None
        return self._evaluate(self._operator.argument, argument, clients)

    def nothing(self, argument: Any) -> Federated:
        """The operator's result where there are no clients."""
        return self._evaluate(self._operator, argument, 0)

    def _evaluate(self, node: Node, argument: Any, clients: int) -> Any:
        assert self._part.parameter_name is not None
        scope = EMPTY.inner().bind(self._part.parameter_name, argument)
        return run(EngineInterpreter(clients).evaluate(node, scope))

    def first(self, argument: Any, client: str) -> Any:
        """The partial result of one client, of the name `client`.

        Raises:
          ExecutionError: its value is above the bound of a secure sum.
        """
        try:
            return OPERATORS[self.uri](1, self.type, self.operands(argument, 1)).members[0]
        except ExecutionError as error:
            error.message = error.message.replace("client 0 adds", f"the client {client} adds")
            raise

    def accumulate(self, total: Any, argument: Any, client: str) -> Any:
        """The partial result with one client more."""
        return self.merge(total, self.first(argument, client), argument)

    def merge(self, first: Any, second: Any, argument: Any) -> Any:
        """The partial result of the clients of two."""
        return self._combine(first, second, self.member)

    def report(self, total: Any, argument: Any) -> Federated:
        """The operator's result."""
        return Federated.everywhere(total)


class Mean(Fold):
    """The fold of a mean: the sum of values, and how much it is the sum of."""

    def first(self, argument: Any, client: str) -> Any:
        check_mean(self.member)
        operands = self.operands(argument, 1)
        if self.uri == "federated_mean":
            (value,) = operands.at_each(1)
            return value, arithmetic.ones_like(value, self.member)
        (value,), (weight,) = (operand.at_each(1) for operand in operands)
        return arithmetic.times(value, weight, self.member, self._weight), weight

    def merge(self, first: Any, second: Any, argument: Any) -> Any:
        total = arithmetic.plus(first[0], second[0], self.member)
        return total, arithmetic.plus(first[1], second[1], self._weight)

    def report(self, total: Any, argument: Any) -> Federated:
        values, weights = total
        return Federated.everywhere(arithmetic.quotient(values, weights, self.member, self._weight))

    @property
    def _weight(self) -> Type:
        if self.uri == "federated_mean":
            return self.member
        return _member(struct(self.type.parameter)[1])


class ModularSum(Fold):
    """The fold of a secure modular sum, which has a remainder once, as the operator does."""

    def first(self, argument: Any, client: str) -> Any:
        value, _ = self.operands(argument, 1)
        return value.at_each(1)[0]

    def report(self, total: Any, argument: Any) -> Federated:
        _, modulus = self.operands(argument, 0)
        total = Federated((total,), all_equal=False)
        return OPERATORS[self.uri](1, self.type, (total, modulus))


class Aggregate(Fold):
    """The fold of `federated_aggregate`, by the functions that it is given."""

    def first(self, argument: Any, client: str) -> Any:
        _, zero, *_ = self.operands(argument, 0)
        return self.accumulate(zero, argument, client)

    def accumulate(self, total: Any, argument: Any, client: str) -> Any:
        value, _, accumulate, _, _ = self.operands(argument, 1)
        return self._call(accumulate, (total, value.at_each(1)[0]))

    def merge(self, first: Any, second: Any, argument: Any) -> Any:
        _, _, _, merge, _ = self.operands(argument, 0)
        return self._call(merge, (first, second))

    def report(self, total: Any, argument: Any) -> Federated:
        *_, report = self.operands(argument, 0)
        return Federated.everywhere(self._call(report, total))

    def _call(self, function: Any, argument: Any) -> Any:
        return run(EngineInterpreter(0).apply(function, argument))


FOLDS: dict[str, Callable[[Lambda, Call], Fold]] = {
    "federated_aggregate": Aggregate,
    "federated_max": functools.partial(Fold, combine=arithmetic.maximum),
    "federated_mean": Mean,
    "federated_min": functools.partial(Fold, combine=arithmetic.minimum),
    "federated_secure_modular_sum": ModularSum,
    "federated_secure_sum": Fold,
    "federated_secure_sum_bitwidth": Fold,
    "federated_sum": Fold,
    "federated_weighted_mean": Mean,
}


def folds(part: Lambda) -> list[Fold]:
    """The folds of a part that is a block of aggregation operators, in their order."""
    made: list[Fold] = []
    for binding in part.result.locals if isinstance(part.result, Block) else ():
        assert isinstance(binding.value, Call)
        assert isinstance(binding.value.function, Intrinsic)
        made.append(FOLDS[binding.value.function.uri](part, binding.value))
    return made


def _member(type: Type) -> Type:
    assert isinstance(type, FederatedType)
    return type.member
