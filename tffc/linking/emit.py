"""Local code as TensorFlow graphs: evaluates the code of one place into a graph being built.

Placements are gone here: a federated value is the operand of its member, a map applies its
function, a zip is the struct of its operands.  The walk meets call-dominant code only, so every
function is a lambda, a compiled section or an operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tffc.language.calls import describe
from tffc.language.intrinsics import EVALUATIONS, MAPS, PLACEMENTS_ONLY
from tffc.language.nodes import (
    Binding,
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
    kind_of,
)
from tffc.language.types import FunctionType, SequenceType
from tffc.linking import sequences
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.linking.function_builder import FunctionBuilder
from tffc.linking.operand import Operand
from tffc.linking.xla import tensorflow_section
from tffc.support.errors import FormError, TffcError
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run

FunctionValue: TypeAlias = Lambda | Compiled | Intrinsic
Value: TypeAlias = Operand | FunctionValue

NO_LOCAL_OPERATOR = "E522"


def add_place(error: TffcError, binding: Binding) -> None:
    """Add to a refusal the line of the binding, and for an operator the binding itself."""
    if error.code == NO_LOCAL_OPERATOR:
        error.notes += (f"in `{describe(binding)}`",)
    error.span = error.span or binding.span


class Emitter(GraphArithmetic):
    """Evaluates local code into one graph; `values` holds what each name in scope stands for.

    Inside a function of the graph's library, `outer` evaluates the code around the function; values
    of names bound there are captured.
    """

    def __init__(self, builder: GraphBuilder | None = None, outer: Emitter | None = None) -> None:
        super().__init__(builder or GraphBuilder())
        self.outer = outer
        self.values: dict[str, Value] = {}
        self.made: dict[str, range] = {}

    def emit(self, bindings: Iterable[Binding]) -> None:
        """Evaluate bindings in order, each under its name.

        `made` notes the nodes of each, as a range of the builder's `computing`.
        """
        computing = self.builder.computing
        for binding in bindings:
            start = len(computing)
            try:
                self.values[binding.name] = run(self._evaluate(binding.value))
            except TffcError as error:
                add_place(error, binding)
                raise
            self.made[binding.name] = range(start, len(computing))

    def evaluate(self, node: Node) -> Value:
        """Return what an expression over the names in scope stands for.

        Raises:
          FormError: it uses an operator or a section that no TensorFlow graph can hold.
        """
        return run(self._evaluate(node))

    def operand(self, node: Node) -> Operand:
        """Return what an expression that is not a function stands for."""
        value = self.evaluate(node)
        assert not isinstance(value, FunctionValue)
        return value

    def apply(self, function: Node, argument: Operand | None) -> Operand:
        """Return the result of a function expression on an operand."""
        value = self.evaluate(function)
        assert isinstance(value, FunctionValue)
        return run(self._apply(value, argument))

    def _evaluate(self, node: Node) -> Task[Value] | Value:
        match node:
            case Reference():
                return self._lookup(node.name)
            case Selection():
                return self._select(node)
            case StructNode():
                return self._elements(node, {})
            case Literal():
                return self.builder.constant(node.array)
            case Block():
                return self._block(node)
            case Call():
                return self._call(node)
            case Intrinsic(uri="generic_zero"):
                return self.zeros(node.type)
            case Lambda() | Compiled() | Intrinsic() if isinstance(node.type, FunctionType):
                return node
            case _:
                raise FormError(
                    "E520",
                    f"{kind_of(node)} of type `{node.type}` cannot be put into a graph",
                    help="take the value as an argument of the program, or compute it in "
                    "TensorFlow",
                )

    def _select(self, node: Selection) -> Task[Value]:
        return (yield self._evaluate(node.source))[node.index]

    def _elements(self, node: StructNode, known: dict[int, Operand]) -> Task[Operand]:
        """Return the struct's operand.  `known` has the structs in it that were evaluated before:
        like all operands of a flat program they make no calls."""
        values: list[Operand] = []
        for value in node.values:
            if not isinstance(value, StructNode):
                values.append((yield self._evaluate(value)))
                continue
            if id(value) not in known:
                known[id(value)] = yield self._elements(value, known)
            values.append(known[id(value)])
        return tuple(values)

    def _block(self, node: Block) -> Task[Value]:
        for binding in node.locals:
            self.values[binding.name] = yield self._evaluate(binding.value)
        return (yield self._evaluate(node.result))

    def _call(self, node: Call) -> Task[Operand]:
        function = yield self._evaluate(node.function)
        argument = None
        if node.argument is not None:
            argument = yield self._evaluate(node.argument)
        return (yield self._apply(function, argument))

    def _lookup(self, name: str) -> Value:
        if name not in self.values:
            assert self.outer is not None
            assert isinstance(self.builder, FunctionBuilder)
            value = self.outer._lookup(name)
            if not isinstance(value, FunctionValue):
                value = self.builder.capture(value)
            self.values[name] = value
        return self.values[name]

    def _apply(self, function: FunctionValue, argument: Operand | None) -> Task[Operand]:
        match function:
            case Compiled():
                return self.builder.call(tensorflow_section(function), argument)
            case Lambda():
                if function.parameter_name is not None:
                    assert argument is not None
                    self.values[function.parameter_name] = argument
                return (yield self._evaluate(function.result))
            case Intrinsic():
                return (yield self._operate(function, argument))

    def _operate(self, operator: Intrinsic, argument: Any) -> Task[Operand]:
        assert isinstance(operator.type, FunctionType)
        match operator.uri:
            case uri if uri in PLACEMENTS_ONLY:
                return argument  # they only say where a value is
            case uri if uri in MAPS:
                function, value = argument
                return (yield self._apply(function, value))
            case uri if uri in EVALUATIONS:
                return (yield self._apply(argument, None))
            case "generic_plus":
                return self.plus(*argument)
            case "generic_multiply":
                return self.multiply(*argument)
            case "generic_divide":
                return self.divide(*argument)
            case "sequence_map":
                function, sequence = argument
                assert isinstance(operator.type.result, SequenceType)
                element = operator.type.result.element
                inside = self._inside(function)
                return sequences.sequence_map(self.builder, inside, sequence, element)
            case "sequence_reduce":
                sequence, zero, function = argument
                return sequences.sequence_reduce(
                    self.builder, self._inside(function), sequence, zero, operator.type.result
                )
            case "sequence_sum":
                return sequences.sequence_sum(self.builder, argument)
            case uri:
                raise FormError(
                    NO_LOCAL_OPERATOR,
                    f"the operator {printable(uri)} cannot be part of local code in this form",
                )

    def _inside(self, function: FunctionValue) -> sequences.ElementFunction:
        """Return a function value as a function of the graph's library."""

        def build(inner: FunctionBuilder, argument: Operand) -> Operand:
            return run(Emitter(inner, self)._apply(function, argument))

        return build
