"""Hypothesis strategies for whole federated programs and for values of their types.

A generated round is closed, well typed and placed, of type
`(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.  It nests structs, shares results, calls
functions through other functions, captures, and uses few names, so that binders shadow each other.
Numbers stay small and fractions are halves, so that every order of summation gives the same.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tffc.graphs import arithmetic
from tffc.graphs.builder import GraphBuilder
from tffc.ir import (
    CLIENTS,
    SERVER,
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
    Struct,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_array,
)
from tffc.ir.scope import free_names

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
VECTOR = TensorType(DType.FLOAT32, (2,))
NAMES = ("a", "b", "c", "d", "e", "x", "y", "z")
"""Few, so that programs shadow."""

BINARY = {
    "plus": arithmetic.plus,
    "multiply": arithmetic.multiply,
    "minimum": arithmetic.minimum,
    "maximum": arithmetic.maximum,
}


@functools.cache
def binary_section(operation: str, type_: Type) -> Compiled:
    """The section `(<T,T> -> T)` of an arithmetic operation."""
    builder = GraphBuilder()
    pair = builder.parameter(StructType([type_, type_]))
    assert isinstance(pair, tuple)
    first, second = pair
    return builder.finish(BINARY[operation](builder, first, second), type_)


@functools.cache
def constant_section(value: int, type_: TensorType) -> Compiled:
    """The section `( -> T)` of a constant."""
    builder = GraphBuilder()
    return builder.finish(builder.constant(to_array(type_.dtype.dtype.type(value))), type_)


def member_types() -> st.SearchStrategy[Type]:
    """Types of values that can be added: tensors and structs of them, also empty ones."""
    leaves = st.sampled_from([INT, FLOAT, VECTOR])
    return st.recursive(leaves, structs_of, max_leaves=4)


def structs_of(element: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Structs of up to three elements, all named, none named, or some."""
    named = st.lists(element, min_size=0, max_size=3).map(
        lambda types: StructType([(name, t) for name, t in zip("mno", types, strict=False)])
    )
    unnamed = st.lists(element, min_size=0, max_size=3).map(StructType)
    return st.one_of(named, unnamed)


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


class Writer:
    """Writes one program: what is in scope, and the bindings so far."""

    def __init__(self, draw: Callable[[st.SearchStrategy], Any], secure: bool) -> None:
        self.draw = draw
        self.secure = secure
        self.known: list[Known] = []
        self.bindings: list[Binding] = []

    # Scope.

    def bind(self, value: Node, *, late: bool = False) -> None:
        """Binds a value to one of the few names; what the name hid is no longer known."""
        name = self.draw(st.sampled_from(NAMES))
        self.known = [k for k in self.known if name not in free_names(k.node)]
        self.bindings.append(Binding(name, value))
        self.known.append(Known(Reference(name, value.type), late))

    def choose(self, accept: Callable[[Known], bool]) -> Known | None:
        """One of the known expressions that fits, or None if none does."""
        fitting = [known for known in self.known if accept(known)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def placed(self, placement: Any, *, early: bool = False) -> Known | None:
        def accept(known: Known) -> bool:
            found = known.type
            return (
                isinstance(found, FederatedType)
                and found.placement is placement
                and not (early and known.late)
            )

        return self.choose(accept)

    # Local code.

    def function(self, parameter: Type) -> Node:
        """A function of one argument of this type."""
        name = self.draw(st.sampled_from(NAMES))
        body = self.local(Reference(name, parameter), depth=2)
        function: Node = Lambda(name, parameter, body)
        if self.draw(st.booleans()):
            indirect = self.draw(st.sampled_from(NAMES))
            reference = Reference(indirect, function.type)
            function = Call(Lambda(indirect, function.type, reference), function)
        return function

    def local(self, value: Node, depth: int) -> Node:
        """An expression over `value`: arithmetic, structs, selections, lets and calls."""
        kinds = ["same", "pair", "let"]
        if is_numeric(value.type):
            kinds += ["binary", "binary"]
        if isinstance(value.type, StructType) and len(value.type):
            kinds += ["select", "select"]
        kind = "same" if depth == 0 else self.draw(st.sampled_from(kinds))
        match kind:
            case "binary":
                operation = self.draw(st.sampled_from(sorted(BINARY)))
                other = self.local(value, depth - 1)
                pair = (value, other if other.type == value.type else value)
                return Call(binary_section(operation, value.type), Struct(pair))
            case "pair":
                return Struct((value, self.local(value, depth - 1)), ("l", None))
            case "select":
                assert isinstance(value.type, StructType)
                index = self.draw(st.integers(0, len(value.type) - 1))
                return self.local(Selection(value, index), depth - 1)
            case "let":
                name = self.draw(st.sampled_from(NAMES))
                inner = self.local(Reference(name, value.type), depth - 1)
                if self.draw(st.booleans()):
                    return Call(Lambda(name, value.type, inner), value)
                return Block((Binding(name, value),), inner)
        return value

    # Federated steps.

    def step(self) -> None:
        """Adds one operation, if what it needs is in scope."""
        actions = [self.map, self.map, self.zip, self.broadcast, self.constant]
        actions += [self.aggregate] * 4
        self.draw(st.sampled_from(actions))()

    def map(self) -> None:
        value = self.placed(self.draw(st.sampled_from([SERVER, CLIENTS])))
        if value is None:
            return
        found = value.type
        assert isinstance(found, FederatedType)
        function = self.function(found.member)
        assert isinstance(function.type, FunctionType)
        result = function.type.result
        if found.placement is SERVER:
            uri, before, after = "federated_apply", at_server(found.member), at_server(result)
        else:
            uri, before, after = "federated_map", at_clients(found.member), at_clients(result)
        type_ = FunctionType(StructType([function.type, before]), after)
        self.bind(Call(Intrinsic(uri, type_), Struct((function, value.node))), late=value.late)

    def zip(self) -> None:
        placement = self.draw(st.sampled_from([SERVER, CLIENTS]))
        values = [v for v in (self.placed(placement) for _ in range(2)) if v is not None]
        if not values:
            return
        members = [v.member for v in values]
        names = self.draw(st.sampled_from([(None, None), ("u", "v"), ("u", None)]))[: len(values)]
        at = at_server if placement is SERVER else at_clients
        uri = "federated_zip_at_server" if placement is SERVER else "federated_zip_at_clients"
        member = StructType(list(zip(names, members, strict=True)))
        parameter = StructType(list(zip(names, map(at, members), strict=True)))
        argument = Struct(tuple(v.node for v in values), tuple(names))
        call = Call(Intrinsic(uri, FunctionType(parameter, at(member))), argument)
        self.bind(call, late=any(v.late for v in values))

    def broadcast(self) -> None:
        value = self.placed(SERVER, early=True)
        if value is None:
            return
        member = value.member
        type_ = FunctionType(at_server(member), at_clients(member, all_equal=True))
        self.bind(Call(Intrinsic("federated_broadcast", type_), value.node))

    def constant(self) -> None:
        type_ = self.draw(st.sampled_from([INT, FLOAT]))
        number = self.draw(st.integers(0, 3))
        section = constant_section(number, type_)
        literal = Literal(to_array(type_.dtype.dtype.type(number)), type_)
        match self.draw(st.integers(0, 3)):
            case 0:
                intrinsic = Intrinsic(
                    "federated_value_at_server", FunctionType(type_, at_server(type_))
                )
                self.bind(Call(intrinsic, literal))
            case 1:
                everywhere = at_clients(type_, all_equal=True)
                intrinsic = Intrinsic("federated_value_at_clients", FunctionType(type_, everywhere))
                self.bind(Call(intrinsic, Call(section)))
            case 2:
                intrinsic = Intrinsic(
                    "federated_eval_at_server", FunctionType(section.type, at_server(type_))
                )
                self.bind(Call(intrinsic, section))
            case 3:
                intrinsic = Intrinsic(
                    "federated_eval_at_clients", FunctionType(section.type, at_clients(type_))
                )
                self.bind(Call(intrinsic, section))

    def aggregate(self) -> None:
        value = self.choose(
            lambda k: (
                isinstance(k.type, FederatedType)
                and k.type.placement is CLIENTS
                and is_numeric(k.type.member)
            )
        )
        if value is None:
            return
        member = value.member
        kinds = ["federated_sum", "federated_min", "federated_max", "aggregate"]
        kinds += ["federated_mean", "weighted"] if is_average(member) else []
        kinds += ["secure"] if self.secure and is_integer(member) else []
        kind = self.draw(st.sampled_from(kinds))
        if kind == "aggregate":
            self.bind(aggregate_call(value.node, member), late=True)
        elif kind == "weighted":
            self.weighted_mean(value.node, member)
        elif kind == "secure":
            self.bind(secure_call(value.node, member, self.draw(st.booleans())), late=True)
        else:
            type_ = FunctionType(at_clients(member), at_server(member))
            self.bind(Call(Intrinsic(kind, type_), value.node), late=True)

    def weighted_mean(self, value: Node, member: Type) -> None:
        """A mean with another value as the weight, if one fits."""
        weight = self.choose(lambda k: k.type in (at_clients(INT), at_clients(FLOAT)))
        if weight is None:
            return
        parameter = StructType([at_clients(member), weight.type])
        intrinsic = Intrinsic("federated_weighted_mean", FunctionType(parameter, at_server(member)))
        self.bind(Call(intrinsic, Struct((value, weight.node))), late=True)


def aggregate_call(value: Node, member: Type) -> Node:
    """A `federated_aggregate` that sums and reports a pair."""
    plus = binary_section("plus", member)
    report = Lambda("r", member, Struct((Reference("r", member), Reference("r", member))))
    zero = Intrinsic("generic_zero", member)
    parameter = StructType([at_clients(member), member, plus.type, plus.type, report.type])
    type_ = FunctionType(parameter, at_server(report.type.result))
    operands = Struct((value, zero, plus, plus, report))
    return Call(Intrinsic("federated_aggregate", type_), operands)


def secure_call(value: Node, member: Type, modular: bool) -> Node:
    """A secure sum of integers; every leaf has a bound of its own."""
    uri = "federated_secure_modular_sum" if modular else "federated_secure_sum"
    bound = bounds(member, 1021 if modular else 10**6)
    type_ = FunctionType(StructType([at_clients(member), bound.type]), at_server(member))
    return Call(Intrinsic(uri, type_), Struct((value, bound)))


def bounds(member: Type, bound: int) -> Node:
    """A constant of the structure of `member`."""
    if isinstance(member, StructType):
        return Struct.from_pairs((name, bounds(inner, bound)) for name, inner in member.items())
    return Literal(to_array(bound), INT)


def is_numeric(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return all(map(is_numeric, type_))
    return isinstance(type_, TensorType)


def is_average(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return all(map(is_average, type_))
    return isinstance(type_, TensorType) and type_.dtype.is_floating


def is_integer(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return bool(len(type_)) and all(map(is_integer, type_))
    return isinstance(type_, TensorType) and type_.dtype.is_integer


@st.composite
def rounds(draw: Any, *, secure: bool = False, max_steps: int = 10) -> Node:
    """Closed programs of one round."""
    state, data = draw(member_types()), draw(member_types())
    writer = Writer(draw, secure)
    parameter = draw(st.sampled_from(("p", "p", *NAMES)))
    argument = Reference(parameter, StructType([("s", at_server(state)), ("d", at_clients(data))]))
    writer.known += [Known(Selection(argument, 0)), Known(Selection(argument, 1))]
    for _ in range(draw(st.integers(2, max_steps))):
        writer.step()
    at_the_server = [k.node for k in writer.known if getattr(k.type, "placement", None) is SERVER]
    states = [node for node in at_the_server if node.type == at_server(state)]
    if not states:
        # Every value that could be the next state is hidden by another of its name.
        return Lambda(parameter, argument.type, Struct((Selection(argument, 0), Struct(()))))
    output = draw(st.sampled_from([Struct(tuple(at_the_server)), at_the_server[-1]]))
    result = Struct((draw(st.sampled_from(states)), output))
    return Lambda(parameter, argument.type, Block(tuple(writer.bindings), result))


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Small values of a type without federated parts, as the interpreter takes them."""
    import numpy as np

    match type_:
        case TensorType():
            shape = tuple(3 if size is None else size for size in type_.shape or ())
            count = int(np.prod(shape, dtype=int))
            scale = 0.5 if type_.dtype.is_floating else 1
            numbers = st.lists(st.integers(-4, 4), min_size=count, max_size=count)
            return numbers.map(
                lambda n: np.array([i * scale for i in n], type_.dtype.dtype).reshape(shape)[()]
            )
        case StructType():
            return st.tuples(*map(values, type_.types))
        case SequenceType():
            return st.lists(values(type_.element), max_size=3)
    raise AssertionError(f"no values of type {type_}")
