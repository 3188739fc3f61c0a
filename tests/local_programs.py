"""Local code of generated programs: sections, and expressions over what is in scope.

Functions are bound to names, hidden, captured, passed to others and called; the few names make
binders shadow each other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tffc.graphs.proto import AttrValue
from tffc.language import (
    Binding,
    Block,
    Call,
    Compiled,
    DType,
    FederatedType,
    FunctionType,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    SequenceType,
    StructNode,
    StructType,
    TensorType,
    Type,
    to_array,
)
from tffc.language.scope import free_names
from tffc.language.traverse import contains
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.attributes import type_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
VECTOR = TensorType(DType.FLOAT32, (2,))
KEYS = TensorType(DType.INT32, (2,))
PARTIAL = TensorType(DType.FLOAT32, (None,))
STRING = TensorType(DType.STRING)
NAMES = ("a", "b", "c", "d", "e", "x", "y", "z")
"""Few, so that programs shadow."""

BINARY = {
    "plus": GraphArithmetic.plus,
    "multiply": GraphArithmetic.multiply,
    "minimum": GraphArithmetic.minimum,
    "maximum": GraphArithmetic.maximum,
}


@functools.cache
def binary_section(operation: str, type_: Type) -> Compiled:
    """The section `(<T,T> -> T)` of an arithmetic operation."""
    builder = GraphBuilder()
    pair = builder.parameter(StructType([type_, type_]))
    assert isinstance(pair, tuple)
    first, second = pair
    return builder.finish(BINARY[operation](GraphArithmetic(builder), first, second), type_)


@functools.cache
def noise_section(type_: Type, scale: int) -> Compiled:
    """The section `(T -> T)` that adds to every number one of its own, below `scale`."""
    builder = GraphBuilder()
    value = builder.parameter(type_)
    drawn = _drawn(builder, type_)
    factor = GraphArithmetic(builder).multiply(drawn, _filled(builder, type_, scale))
    return builder.finish(GraphArithmetic(builder).plus(value, factor), type_)


def _drawn(builder: GraphBuilder, type_: Type) -> Operand:
    if isinstance(type_, StructType):
        return tuple(_drawn(builder, inner) for inner in type_.types)
    assert isinstance(type_, TensorType)
    shape = builder.constant(to_array(np.asarray(type_.shape, np.int32)))
    assert isinstance(shape, Tensor)
    attributes = {"T": type_attribute(INT), "dtype": type_attribute(type_)}
    return builder.add("RandomUniform", [shape], attributes, [type_])[0]


def _filled(builder: GraphBuilder, type_: Type, number: int) -> Operand:
    if isinstance(type_, StructType):
        return tuple(_filled(builder, inner, number) for inner in type_.types)
    assert isinstance(type_, TensorType)
    return builder.filled(type_, number)


KEYED = ("uniform", "normal", "integers", "fresh")
"""Draws under a value as the seed, by `keyed_section`; the last ones are without a seed."""

LARGEST = 10**6
"""The largest number of a seed."""

_SEED, _LONG = TensorType(DType.INT32, (2,)), TensorType(DType.UINT64, (1,))


@functools.cache
def keyed_section(kind: str, type_: TensorType) -> Compiled:
    """The section `(T -> T)` that adds to a number or two a draw with these as the seed.

    It is a half or a whole number, so that every order of summation gives the same.  What is drawn
    without a seed is rounded to 0.
    """
    builder = GraphBuilder()
    value = builder.parameter(type_)
    assert isinstance(value, Tensor)
    counts = [builder.constant(to_array(np.int32(each))) for each in (1, 0, -3, 4)]
    algorithm, _, least, end = (each for each in counts if isinstance(each, Tensor))
    shape = builder.constant(to_array(np.asarray(type_.shape, np.int32)))
    assert isinstance(shape, Tensor)
    whole = {"dtype": type_attribute(INT), "Tshape": type_attribute(INT)}
    real = {"dtype": type_attribute(FLOAT), "Tshape": type_attribute(INT)}
    key = [shape, *_key(builder, value), algorithm]
    floats = TensorType(DType.FLOAT32, type_.shape)
    integers = TensorType(DType.INT32, type_.shape)
    match kind:
        case "integers":
            inputs = [*key, least, end]
            drawn = builder.add("StatelessRandomUniformIntV2", inputs, whole, [integers])[0]
        case "fresh":
            anew = {"T": type_attribute(INT), "dtype": type_attribute(FLOAT)}
            (uniform,) = builder.add("RandomUniform", [shape], anew, [floats])
            drawn = builder.add_typed("Floor", [uniform])
        case _:
            op = f"StatelessRandom{kind.capitalize()}V2"
            (drawn,) = builder.add(op, key, real, [floats])
            drawn = builder.add_typed("Mul", [drawn, builder.filled(floats, 4)])
            drawn = builder.add_typed("Mul", [builder.add_typed("Floor", [drawn]), _half(builder)])
    added = GraphArithmetic(builder).cast(drawn, type_.element_type)
    return builder.finish(GraphArithmetic(builder).plus(value, added), type_)


def _half(builder: GraphBuilder) -> Tensor:
    return builder.filled(FLOAT, 0.5)


def _key(builder: GraphBuilder, value: Tensor) -> list[Tensor]:
    """The key and the counter of draws with one or two numbers as the seed."""
    arithmetic = GraphArithmetic(builder)
    assert isinstance(value.type, TensorType)
    # A cast of what an integer cannot hold is undefined.
    least, most = (builder.filled(value.type, number) for number in (-LARGEST, LARGEST))
    within = arithmetic.maximum(arithmetic.minimum(value, most), least)
    seed = arithmetic.cast(within, DType.INT32)
    assert isinstance(seed, Tensor)
    if not value.type.shape:
        attributes = {"N": AttrValue(i=2), "T": type_attribute(INT), "axis": AttrValue(i=0)}
        (seed,) = builder.add("Pack", [seed, seed], attributes, [_SEED])
    types = [_LONG, TensorType(DType.UINT64, (2,))]
    attributes = {"Tseed": type_attribute(INT)}
    return builder.add("StatelessRandomGetKeyCounter", [seed], attributes, types)


@functools.cache
def constant_section(value: int, type_: TensorType) -> Compiled:
    """The section `( -> T)` of a constant."""
    builder = GraphBuilder()
    return builder.finish(builder.constant(to_array(type_.element_type.dtype.type(value))), type_)


@dataclasses.dataclass(frozen=True)
class Known:
    """An expression in scope.  `late` marks server values that depend on an aggregate."""

    node: Node
    late: bool = False

    @property
    def type(self) -> Type:
        return self.node.type

    @property
    def member(self) -> Type:
        """The member type of a federated value."""
        assert isinstance(self.type, FederatedType)
        return self.type.member


class LocalWriter:
    """Writes expressions without a placement, over what is in scope; if `noisy`, with noise, and if
    `keyed`, with draws that values are the seeds of."""

    def __init__(
        self, draw: Callable[[st.SearchStrategy], Any], noisy: bool = False, keyed: bool = False
    ) -> None:
        self.draw = draw
        self.noisy = noisy
        self.keyed = keyed
        self.known: list[Known] = []

    def name(self) -> str:
        return self.draw(st.sampled_from(NAMES))

    def hide(self, name: str) -> None:
        """Forgets what a new binder of this name hides."""
        self.known = [k for k in self.known if name not in free_names(k.node)]

    def choose(self, accept: Callable[[Known], bool]) -> Known | None:
        """One of the known expressions that fits, or None if none does."""
        fitting = [known for known in self.known if accept(known)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    @contextlib.contextmanager
    def inside(self, name: str, type_: Type) -> Iterator[Reference]:
        """The scope of a binder; what is known outside and not hidden can be captured."""
        outer = self.known
        self.hide(name)
        reference = Reference(name, type_)
        self.known = [*self.known, Known(reference)]
        yield reference
        self.known = outer

    def function(self, parameter: Type) -> Node:
        """A function of one argument of this type: one in scope, or a new one."""
        bound = self.choose(lambda k: is_function_of(k.type, parameter))
        if bound is not None and self.draw(st.booleans()):
            return bound.node
        name = self.name()
        with self.inside(name, parameter) as reference:
            body = self.local(reference, depth=2)
        function: Node = Lambda(name, parameter, body)
        if self.draw(st.booleans()):
            indirect = self.name()
            reference = Reference(indirect, function.type)
            function = Call(Lambda(indirect, function.type, reference), function)
        return function

    def element_function(self, parameter: Type) -> Node:
        """As `function`, with a result that can be an element of a sequence."""
        function = self.function(parameter)
        assert isinstance(function.type, FunctionType)
        result = function.type.result
        if not is_element(result):
            return identity(self.name(), parameter)
        return function

    def local(self, value: Node, depth: int) -> Node:
        """An expression over `value`: arithmetic, structs, selections, lets and calls."""
        kinds = self._kinds(value.type)
        kind = "same" if depth == 0 else self.draw(st.sampled_from(kinds))
        match kind:
            case "binary":
                operation = self.draw(st.sampled_from(sorted(BINARY)))
                other = self._other(value, depth - 1)
                return Call(binary_section(operation, value.type), StructNode((value, other)))
            case "pair":
                return StructNode((value, self.local(value, depth - 1)), ("l", None))
            case "select":
                assert isinstance(value.type, StructType)
                index = self.draw(st.integers(0, len(value.type) - 1))
                return self.local(Selection(value, index), depth - 1)
            case "let":
                return self._let(value, depth)
            case "call":
                return self._call(value, depth)
            case "shadowed":
                return self._shadowed(value, depth)
            case "captured":
                captured = self.choose(lambda k: is_value(k.type))
                return value if captured is None else StructNode((captured.node, value))
            case "sequence":
                return self.local(self._over_sequence(value), depth - 1)
            case "noise":
                return self.local(self.noise(value), depth - 1)
            case "keyed":
                assert isinstance(value.type, TensorType)
                section = keyed_section(self.draw(st.sampled_from(KEYED)), value.type)
                return self.local(Call(section, value), depth - 1)
        return value

    def _kinds(self, type_: Type) -> list[str]:
        """What an expression over a value of a type can be, some of it more often."""
        kinds = ["same", "pair", "let", "call", "captured", "shadowed"]
        kinds += ["binary"] * 2 if is_numeric(type_) else []
        kinds += ["select"] * 2 if isinstance(type_, StructType) and len(type_) else []
        kinds += ["sequence"] * 4 if isinstance(type_, SequenceType) else []
        kinds += ["noise"] * 4 if self.noisy and has_noise(type_) else []
        kinds += ["keyed"] * 6 if self.keyed and is_seed(type_) else []
        return kinds

    def noise(self, value: Node) -> Node:
        """The value with one of few kinds of noise, so that equal sections stand in many places."""
        return Call(noise_section(value.type, self.draw(st.integers(1, 2))), value)

    def _other(self, value: Node, depth: int) -> Node:
        """A second operand of the type of `value`, captured or made of it."""
        captured = self.choose(lambda k: k.type == value.type)
        if captured is not None and self.draw(st.booleans()):
            return captured.node
        other = self.local(value, depth)
        return other if other.type == value.type else value

    def _let(self, value: Node, depth: int) -> Node:
        name = self.name()
        with self.inside(name, value.type) as reference:
            inner = self.local(reference, depth - 1)
        if self.draw(st.booleans()):
            return Call(Lambda(name, value.type, inner), value)
        return Block((Binding(name, value),), inner)

    def _call(self, value: Node, depth: int) -> Node:
        """A call of a function: as it is, by its name, or through one that takes functions."""
        function = self.function(value.type) if depth > 1 else identity(self.name(), value.type)
        name = self.name()
        match self.draw(st.integers(0, 2)):
            case 0:
                return Call(function, value)
            case 1 if name not in free_names(value):
                called = Call(Reference(name, function.type), value)
                return Block((Binding(name, function),), called)
            case _:
                pair = StructType([function.type, value.type])
                both = Reference(name, pair)
                called = Call(Selection(both, 0), Selection(both, 1))
                return Call(Lambda(name, pair, called), StructNode((function, value)))

    def _shadowed(self, value: Node, depth: int) -> Node:
        """A function that captures a name, called where that name is bound to something else."""
        names = [name for name in NAMES if name not in free_names(value)]
        captured, parameter, function = self.draw(st.permutations(names))[:3]
        with self.inside(captured, value.type) as outer:
            with self.inside(parameter, value.type) as inner:
                body = StructNode((outer, self.local(inner, depth - 1)))
            made = Lambda(parameter, value.type, body)
            with self.inside(function, made.type) as reference:
                other = self.local(outer, depth - 1)
        bindings = (Binding(captured, value), Binding(function, made), Binding(captured, other))
        result = StructNode((Call(reference, value), Reference(captured, other.type)))
        return Block(bindings, result)

    def _over_sequence(self, value: Node) -> Node:
        """The elements mapped, their sum, or a reduction of them."""
        type_ = value.type
        assert isinstance(type_, SequenceType)
        element = type_.element
        kinds = ["map", "map", *(["sum", "reduce"] if is_numeric(element) else [])]
        match self.draw(st.sampled_from(kinds)):
            case "sum":
                signature = FunctionType(type_, element)
                return Call(Intrinsic("sequence_sum", signature), value)
            case "reduce":
                name, pair = self.name(), StructType([element, element])
                operation = binary_section(self.draw(st.sampled_from(sorted(BINARY))), element)
                step = Lambda(name, pair, Call(operation, Reference(name, pair)))
                operands = StructNode((value, Intrinsic("generic_zero", element), step))
                signature = FunctionType(operands.type, element)
                return Call(Intrinsic("sequence_reduce", signature), operands)
        function = self.element_function(element)
        assert isinstance(function.type, FunctionType)
        mapped = SequenceType(function.type.result)
        signature = FunctionType(StructType([function.type, type_]), mapped)
        return Call(Intrinsic("sequence_map", signature), StructNode((function, value)))


def identity(name: str, type_: Type) -> Lambda:
    return Lambda(name, type_, Reference(name, type_))


def integer(value: Any) -> Literal:
    array = to_array(np.asarray(value, np.int32))
    return Literal(array, array.type)


def is_function_of(type_: Type, parameter: Type) -> bool:
    return isinstance(type_, FunctionType) and type_.parameter == parameter


def is_value(type_: Type) -> bool:
    """Whether this is the type of a value without a placement that is not a function."""
    if isinstance(type_, StructType):
        return all(map(is_value, type_))
    return isinstance(type_, (TensorType, SequenceType))


def is_element(type_: Type) -> bool:
    """Whether TensorFlow has sequences of the type: it has tensors, and names for all or none."""
    if contains(type_, SequenceType) or not contains(type_, TensorType):
        return False
    return all(len({name is None for name in part.names}) < 2 for part in structs_in(type_))


def structs_in(type_: Type) -> list[StructType]:
    """Every struct that the type of a value holds, itself included."""
    if not isinstance(type_, StructType):
        return []
    return [type_, *(inner for part in type_.types for inner in structs_in(part))]


def is_numeric(type_: Type) -> bool:
    """Whether values of the type have a sum: numbers of a known shape, and structs of them."""
    if isinstance(type_, StructType):
        return all(map(is_numeric, type_))
    return isinstance(type_, TensorType) and type_ not in (STRING, PARTIAL)


def is_seed(type_: Type) -> bool:
    """Whether values of the type are one number or two."""
    return type_ in (INT, FLOAT, VECTOR, KEYS)


def is_average(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return all(map(is_average, type_))
    return is_numeric(type_) and isinstance(type_, TensorType) and type_.element_type.is_floating


def has_noise(type_: Type) -> bool:
    """Whether noise can be added to values of the type, and it has a number at all."""
    return is_average(type_) and contains(type_, TensorType)


def is_integer(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return bool(len(type_)) and all(map(is_integer, type_))
    return isinstance(type_, TensorType) and type_.element_type.is_integer
