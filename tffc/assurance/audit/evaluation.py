"""The evaluation of a program's expressions on what is known of values, in place of values."""

from __future__ import annotations

import abc
from typing import Any

from tffc.language.intrinsics import EVALUATIONS, MAPS, PLACEMENTS_ONLY
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.types import FunctionType
from tffc.support.guards import is_tuple
from tffc.support.trampoline import Task, run


class AbstractEvaluator(abc.ABC):
    """Evaluates expressions of a flat program; the value of a struct is a tuple, and that of a
    function its node.

    A flat program binds each name once, so `values` holds everything in scope.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    @abc.abstractmethod
    def constant(self, node: Node) -> Any:
        """Return what is known of a node that depends on no other."""

    @abc.abstractmethod
    def section(self, section: Compiled, argument: Any) -> Any:
        """Return the result of a section; `argument` is None if it takes none."""

    @abc.abstractmethod
    def operate(self, operator: Intrinsic, argument: Any) -> Task[Any] | Any:
        """Return the result, or the task, of an operator that neither communicates nor does nothing
        but apply a function."""

    def value(self, node: Node) -> Any:
        """Return what is known of an expression's value."""
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
            case _:
                return self.constant(node)

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        """Return the result of a function for an argument."""
        match function:
            case Lambda():
                if function.parameter_name is not None:
                    self.values[function.parameter_name] = argument
                return (yield self._evaluate(function.result))
            case Compiled():
                return self.section(function, argument)
            case Intrinsic(uri=uri) if uri in PLACEMENTS_ONLY:
                return argument
            case Intrinsic(uri=uri) if uri in MAPS:
                mapped, value = argument
                return (yield self.apply(mapped, value))
            case Intrinsic(uri=uri) if uri in EVALUATIONS:
                return (yield self.apply(argument, None))
            case _:
                return (yield self.operate(function, argument))
