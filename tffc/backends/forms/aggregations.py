"""What each aggregation does inside a MapReduceForm.

An aggregation is a value that each client adds to an accumulator, and what the server makes of the
accumulator in the end.  The mean is a sum of products and a sum of weights, divided by `update`.
"""

from __future__ import annotations

import abc
import dataclasses

from tffc.backends.forms.form import signature
from tffc.ir.calls import operands, uri_of
from tffc.ir.nodes import Call, Node
from tffc.ir.types import StructType, Type, local_type
from tffc.linking import arithmetic
from tffc.linking.emit import Emitter
from tffc.linking.operand import Operand


@dataclasses.dataclass(frozen=True)
class Aggregation(abc.ABC):
    """One plain aggregation of a round, as its call.

    Types: `update` of what a client contributes, `zero` and `accumulator` of the running value,
    `report` of what leaves the aggregation, `result` of what the program sees.
    """

    call: Call

    @property
    def values(self) -> tuple[Node, ...]:
        """The expressions that each client evaluates."""
        return operands(self.call)[:1]

    def operands_of(self, part: str) -> tuple[Node, ...]:
        """The program's expressions that zero, accumulate, merge or report uses."""
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

    def contribute(self, emitter: Emitter) -> Operand:
        """What one client contributes; the clients' values are in the emitter's scope."""
        return emitter.operand(operands(self.call)[0])

    @abc.abstractmethod
    def zero(self, emitter: Emitter) -> Operand:
        """The accumulator of no client."""

    @abc.abstractmethod
    def accumulate(self, emitter: Emitter, accumulator: Operand, update: Operand) -> Operand:
        """The accumulator with one more client."""

    @abc.abstractmethod
    def merge(self, emitter: Emitter, first: Operand, second: Operand) -> Operand:
        """The accumulator of two groups of clients."""

    def report(self, emitter: Emitter, accumulator: Operand) -> Operand:
        """What leaves the aggregation."""
        return accumulator

    def conclude(self, emitter: Emitter, report: Operand) -> Operand:
        """What the program sees, made by `update`."""
        return report


class Sum(Aggregation):
    """Adds element by element, from zeros."""

    def zero(self, emitter: Emitter) -> Operand:
        return arithmetic.zeros(emitter.builder, self.zero_type)

    def accumulate(self, emitter: Emitter, accumulator: Operand, update: Operand) -> Operand:
        return arithmetic.plus(emitter.builder, accumulator, update)

    def merge(self, emitter: Emitter, first: Operand, second: Operand) -> Operand:
        return arithmetic.plus(emitter.builder, first, second)


class Mean(Sum):
    """The mean: every client contributes its value and ones, which are summed and divided."""

    @property
    def update(self) -> Type:
        value = local_type(operands(self.call)[0].type)
        return StructType([value, value])

    def contribute(self, emitter: Emitter) -> Operand:
        node = operands(self.call)[0]
        value = emitter.operand(node)
        ones = arithmetic.ones(emitter.builder, local_type(node.type))
        return (arithmetic.multiply(emitter.builder, value, ones), ones)

    def conclude(self, emitter: Emitter, report: Operand) -> Operand:
        assert isinstance(report, tuple)
        return arithmetic.divide(emitter.builder, *report)


class WeightedMean(Mean):
    """The mean in which each client's value counts as much as its weight says."""

    @property
    def values(self) -> tuple[Node, ...]:
        return operands(self.call)

    @property
    def update(self) -> Type:
        return StructType([local_type(node.type) for node in operands(self.call)])

    def contribute(self, emitter: Emitter) -> Operand:
        value, weight = (emitter.operand(node) for node in operands(self.call))
        return (arithmetic.multiply(emitter.builder, value, weight), weight)


class Extreme(Aggregation):
    """The minimum or maximum of every element, from the limit of its type."""

    @property
    def is_minimum(self) -> bool:
        return uri_of(self.call) == "federated_min"

    def zero(self, emitter: Emitter) -> Operand:
        return arithmetic.dtype_limits(emitter.builder, self.zero_type, largest=self.is_minimum)

    def accumulate(self, emitter: Emitter, accumulator: Operand, update: Operand) -> Operand:
        choose = arithmetic.minimum if self.is_minimum else arithmetic.maximum
        return choose(emitter.builder, accumulator, update)

    def merge(self, emitter: Emitter, first: Operand, second: Operand) -> Operand:
        return self.accumulate(emitter, first, second)


class Aggregate(Aggregation):
    """The user's own zero, accumulate, merge and report."""

    PARTS = ("zero", "accumulate", "merge", "report")

    def operands_of(self, part: str) -> tuple[Node, ...]:
        return (operands(self.call)[self.PARTS.index(part) + 1],)

    @property
    def zero_type(self) -> Type:
        return operands(self.call)[1].type

    @property
    def accumulator(self) -> Type:
        parameter = signature(operands(self.call)[2]).parameter
        assert isinstance(parameter, StructType)
        return parameter.types[0]

    @property
    def report_type(self) -> Type:
        return signature(operands(self.call)[4]).result

    def zero(self, emitter: Emitter) -> Operand:
        return emitter.operand(operands(self.call)[1])

    def accumulate(self, emitter: Emitter, accumulator: Operand, update: Operand) -> Operand:
        return emitter.apply(operands(self.call)[2], (accumulator, update))

    def merge(self, emitter: Emitter, first: Operand, second: Operand) -> Operand:
        return emitter.apply(operands(self.call)[3], (first, second))

    def report(self, emitter: Emitter, accumulator: Operand) -> Operand:
        return emitter.apply(operands(self.call)[4], accumulator)


PLAIN: dict[str, type[Aggregation]] = {
    "federated_aggregate": Aggregate,
    "federated_max": Extreme,
    "federated_mean": Mean,
    "federated_min": Extreme,
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
