"""The evaluation of a program's expressions on what is known of its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tffc.assurance.privacy.algebra import Algebra
from tffc.assurance.privacy.modules import results_of_module
from tffc.assurance.privacy.quantities import Quantity
from tffc.assurance.privacy.sections import (
    NO_NOISE,
    Place,
    results_of_graph,
    shape_of,
    shaped,
)
from tffc.assurance.privacy.streams import Stream
from tffc.language.intrinsics import EVALUATIONS, MAPS, PLACEMENTS_ONLY
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, TensorType, Type
from tffc.linking.operand import from_leaves, rebuild
from tffc.support.guards import is_tuple
from tffc.support.trampoline import Task, run


class QuantityEvaluator:
    """Evaluates expressions; `values` are those of names in scope."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.values: dict[str, Any] = {}

    def value(self, node: Node) -> Any:
        return run(self._evaluate(node))

    def _evaluate(self, node: Node) -> Task[Any]:
        match node:
            case Reference():
                return self.values[node.name]
            case Selection():
                source = yield self._evaluate(node.source)
                return source[node.index] if is_tuple(source) else source
            case StructNode():
                values: list[Any] = []
                for element in node.values:
                    values.append((yield self._evaluate(element)))
                return tuple(values)
            case Lambda() | Compiled() | Intrinsic() if isinstance(node.type, FunctionType):
                return node
            case Call():
                function = yield self._evaluate(node.function)
                argument = None
                if node.argument is not None:
                    argument = yield self._evaluate(node.argument)
                return (yield self.apply(function, argument))
            case Block():
                for binding in node.locals:
                    self.values[binding.name] = yield self._evaluate(binding.value)
                return (yield self._evaluate(node.result))
            case Literal():
                return self.algebra.constant(node.value)
            case _:
                return self.filled(node.type, [])

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        match function:
            case Lambda():
                if function.parameter_name is not None:
                    self.values[function.parameter_name] = argument
                return (yield self._evaluate(function.result))
            case Compiled():
                assert isinstance(function.type, FunctionType)
                arguments = [] if argument is None else flat(argument)
                results = self._section(function, arguments)
                return from_leaves(function.type.result, results)
            case _:
                return (yield self._operate(function, argument))

    def _section(self, section: Compiled, arguments: list[Quantity]) -> list[Quantity]:
        assert isinstance(section.type, FunctionType)
        parameter = section.type.parameter
        types = [] if parameter is None else leaves(local_type(parameter))
        typed = [
            shaped(value, leaf, self.algebra) if isinstance(leaf, TensorType) else value
            for value, leaf in zip(arguments, types, strict=True)
        ]
        if section.kind == "tensorflow":
            return results_of_graph(section, typed, self.algebra, self.noise_of_section())
        return results_of_module(section, typed, self.algebra)

    def noise_of_section(self) -> Mapping[Place, Stream]:
        """Return the noise that is followed from round to round in the section that is next."""
        return NO_NOISE

    def _operate(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        assert isinstance(operator.type, FunctionType)
        match operator.uri:
            case uri if uri in PLACEMENTS_ONLY:
                return argument
            case uri if uri in MAPS:
                function, value = argument
                return (yield self.apply(function, value))
            case uri if uri in EVALUATIONS:
                return (yield self.apply(argument, None))
            case _:
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
