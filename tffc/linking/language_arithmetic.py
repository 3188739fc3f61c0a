"""Arithmetic as calls of the language's own operators, for programs without TensorFlow graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tffc.language.alpha import Names
from tffc.language.array import to_array
from tffc.language.calls import pack
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, StructType, TensorType, Type
from tffc.linking.aggregations import Arithmetic, Value
from tffc.support.guards import is_tuple

MOST_ONES = 4096
"""The most numbers in a constant that is written into a program."""


class NotInLanguageError(Exception):
    """The language has no operator for it."""


class LanguageArithmetic:
    """Arithmetic on expressions; see `tffc.linking.aggregations.Arithmetic`.

    `bindings` has the calls so far.  What the language has no operator for raises
    `NotInLanguageError`.
    """

    def __init__(self, names: Names) -> None:
        self.bindings: list[Binding] = []
        self._names = names

    def plus(self, first: Value, second: Value) -> Node:
        return self._combine("generic_plus", first, second)

    def multiply(self, first: Value, second: Value) -> Node:
        return self._combine("generic_multiply", first, second)

    def divide(self, first: Value, second: Value) -> Node:
        if any(_number(leaf).element_type.is_integer for leaf in leaves(_node(first).type)):
            raise NotInLanguageError
        return self._combine("generic_divide", first, second)

    def ones(self, value: Value, kind: Type) -> Node:
        constants = [_ones(_number(leaf)) for leaf in leaves(kind)]
        if sum(math.prod(constant.value.shape) for constant in constants) > MOST_ONES:
            raise NotInLanguageError
        if isinstance(kind, TensorType):
            return constants[0]
        if not isinstance(kind, StructType) or any(isinstance(t, StructType) for t in kind):
            raise NotInLanguageError
        return StructNode(tuple(constants), kind.names)

    def operand(self, node: Node) -> NoReturn:
        raise NotInLanguageError

    def apply(self, function: Node, argument: Value) -> NoReturn:
        raise NotInLanguageError

    def zeros(self, kind: Type) -> NoReturn:
        raise NotInLanguageError

    def dtype_limits(self, kind: Type, largest: bool) -> NoReturn:
        raise NotInLanguageError

    def minimum(self, first: Value, second: Value) -> NoReturn:
        raise NotInLanguageError

    def maximum(self, first: Value, second: Value) -> NoReturn:
        raise NotInLanguageError

    def _combine(self, uri: str, first: Value, second: Value) -> Node:
        one, other = _node(first), _node(second)
        if not one.type.is_equivalent_to(other.type):
            raise NotInLanguageError
        type = FunctionType(StructType([one.type, other.type]), one.type)
        call = Call(Intrinsic(uri, type), pack((one, other)))
        name = self._names.numbered(uri.removeprefix("generic_"))
        self.bindings.append(Binding(name, call))
        return Reference(name, call.type)


def language_function(
    names: Names, parameter: Type, result: Type, compute: Callable[[Arithmetic, Any], Value]
) -> Lambda | None:
    """Return the function of the language that computes `compute` of its parameter, of which it
    takes the elements apart; None if the language has no operators for it."""
    by = LanguageArithmetic(names)
    argument = Reference(names.numbered("value"), parameter)
    taken: Any = argument
    if isinstance(parameter, StructType):
        taken = tuple(Selection(argument, index) for index in range(len(parameter)))
    try:
        value = compute(by, taken)
    except NotInLanguageError:
        return None
    node = _node(value)
    if not result.is_equivalent_to(node.type):
        return None
    body = Block(tuple(by.bindings), node) if by.bindings else node
    return Lambda(argument.name, parameter, body)


def _node(value: Value) -> Node:
    return pack(map(_node, value)) if is_tuple(value) else value


def _number(leaf: Type) -> TensorType:
    if isinstance(leaf, TensorType) and leaf.element_type.is_numeric:
        return leaf
    raise NotInLanguageError


def _ones(leaf: TensorType) -> Literal:
    if not leaf.is_fully_defined():
        raise NotInLanguageError
    shape = tuple(size or 0 for size in leaf.shape or ())
    ones = to_array(np.ones(shape, leaf.element_type.dtype))
    return Literal(ones, ones.type)
