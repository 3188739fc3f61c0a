"""The evaluation of a program's expressions on what is known of its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tffc.assurance.audit.evaluation import AbstractEvaluator
from tffc.assurance.privacy.graphs.sections import (
    NO_NOISE,
    Place,
    results_of_graph,
    shape_of,
    shaped,
)
from tffc.assurance.privacy.modules.walk import results_of_module
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.quantity import Quantity
from tffc.assurance.privacy.quantities.streams import Stream
from tffc.language.nodes import Compiled, Intrinsic, Literal, Node
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, TensorType, Type
from tffc.linking.operand import from_leaves, rebuild
from tffc.support.guards import is_tuple


class QuantityEvaluator(AbstractEvaluator):
    """Evaluates expressions on quantities."""

    def __init__(self, algebra: Algebra) -> None:
        super().__init__()
        self.algebra = algebra

    def constant(self, node: Node) -> Any:
        if isinstance(node, Literal):
            return self.algebra.constant(node.value)
        return self.filled(node.type, [])

    def section(self, section: Compiled, argument: Any) -> Any:
        assert isinstance(section.type, FunctionType)
        parameter = section.type.parameter
        arguments = [] if argument is None else flat(argument)
        types = [] if parameter is None else leaves(local_type(parameter))
        typed = [
            shaped(value, leaf, self.algebra) if isinstance(leaf, TensorType) else value
            for value, leaf in zip(arguments, types, strict=True)
        ]
        if section.kind == "tensorflow":
            results = results_of_graph(section, typed, self.algebra, self.noise_of_section())
        else:
            results = results_of_module(section, typed, self.algebra)
        return from_leaves(section.type.result, results)

    def noise_of_section(self) -> Mapping[Place, Stream]:
        """Return the noise that is followed from round to round in the section that is next."""
        return NO_NOISE

    def operate(self, operator: Intrinsic, argument: Any) -> Any:
        assert isinstance(operator.type, FunctionType)
        # Functions among the operands may use whatever is in scope.
        return self.filled(operator.type.result, [*flat(argument), *self.in_scope()])

    def in_scope(self) -> list[Quantity]:
        """Return all values that an expression may use."""
        return [leaf for value in self.values.values() for leaf in flat(value)]

    def filled(self, type: Type, values: Iterable[Quantity]) -> Any:
        """Return a value of a type of which only the provenance is known."""
        operands = list(values)
        return rebuild(
            local_type(type), lambda leaf: self.algebra.unknown(operands, shape=shape_of(leaf))
        )


def flat(value: Any) -> list[Quantity]:
    """Return the leaves of a value, without functions."""
    leaves: list[Quantity] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Quantity):
            leaves.append(item)
        elif is_tuple(item):
            stack.extend(reversed(item))
    return leaves
