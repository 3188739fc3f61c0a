"""Local code as TensorFlow graphs: evaluates what runs at one place into a graph being built.

Placements are gone here: a federated value is the operand of its member, a map applies its
function, a zip is the struct of its operands.  The walk meets call-dominant code only, so every
function is a lambda, a compiled section or an operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tffc.backends.stages import Step
from tffc.errors import FormError
from tffc.graphs import arithmetic
from tffc.graphs.builder import GraphBuilder, Operand
from tffc.ir.array import Array
from tffc.ir.nodes import (
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.trampoline import Task, run

FunctionValue: TypeAlias = Lambda | Compiled | Intrinsic
Value: TypeAlias = Operand | FunctionValue

UNCHANGED = frozenset(
    {
        "federated_value_at_clients",
        "federated_value_at_server",
        "federated_zip_at_clients",
        "federated_zip_at_server",
    }
)
"""Operators that only say where a value is."""

APPLIED = frozenset({"federated_map", "federated_map_all_equal", "federated_apply"})
CALLED = frozenset({"federated_eval_at_clients", "federated_eval_at_server"})
ARITHMETIC = {
    "generic_plus": arithmetic.plus,
    "generic_multiply": arithmetic.multiply,
    "generic_divide": arithmetic.divide,
}


class Emitter:
    """Evaluates local code into one graph; `values` holds what each name in scope stands for."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.values: dict[str, Value] = {}
        self.constants: dict[Array, Operand] = {}

    def emit(self, steps: Iterable[Step]) -> None:
        """Evaluates steps of a round in order, each under its name."""
        for step in steps:
            self.values[step.name] = run(self._evaluate(step.call))

    def evaluate(self, node: Node) -> Value:
        """What an expression over the names in scope stands for.

        Raises:
          FormError: it uses an operator or a section that no TensorFlow graph can hold.
        """
        return run(self._evaluate(node))

    def operand(self, node: Node) -> Operand:
        """What an expression that is not a function stands for."""
        value = self.evaluate(node)
        assert not isinstance(value, FunctionValue)
        return value

    def apply(self, function: Node, argument: Operand | None) -> Operand:
        """The result of a function expression on an operand."""
        value = self.evaluate(function)
        assert isinstance(value, FunctionValue)
        return run(self._apply(value, argument))

    def _evaluate(self, node: Node) -> Task[Any]:
        match node:
            case Reference():
                return self.values[node.name]
            case Selection():
                return (yield self._evaluate(node.source))[node.index]
            case Struct():
                values = []
                for value in node.values:
                    values.append((yield self._evaluate(value)))
                return tuple(values)
            case Literal():
                return self._constant(node.value)
            case Block():
                for binding in node.locals:
                    self.values[binding.name] = yield self._evaluate(binding.value)
                return (yield self._evaluate(node.result))
            case Call():
                function = yield self._evaluate(node.function)
                argument = None
                if node.argument is not None:
                    argument = yield self._evaluate(node.argument)
                return (yield self._apply(function, argument))
            case Intrinsic(uri="generic_zero"):
                return arithmetic.zeros(self.builder, node.type)
            case Lambda() | Compiled() | Intrinsic():
                return node
        raise FormError(
            "E520", f"a {type(node).__name__} of type `{node.type}` can not be put into a graph"
        )

    def _constant(self, array: Array) -> Operand:
        if array not in self.constants:
            self.constants[array] = self.builder.constant(array)
        return self.constants[array]

    def _apply(self, function: FunctionValue, argument: Operand | None) -> Task[Any]:
        match function:
            case Compiled(kind="tensorflow"):
                return self.builder.call(function, argument)
            case Compiled():
                raise FormError(
                    "E521",
                    f"an XLA computation of type `{function.type}` can not be part of this form",
                    notes=("the parts of the form are TensorFlow graphs",),
                    help="write this computation with tff.tensorflow.computation",
                )
            case Lambda():
                if function.parameter_name is not None:
                    assert argument is not None
                    self.values[function.parameter_name] = argument
                return (yield self._evaluate(function.result))
            case Intrinsic():
                return (yield self._operate(function, argument))

    def _operate(self, operator: Intrinsic, argument) -> Task[Any]:
        uri = operator.uri
        if uri in UNCHANGED:
            return argument
        if uri in APPLIED:
            function, value = argument
            return (yield self._apply(function, value))
        if uri in CALLED:
            return (yield self._apply(argument, None))
        if uri in ARITHMETIC:
            return ARITHMETIC[uri](self.builder, *argument)
        raise FormError("E522", f"the operator {uri} can not be part of local code in this form")
