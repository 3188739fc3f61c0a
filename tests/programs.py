"""Hypothesis strategies for whole federated programs and for values of their types.

A generated round is closed, well typed and placed, of type
`(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.  It nests structs, shares results, calls
functions through other functions, captures, and uses few names, so that binders shadow each other.
Numbers stay small and fractions are halves, so that every order of summation gives the same.

Noisy rounds draw random numbers wherever code runs, also in their own aggregations, and their
values round.  Keyed rounds draw with values as seeds, so that each draw is the same on every path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.local_programs import (
    FLOAT,
    INT,
    KEYS,
    NAMES,
    PARTIAL,
    STRING,
    VECTOR,
    Known,
    LocalWriter,
    binary_section,
    constant_section,
    has_noise,
    integer,
    is_average,
    is_element,
    is_integer,
    is_numeric,
)
from tests.passes.write_sections import draw as random_number
from tffc.language import (
    CLIENTS,
    SERVER,
    Binding,
    Block,
    Call,
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
    at_clients,
    at_server,
    to_array,
)
from tffc.language.traverse import contains
from tffc.language.types import Placement


def member_types() -> st.SearchStrategy[Type]:
    """Types of values: tensors, also strings and of partial shape, sequences, and structs of them.

    Most can be added; empty structs are among them.
    """
    tensors = st.sampled_from([INT, FLOAT, VECTOR] * 3 + [KEYS, STRING, PARTIAL])
    structs = structs_of(st.sampled_from([INT, FLOAT, VECTOR]))
    element = st.one_of(tensors, structs.filter(lambda type_: contains(type_, TensorType)))
    leaves = st.integers(0, 5).flatmap(lambda n: tensors if n else element.map(SequenceType))
    return st.recursive(leaves, structs_of, max_leaves=4)


def noisy_types() -> st.SearchStrategy[Type]:
    """Types of values most of which noise can be added to."""
    floats = st.sampled_from([FLOAT, FLOAT, VECTOR])
    structs = structs_of(floats).filter(lambda type_: bool(type_.children()))
    sequences = floats.map(SequenceType)
    return st.one_of(floats, floats, structs, sequences, member_types())


def number_types() -> st.SearchStrategy[Type]:
    """Types of numbers, of known shapes, and structs of them, some of which are empty."""
    return st.recursive(st.sampled_from([INT, FLOAT, VECTOR]), structs_of, max_leaves=4)


def structs_of(element: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Structs of up to three elements, all named, none named, or some."""
    named = st.lists(element, min_size=0, max_size=3).map(
        lambda types: StructType([(name, t) for name, t in zip("mno", types, strict=False)])
    )
    unnamed = st.lists(element, min_size=0, max_size=3).map(StructType)
    return st.one_of(named, unnamed)


class Writer(LocalWriter):
    """Writes one program: what is in scope, and the bindings so far."""

    def __init__(
        self,
        draw: Callable[[st.SearchStrategy], Any],
        secure: bool,
        noisy: bool = False,
        keyed: bool = False,
    ) -> None:
        super().__init__(draw, noisy, keyed)
        self.secure = secure
        self.bindings: list[Binding] = []

    def bind(self, value: Node, *, late: bool = False) -> None:
        """Binds a value to one of the few names; what the name hid is no longer known."""
        name = self.name()
        self.hide(name)
        self.bindings.append(Binding(name, value))
        self.known.append(Known(Reference(name, value.type), late))

    def placed(self, placement: Placement, *, early: bool = False) -> Known | None:
        def accept(known: Known) -> bool:
            found = known.type
            return (
                isinstance(found, FederatedType)
                and found.placement is placement
                and not (early and known.late)
            )

        return self.choose(accept)

    def all_placed(self, placement: Placement) -> list[Node]:
        """Every value in scope that is placed there."""
        return [k.node for k in self.known if getattr(k.type, "placement", None) is placement]

    # Federated steps.

    def step(self) -> None:
        """Adds one operation, if what it needs is in scope."""
        actions = [self.map, self.map, self.zip, self.broadcast, self.constant]
        actions += [self.aggregate] * 4
        actions += [self.unplaced, self.select, self.random]
        actions += [self.add_noise] * 4 if self.noisy else []
        self.draw(st.sampled_from(actions))()

    def map(self) -> None:
        value = self.placed(self.draw(st.sampled_from([SERVER, CLIENTS])))
        if value is not None:
            self.bind(self.mapped(self.function(value.member), value.node), late=value.late)

    def mapped(self, function: Node, value: Node) -> Node:
        """A function applied where a value is; if it may draw, by each client for itself."""
        return mapped(function, value, keep_equal=not self.noisy)

    def add_noise(self) -> None:
        """Adds noise to a value where it is placed."""
        place = self.draw(st.sampled_from([SERVER, CLIENTS]))
        value = self.choose(
            lambda k: getattr(k.type, "placement", None) is place and has_noise(k.member)
        )
        if value is not None:
            parameter = Reference("n", value.member)
            function = Lambda("n", value.member, self.noise(parameter))
            self.bind(self.mapped(function, value.node), late=value.late)

    def unplaced(self) -> None:
        """Binds a number, or a function that may capture others, for later code to capture."""
        number = self.draw(st.sampled_from([INT, FLOAT]))
        if self.draw(st.booleans()):
            self.bind(Call(constant_section(self.draw(st.integers(0, 3)), number)))
            return
        placed = self.placed(self.draw(st.sampled_from([SERVER, CLIENTS])))
        self.bind(self.function(number if placed is None else placed.member))

    def select(self) -> None:
        """Each client's selection from a server value by keys from 0 to 3."""
        source = self.placed(SERVER, early=True)
        if source is None or not is_element(StructType([source.member, INT])):
            return
        keys: Node = Call(
            Intrinsic("federated_eval_at_clients", FunctionType(KEY_PAIR.type, at_clients(KEYS))),
            KEY_PAIR,
        )
        own = self.choose(lambda k: k.type == at_clients(KEYS))
        if own is not None:
            keys = mapped(limited(KEYS, 3), own.node)
        function = self.element_function(StructType([source.member, INT]))
        assert isinstance(function.type, FunctionType)
        most = Intrinsic("federated_value_at_server", FunctionType(INT, at_server(INT)))
        operands = StructNode((keys, Call(most, integer(4)), source.node, function))
        uri = self.draw(st.sampled_from(["federated_select", "federated_secure_select"]))
        result = at_clients(SequenceType(function.type.result))
        self.bind(Call(Intrinsic(uri, FunctionType(operands.type, result)), operands))

    def random(self) -> None:
        """One random number less itself: 0 as long as what stands once is drawn once."""
        section = random_number()
        if self.draw(st.booleans()):
            intrinsic = Intrinsic(
                "federated_eval_at_server", FunctionType(section.type, at_server(FLOAT))
            )
        else:
            intrinsic = Intrinsic(
                "federated_eval_at_clients", FunctionType(section.type, at_clients(FLOAT))
            )
        drawn = Call(intrinsic, section)
        name = self.name()
        once = Reference(name, drawn.type)
        both = zipped((once, once), (None, None))
        self.bind(Block((Binding(name, drawn),), mapped(difference_from_itself(), both)))

    def zip(self) -> None:
        placement = self.draw(st.sampled_from([SERVER, CLIENTS]))
        values = [v for v in (self.placed(placement) for _ in range(2)) if v is not None]
        if not values:
            return
        names = self.draw(st.sampled_from([(None, None), ("u", "v"), ("u", None)]))[: len(values)]
        call = zipped(tuple(v.node for v in values), tuple(names))
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
        literal = Literal(to_array(type_.element_type.dtype.type(number)), type_)
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
        kinds += ["secure"] * 4 if self.secure and is_integer(member) else []
        kind = self.draw(st.sampled_from(kinds))
        if kind == "aggregate":
            self.bind(self.own_aggregate(value.node, member), late=True)
        elif kind == "weighted":
            self.weighted_mean(value.node, member)
        elif kind == "secure":
            self.bind(self.secure_sum(value.node, member), late=True)
        else:
            type_ = FunctionType(at_clients(member), at_server(member))
            self.bind(Call(Intrinsic(kind, type_), value.node), late=True)

    def own_aggregate(self, value: Node, member: Type) -> Node:
        """A `federated_aggregate`, whose functions may add noise."""
        if not (self.noisy and has_noise(member)):
            return aggregate_call(value, member)

        def wrap(node: Node) -> Node:
            return self.noise(node) if self.draw(st.booleans()) else node

        return aggregate_call(value, member, wrap)

    def weighted_mean(self, value: Node, member: Type) -> None:
        """A mean with another value as the weight, if one fits."""
        weight = self.choose(lambda k: k.type in (at_clients(INT), at_clients(FLOAT)))
        if weight is None:
            return
        parameter = StructType([at_clients(member), weight.type])
        intrinsic = Intrinsic("federated_weighted_mean", FunctionType(parameter, at_server(member)))
        self.bind(Call(intrinsic, StructNode((value, weight.node))), late=True)

    def secure_sum(self, value: Node, member: Type) -> Node:
        """A secure sum of any kind; its bound is one number or one a leaf, constant or computed."""
        operator, least = self.draw(st.sampled_from(SECURE_SUMS))
        number: Node = integer(least)
        if self.draw(st.booleans()):
            number = Call(constant_section(least, INT))
        bound = number if self.draw(st.booleans()) else structured(member, number)
        clipped = mapped(limited(member, LIMIT), value)
        type_ = FunctionType(StructType([at_clients(member), bound.type]), at_server(member))
        return Call(Intrinsic(operator, type_), StructNode((clipped, bound)))


LIMIT = 1000
SECURE_SUMS = [
    ("federated_secure_sum", LIMIT),
    ("federated_secure_sum_bitwidth", 10),
    ("federated_secure_modular_sum", 1021),
]
"""The operators and a bound that fits values up to LIMIT."""

KEY_PAIR = Lambda(None, None, integer([1, 3]))


def mapped(function: Node, value: Node, *, keep_equal: bool = True) -> Node:
    """A function applied to a value where it is placed; also without losing that all agree."""
    found, signature = value.type, function.type
    assert isinstance(found, FederatedType)
    assert isinstance(signature, FunctionType)
    if found.placement is SERVER:
        uri, result = "federated_apply", at_server(signature.result)
    elif found.all_equal and keep_equal:
        uri, result = "federated_map_all_equal", at_clients(signature.result, all_equal=True)
    else:
        uri, result = "federated_map", at_clients(signature.result)
        found = at_clients(found.member)
    type_ = FunctionType(StructType([signature, found]), result)
    return Call(Intrinsic(uri, type_), StructNode((function, value)))


def zipped(values: tuple[Node, ...], names: tuple[str | None, ...]) -> Node:
    """Values of one placement as one value, a struct."""
    types = [value.type for value in values]
    at_the_server = all(isinstance(t, FederatedType) and t.placement is SERVER for t in types)
    at = at_server if at_the_server else at_clients
    uri = "federated_zip_at_server" if at_the_server else "federated_zip_at_clients"
    members = [t.member for t in types if isinstance(t, FederatedType)]
    member = StructType(list(zip(names, members, strict=True)))
    parameter = StructType(list(zip(names, map(at, members), strict=True)))
    return Call(Intrinsic(uri, FunctionType(parameter, at(member))), StructNode(values, names))


def difference_from_itself() -> Lambda:
    """The function `(<float32,float32> -> float32)` of the first number less the second."""
    pair = Reference("pair", StructType([FLOAT, FLOAT]))
    minus = Literal(to_array(FLOAT.element_type.dtype.type(-1)), FLOAT)
    negative = Call(binary_section("multiply", FLOAT), StructNode((Selection(pair, 1), minus)))
    total = Call(binary_section("plus", FLOAT), StructNode((Selection(pair, 0), negative)))
    return Lambda("pair", pair.type, total)


def limited(member: Type, most: int) -> Lambda:
    """The function that brings integers into the range from 0 to `most`."""
    value = Reference("value", member)
    above = Call(binary_section("maximum", member), StructNode((value, filled(member, 0))))
    within = Call(binary_section("minimum", member), StructNode((above, filled(member, most))))
    return Lambda("value", member, within)


def filled(member: Type, number: int) -> Node:
    """A constant of a type of integers, all of them `number`."""
    if isinstance(member, StructType):
        return StructNode.from_pairs(
            (name, filled(inner, number)) for name, inner in member.items()
        )
    assert member in (INT, KEYS)
    return integer(number if member == INT else [number] * 2)


def structured(member: Type, number: Node) -> Node:
    """A number for every leaf of `member`."""
    if isinstance(member, StructType):
        return StructNode.from_pairs(
            (name, structured(inner, number)) for name, inner in member.items()
        )
    return number


def aggregate_call(value: Node, member: Type, wrap: Callable[[Node], Node] | None = None) -> Node:
    """A `federated_aggregate` that sums and reports a pair; `wrap` is put around what each of its
    functions computes."""
    plus: Node = binary_section("plus", member)
    accumulate, merge, reported = plus, plus, Reference("r", member)
    if wrap is not None:
        pair = Reference("t", StructType([member, member]))
        accumulate, merge = (Lambda("t", pair.type, wrap(Call(plus, pair))) for _ in range(2))
        reported = wrap(reported)
    report = Lambda("r", member, StructNode((reported, Reference("r", member))))
    zero = Intrinsic("generic_zero", member)
    parameter = StructType([at_clients(member), member, plus.type, plus.type, report.type])
    type_ = FunctionType(parameter, at_server(report.type.result))
    operands = StructNode((value, zero, accumulate, merge, report))
    return Call(Intrinsic("federated_aggregate", type_), operands)


@st.composite
def rounds(
    draw: Any,
    *,
    secure: bool = False,
    noisy: bool = False,
    numbers: bool = False,
    keyed: bool = False,
    max_steps: int = 10,
) -> Node:
    """Closed programs of one round; with `numbers`, of numbers and clients' sequences of them; with
    `keyed`, drawing with values as seeds."""
    state, data = draw(parameter_types(noisy, numbers))
    writer, argument = begun(draw, state, data, secure, max_steps, noisy, keyed)
    at_the_server = writer.all_placed(SERVER)
    states = [node for node in at_the_server if node.type == at_server(state)]
    if not states:
        # Every value that could be the next state is hidden by another of its name.
        result = StructNode((Selection(argument, 0), StructNode(())))
        return Lambda(argument.name, argument.type, result)
    output = draw(st.sampled_from([StructNode(tuple(at_the_server)), at_the_server[-1]]))
    result = StructNode((draw(st.sampled_from(states)), output))
    return Lambda(argument.name, argument.type, Block(tuple(writer.bindings), result))


@st.composite
def broadcast_rounds(
    draw: Any,
    *,
    noisy: bool = False,
    numbers: bool = False,
    keyed: bool = False,
    max_steps: int = 10,
) -> Node:
    """Closed programs `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.

    Aggregates in them lead nowhere.
    """
    state, data = draw(parameter_types(noisy, numbers))
    writer, argument = begun(draw, state, data, False, max_steps, noisy, keyed)
    held = writer.all_placed(CLIENTS)
    if not held:
        # Every value at the clients is hidden by another of its name.
        return Lambda(argument.name, argument.type, Selection(argument, 1))
    result = draw(st.sampled_from([zipped(tuple(held), (None,) * len(held)), held[-1]]))
    return Lambda(argument.name, argument.type, Block(tuple(writer.bindings), result))


def parameter_types(noisy: bool, numbers: bool) -> st.SearchStrategy[tuple[Type, Type]]:
    """The types of a state and of what a client holds."""
    if numbers:
        element = number_types()
        some = element.filter(lambda type_: contains(type_, TensorType))
        return st.tuples(element, st.one_of(element, some.map(SequenceType)))
    types = noisy_types() if noisy else member_types()
    return st.tuples(types, types)


def begun(
    draw: Any,
    state: Type,
    data: Type,
    secure: bool,
    max_steps: int,
    noisy: bool = False,
    keyed: bool = False,
) -> tuple[Writer, Reference]:
    """The bindings of a program of a state and clients' data, and its parameter."""
    writer = Writer(draw, secure, noisy, keyed)
    parameter = draw(st.sampled_from(("p",) * 20 + NAMES))
    argument = Reference(parameter, StructType([("s", at_server(state)), ("d", at_clients(data))]))
    writer.known += [Known(Selection(argument, 0)), Known(Selection(argument, 1))]
    for _ in range(draw(st.integers(4, max_steps))):
        writer.step()
    return writer, argument


ROUNDING = (0.1, 0.2, 0.3, 0.7, -0.1, 1e8, -1e8, 1e-8)
"""Numbers whose sums depend on their order."""

NOT_FINITE = (float("nan"), float("inf"), float("-inf"))


def values(type_: Type, *, rounding: bool = False, extreme: bool = False) -> st.SearchStrategy[Any]:
    """Small values of a type without federated parts, as the interpreter takes them; or such that
    floating-point numbers do not add up exactly; or with numbers among them that are not finite or
    the least or the greatest, and longer sequences."""

    def again(inner: Type) -> st.SearchStrategy[Any]:
        return values(inner, rounding=rounding, extreme=extreme)

    match type_:
        case TensorType(element_type=DType.STRING):
            return st.sampled_from([b"", b"abc", b"\xff"])
        case TensorType():
            shape = tuple(3 if size is None else size for size in type_.shape or ())
            count = int(np.prod(shape, dtype=int))
            dtype = type_.element_type.dtype
            number: st.SearchStrategy[Any] = st.integers(-4, 4)
            if type_.element_type.is_floating:
                number = st.sampled_from(ROUNDING) if rounding else number.map(lambda n: n * 0.5)
            if extreme:
                is_integer = np.issubdtype(dtype, np.integer)
                limits = (np.iinfo(dtype).min, np.iinfo(dtype).max) if is_integer else NOT_FINITE
                number = st.one_of(*[number] * 5, st.sampled_from(limits))
            return st.lists(number, min_size=count, max_size=count).map(
                lambda numbers: np.array(numbers, dtype).reshape(shape)[()]
            )
        case StructType():
            return st.tuples(*map(again, type_.types))
        case SequenceType():
            return st.lists(again(type_.element), max_size=6 if extreme else 3)
    raise AssertionError(f"no values of type {type_}")
