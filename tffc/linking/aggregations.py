"""The aggregations of the language, computed with any arithmetic.

    contribute    what one client adds
    zero          the accumulator of no client
    accumulate    an accumulator with one client more
    merge         the accumulator of the clients of two
    report        what leaves the aggregation
    conclude      what the program sees

Forms and passes put it into graphs, where the arithmetic adds nodes; engines compute it with NumPy.
The reference interpreter has its own, so that it can tell when this one is wrong.

Secure sums are not among them: systems have protocols for these.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from tffc.language.calls import operands
from tffc.language.nodes import Call, Node
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import FunctionType, StructType, TensorType, Type

Value: TypeAlias = Any
"""A value that an arithmetic computes with: an operand of a graph or a value in memory, a struct as
a tuple."""


Part: TypeAlias = Literal["zero", "accumulate", "merge", "report"]
"""A part of an aggregation for which the program may have expressions of its own."""


class Arithmetic(Protocol):
    """Computes with numbers, leaf by leaf, and with the operands of an operator's call.

    Two values have the same structure, or the second is a scalar that meets every leaf.
    """

    def operand(self, node: Node) -> Value:
        """Return the value of an expression that is not a function, without its placement."""
        ...

    def apply(self, function: Node, argument: Value) -> Value:
        """Return what a function of the program gives."""
        ...

    def zeros(self, kind: Type) -> Value: ...

    def ones(self, value: Value, kind: Type) -> Value:
        """Return ones of the shapes of a value."""
        ...

    def dtype_limits(self, kind: Type, largest: bool) -> Value:
        """Return the largest or the smallest finite numbers of a type."""
        ...

    def plus(self, first: Value, second: Value) -> Value: ...

    def multiply(self, first: Value, second: Value) -> Value: ...

    def divide(self, first: Value, second: Value) -> Value: ...

    def minimum(self, first: Value, second: Value) -> Value: ...

    def maximum(self, first: Value, second: Value) -> Value: ...


@dataclasses.dataclass(frozen=True)
class Aggregation(abc.ABC):
    """One aggregation, given by its call.

    `update` is the type of what a client contributes, `zero_type` and `accumulator` are those of
    the running value, and `report_type` is that of the report.
    """

    call: Call

    @property
    def values(self) -> tuple[Node, ...]:
        """The expressions that each client evaluates."""
        return operands(self.call)[:1]

    def operands_of(self, part: Part) -> tuple[Node, ...]:
        """Return the expressions of the program that a part uses: zero, accumulate, merge or
        report."""
        return ()

    @property
    def update(self) -> Type:
        return local_type(operands(self.call)[0].type)

    @property
    def zero_type(self) -> Type:
        return self.update

    @property
    def accumulator(self) -> Type:
        return self.update

    @property
    def report_type(self) -> Type:
        return self.accumulator

    def contribute(self, by: Arithmetic) -> Value:
        """Return what one client contributes; the operands stand for its values."""
        return by.operand(operands(self.call)[0])

    @abc.abstractmethod
    def zero(self, by: Arithmetic) -> Value:
        """Return the accumulator of no client."""

    @property
    def has_zero(self) -> bool:
        """Return whether there is an accumulator of no client.  There is none if a shape is not
        known before the first client; then the first update is the first accumulator."""
        tensors = (leaf for leaf in distinct_leaves(self.zero_type) if isinstance(leaf, TensorType))
        return all(leaf.is_fully_defined() for leaf in tensors)

    @abc.abstractmethod
    def accumulate(self, by: Arithmetic, accumulator: Value, update: Value) -> Value:
        """Return the accumulator after one more client."""

    def merge(self, by: Arithmetic, first: Value, second: Value) -> Value:
        """Return the accumulator of two groups of clients."""
        return self.accumulate(by, first, second)

    def report(self, by: Arithmetic, accumulator: Value) -> Value:
        """Return what leaves the aggregation."""
        return accumulator

    def conclude(self, by: Arithmetic, report: Value) -> Value:
        """Return what the program sees."""
        return report


class Sum(Aggregation):
    """Adds element by element, from zeros."""

    def zero(self, by: Arithmetic) -> Value:
        return by.zeros(self.zero_type)

    def accumulate(self, by: Arithmetic, accumulator: Value, update: Value) -> Value:
        return by.plus(accumulator, update)


class Mean(Sum):
    """Adds values and weights, and divides one sum by the other; each value weighs one."""

    @property
    def update(self) -> Type:
        value = local_type(operands(self.call)[0].type)
        return StructType([value, value])

    def contribute(self, by: Arithmetic) -> Value:
        value = super().contribute(by)
        weight = self.weight(by, value)
        return self.weigh(by, value, weight), weight

    def weight(self, by: Arithmetic, value: Value) -> Value:
        """Return the weight of a client's value."""
        return by.ones(value, local_type(operands(self.call)[0].type))

    def weigh(self, by: Arithmetic, value: Value, weight: Value) -> Value:
        """Return what is added for a value."""
        return by.multiply(value, weight)

    def conclude(self, by: Arithmetic, report: Value) -> Value:
        return by.divide(*report)


class WeightedMean(Mean):
    """The mean of values that clients give weights."""

    @property
    def values(self) -> tuple[Node, ...]:
        return operands(self.call)

    @property
    def update(self) -> Type:
        return StructType([local_type(node.type) for node in operands(self.call)])

    def weight(self, by: Arithmetic, value: Value) -> Value:
        return by.operand(operands(self.call)[1])


class Minimum(Aggregation):
    """Takes the least of every element, from the largest number of its type."""

    def zero(self, by: Arithmetic) -> Value:
        return by.dtype_limits(self.zero_type, largest=True)

    def accumulate(self, by: Arithmetic, accumulator: Value, update: Value) -> Value:
        return by.minimum(accumulator, update)


class Maximum(Aggregation):
    """Takes the greatest of every element, from the smallest number of its type."""

    def zero(self, by: Arithmetic) -> Value:
        return by.dtype_limits(self.zero_type, largest=False)

    def accumulate(self, by: Arithmetic, accumulator: Value, update: Value) -> Value:
        return by.maximum(accumulator, update)


class Aggregate(Aggregation):
    """Computes what the user's own zero, accumulate, merge and report say."""

    PARTS: ClassVar[tuple[Part, ...]] = ("zero", "accumulate", "merge", "report")

    def operands_of(self, part: Part) -> tuple[Node, ...]:
        return (self._operand(part),)

    def _operand(self, part: Part) -> Node:
        return operands(self.call)[self.PARTS.index(part) + 1]

    @property
    def zero_type(self) -> Type:
        return self._operand("zero").type

    @property
    def accumulator(self) -> Type:
        function = self._operand("accumulate").type
        assert isinstance(function, FunctionType)
        assert isinstance(function.parameter, StructType)
        return function.parameter.types[0]

    @property
    def report_type(self) -> Type:
        function = self._operand("report").type
        assert isinstance(function, FunctionType)
        return function.result

    def zero(self, by: Arithmetic) -> Value:
        return by.operand(self._operand("zero"))

    @property
    def has_zero(self) -> bool:
        return True

    def accumulate(self, by: Arithmetic, accumulator: Value, update: Value) -> Value:
        return by.apply(self._operand("accumulate"), (accumulator, update))

    def merge(self, by: Arithmetic, first: Value, second: Value) -> Value:
        return by.apply(self._operand("merge"), (first, second))

    def report(self, by: Arithmetic, accumulator: Value) -> Value:
        return by.apply(self._operand("report"), accumulator)


PLAIN: dict[str, type[Aggregation]] = {
    "federated_aggregate": Aggregate,
    "federated_max": Maximum,
    "federated_mean": Mean,
    "federated_min": Minimum,
    "federated_sum": Sum,
    "federated_weighted_mean": WeightedMean,
}
"""The aggregations that go through zero, accumulate, merge and report."""

SECURE = (
    "federated_secure_sum_bitwidth",
    "federated_secure_sum",
    "federated_secure_modular_sum",
)
"""The aggregations that have a channel of their own, in the order of the channels."""
