"""The reference interpreter, which evaluates a program step by step.

It is written to be obviously right, not fast.  Each call of the program runs exactly once: a
section that is called once and whose result is used twice runs once; two calls of it run twice.
Aggregations take clients in order, one after another.  Secure sums are plain sums whose bounds are
checked.

The number of clients is that of the values placed at clients in the argument.  Without such a value
it is `default_clients`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tffc.language.environment import Environment
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.type_parts import check_parts, leaves
from tffc.language.types import FunctionType, Type
from tffc.language.values.concrete import Federated, MakeSequence, flatten, to_python, to_value
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.interpreter import arithmetic
from tffc.runtime.interpreter.operators import CALLING_OPERATORS, OPERATORS
from tffc.support.errors import ExecutionError, LanguageValueError, Span, TffcError
from tffc.support.trampoline import Task
from tffc.support.trampoline import run as run_task


def run(node: Node, argument: Any = None) -> Any:
    """Return the result of a closed program for an argument, or its value if it is not a function.

    Argument and result are Python objects, as `tffc.language.values.concrete` describes them.

    Raises:
      LanguageTypeError: the argument is not of the program's parameter type.
      LanguageValueError: its parts are for different numbers of clients, or the type of the program
        is too large when it is written out.
      ExecutionError: the program fails.
    """
    return invoke(node, node.type, argument)


def invoke(
    node: Node,
    type: Type,
    argument: Any,
    make: Callable[[int], Interpreter] | None = None,
    *,
    default_clients: int = 0,
    sequence: MakeSequence | None = None,
) -> Any:
    """Run a program as `run` does; its `type` may name the Python containers to use.

    `make` returns the interpreter for a number of clients, by default a plain one; this number is
    `default_clients` if the argument does not determine it.  `sequence` makes the Python object
    for a sequence in the result, by default a list.
    """
    check_parts(type)
    value, clients = None, default_clients
    if isinstance(type, FunctionType) and type.parameter is not None:
        value = to_value(argument, type.parameter, endless=True)
        clients = count_clients(value, type.parameter, default_clients)
    interpreter = (make or Interpreter)(clients)
    try:
        result = run_task(interpreter.evaluate(node, EMPTY))
        if isinstance(type, FunctionType):
            result = run_task(interpreter.apply(result, value))
    except TffcError as error:
        error.span = error.span or interpreter.span
        raise
    result_type = type.result if isinstance(type, FunctionType) else type
    return to_python(result, result_type, clients, sequence)


def count_clients(value: Any, type: Type, default: int = 0) -> int:
    """Return how many clients a value of `type` has parts for, or `default` if it has none.

    Raises:
      LanguageValueError: its parts are for different numbers of clients.
    """
    counts: dict[int, Type] = {}
    for part, leaf in zip(flatten(value, type), leaves(type), strict=True):
        if isinstance(part, Federated) and not part.all_equal:
            counts.setdefault(len(part.members), leaf)
    if len(counts) > 1:
        (first, one), (second, other), *_ = counts.items()
        raise LanguageValueError(
            "E723",
            f"the argument gives values of type `{one}` for {first} clients, but values of type "
            f"`{other}` for {second}",
            help="give each list as many values as there are clients",
        )
    return next(iter(counts), default)


EMPTY: Environment[Any] = Environment()


@dataclasses.dataclass(frozen=True, slots=True)
class Closure:
    """A function of the program, with the scope in which it was created."""

    function: Lambda
    scope: Environment[Any]


class Interpreter:
    """An evaluator of programs for a number of clients; `span` is the current line of the user."""

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.span: Span | None = None

    def evaluate(self, node: Node, scope: Environment[Any]) -> Task[Any]:
        """Return the value of a node."""
        match node:
            case Literal():
                return node.value
            case Reference():
                return _find(node.name, scope)
            case Selection():
                return (yield self.evaluate(node.source, scope))[node.index]
            case StructNode():
                return (yield self._evaluate_struct(node, scope))
            case Lambda():
                return Closure(node, scope)
            case Call():
                function = yield self.evaluate(node.function, scope)
                argument = None
                if node.argument is not None:
                    argument = yield self.evaluate(node.argument, scope)
                return (yield self.apply(function, argument))
            case Block():
                return (yield self._evaluate_block(node, scope))
            case Intrinsic(uri="generic_zero"):
                return arithmetic.zeros(node.type)
            case Compiled() | Intrinsic():
                return node
            case PlacementNode():
                return node.literal
            case Data():
                raise ExecutionError(
                    "E741",
                    f"the program uses data of type `{node.type}` that only the system it was "
                    "written for can find",
                    help="take the value as an argument of the program in place of the data",
                )

    def _evaluate_struct(self, node: StructNode, scope: Environment[Any]) -> Task[tuple[Any, ...]]:
        values: list[Any] = []
        for value in node.values:
            values.append((yield self.evaluate(value, scope)))
        return tuple(values)

    def _evaluate_block(self, node: Block, scope: Environment[Any]) -> Task[Any]:
        outer = self.span
        for local in node.locals:
            self.span = local.span or outer
            scope = scope.bind(local.name, (yield self.evaluate(local.value, scope)))
        self.span = outer
        return (yield self.evaluate(node.result, scope))

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        """Return the result of a function value for an argument, which is None if it takes none."""
        match function:
            case Closure():
                scope = function.scope
                if function.function.parameter_name is not None:
                    scope = scope.bind(function.function.parameter_name, argument)
                return (yield self.evaluate(function.function.result, scope))
            case Compiled():
                return self.run_section(function, argument)
            case Intrinsic():
                return (yield self.apply_operator(function, argument))
            case _:
                # A computation that the caller passed as an argument.
                value = yield self.evaluate(function, EMPTY)
                return (yield self.apply(value, argument))

    def run_section(self, section: Compiled, argument: Any) -> Any:
        """Return the result of a section; subclasses that observe runs override this."""
        return run_section(section, argument)

    def apply_operator(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        """Return the result of an operator; subclasses that observe runs override this."""
        assert isinstance(operator.type, FunctionType)
        if operator.uri in OPERATORS:
            return OPERATORS[operator.uri](self.clients, operator.type, argument)
        if operator.uri in CALLING_OPERATORS:
            return (yield CALLING_OPERATORS[operator.uri](self, argument))
        raise ExecutionError(
            "E741",
            f"the program uses the operator {operator.uri!r}, which is not known here",
            help="write it with operators of the language, or replace it in a pass",
        )


def _find(name: str, scope: Environment[Any]) -> Any:
    value = scope.find(name)
    if value is None:
        raise ExecutionError(
            "E741",
            f"the program uses {name!r}, which nothing binds",
            help="a computation that uses values of another one cannot be run by itself",
        )
    return value
