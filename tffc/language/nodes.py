"""The eleven building blocks of a program.

    Reference x          Selection e[0], e.a     Struct <a=e,f>       Call f(e)
    Lambda (x -> e)      Block (let x=e in f)    Intrinsic uri        Data
    Compiled comp#name   Placement CLIENTS       Literal 7

Nodes are immutable, hashed once, compared by content, and well typed by construction: a
constructor refuses operands whose types do not fit.  Scope is the verifier's business, so a
reference may stand anywhere.  Where bindings and lambdas came from in the user's source is kept
beside them and is not part of their content.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias

from tffc.language.array import Array
from tffc.language.containers.struct import Elements
from tffc.language.intrinsics import check_instance
from tffc.language.notation.labels import SectionName, data_name, literal_text
from tffc.language.notation.lines import compact, formatted
from tffc.language.notation.pieces import Mark, bracketed, listed
from tffc.language.notation.python_text import python_text
from tffc.language.shapes import shape_is_assignable
from tffc.language.term import Term
from tffc.language.types import (
    FunctionType,
    Placement,
    PlacementType,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
)
from tffc.support.errors import LanguageTypeError, LanguageValueError, Span
from tffc.support.near import did_you_mean
from tffc.support.printable import printable


class NodeBase(Term):
    """The base of all nodes: a type, and the text of the compact notation as `str`."""

    __slots__ = ()

    def compact_representation(self) -> str:
        return compact(self)

    def formatted_representation(self) -> str:
        return formatted(self)

    def pieces(self, section_name: SectionName) -> list[Any]:
        """Return the pieces of the compact and the formatted text, the nodes inside among them."""
        raise AssertionError(f"{type(self).__name__} does not define its text")

    def __str__(self) -> str:
        return compact(self)

    def __repr__(self) -> str:
        """Return the Python expression that makes the node; a long one is cut short."""
        return python_text(self)

    def _repr_html_(self) -> str:
        from tffc.language.notation.cell import notation_cell

        return notation_cell(type(self).__name__, formatted(self))


_set = object.__setattr__
"""Sets a field of a node that is being made."""

FRAMEWORKS = ("tensorflow", "xla")
"""The kinds of compiled sections."""

UNOPENED = (
    "block",
    "call",
    "data",
    "intrinsic",
    "lambda",
    "literal",
    "placement",
    "reference",
    "selection",
    "struct",
)
"""The kinds of other nodes, as messages have them."""


def _struct_type(source: Node) -> StructType:
    """Return the type of a node that is selected from."""
    struct = source.type
    if not isinstance(struct, StructType):
        raise LanguageTypeError(
            "E122",
            f"cannot select from `{struct}`, which is not a struct",
            help="select from a struct; what is placed is selected from in a function that is "
            "mapped over it",
        )
    return struct


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reference(NodeBase):
    """The value of the binding or parameter `name`; `context` is printed, as `name@context`."""

    name: str
    type: Type
    context: str | None = None

    def pieces(self, section_name: SectionName) -> list[Any]:
        context = "" if self.context is None else f"@{self.context}"
        return [printable(f"{self.name}{context}")]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Selection(NodeBase):
    """Element `index` of a struct; `name` is kept where the element was selected by its name."""

    _subtrees = ("source",)
    source: Node
    index: int
    name: str | None = None
    type: Type = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        struct = _struct_type(self.source)
        if not 0 <= self.index < len(struct):
            raise LanguageValueError(
                "E122",
                f"no element {self.index} in `{struct}`, which has {len(struct)} elements",
                help="positions count from 0 and cannot be negative",
            )
        if self.name is not None and struct.names[self.index] != self.name:
            raise LanguageValueError(
                "E122",
                f"element {self.index} of `{struct}` is not named {self.name!r}",
                help=f"leave the name out, or give {struct.names[self.index]!r}",
            )
        _set(self, "type", struct.types[self.index])

    @classmethod
    def by_name(cls, source: Node, name: str) -> Selection:
        """Return the selection of the element called `name`; refuses a name the struct does not
        have."""
        struct = _struct_type(source)
        index = struct.index_of(name)
        if index is None:
            raise LanguageValueError(
                "E122",
                f"no element named {name!r} in `{struct}`",
                notes=(f"it has {', '.join(map(repr, struct.fields())) or 'no named elements'}",),
                help=did_you_mean(name, struct.fields())
                or "select by a name that it has, or by position",
            )
        return cls(source, index, name)

    def children(self) -> tuple[Node, ...]:
        return (self.source,)

    def rebuilt(self, children: tuple[Node, ...]) -> Selection:
        names = getattr(children[0].type, "names", ())
        keeps = self.index < len(names) and names[self.index] == self.name
        return Selection(children[0], self.index, self.name if keeps else None)

    def pieces(self, section_name: SectionName) -> list[Any]:
        step = f"[{self.index}]" if self.name is None else f".{printable(self.name)}"
        return [self.source, step]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructNode(Elements["Node"], NodeBase):
    """Values side by side, each with or without a name."""

    _subtrees = ("values",)
    values: tuple[Node, ...]
    names: tuple[str | None, ...] = ()
    container: type | None = None
    type: StructType = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        names = self.names or (None,) * len(self.values)
        if len(names) != len(self.values):
            raise LanguageValueError(
                "E126",
                f"a struct of {len(self.values)} values cannot have {len(names)} names",
                help="give one name for each value, and None for a value without one",
            )
        if "" in names:
            raise LanguageValueError(
                "E107",
                "an element's name cannot be empty",
                help="give None for the name of an element that has none",
            )
        _set(self, "names", names)
        types = tuple(value.type for value in self.values)
        _set(self, "type", StructWithPythonType.with_container(names, types, self.container))

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str | None, Node]], container: type | None = None
    ) -> StructNode:
        """Return the struct of these (name, value) pairs."""
        items = list(pairs)
        return cls(tuple(v for _, v in items), tuple(n for n, _ in items), container)

    @classmethod
    def of_type(cls, values: tuple[Node, ...], type: StructType) -> StructNode:
        """Return the struct of these values, whose types are known to be those of the elements."""
        struct = StructNode.__new__(StructNode)
        _set(struct, "values", values)
        _set(struct, "names", type.names)
        _set(struct, "container", type.container)
        _set(struct, "type", type)
        return struct

    def _parts(self) -> tuple[tuple[str | None, ...], tuple[Node, ...]]:
        return self.names, self.values

    def __bool__(self) -> bool:
        return True

    def hashed_label(self) -> Hashable:
        return self.names

    def children(self) -> tuple[Node, ...]:
        return self.values

    def rebuilt(self, children: tuple[Node, ...]) -> StructNode:
        return StructNode(children, self.names, self.container)

    def pieces(self, section_name: SectionName) -> list[Any]:
        return bracketed(list(self.items()))


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(NodeBase):
    """A function applied to its argument, or to nothing where it takes no parameter."""

    _subtrees = ("function", "argument")
    function: Node
    argument: Node | None = None
    type: Type = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        signature = self.function.type
        if not isinstance(signature, FunctionType):
            raise LanguageTypeError(
                "E127",
                f"cannot call a value of type `{signature}`",
                help="call a function: a value whose type has an arrow",
            )
        if signature.parameter is None and self.argument is not None:
            raise LanguageTypeError(
                "E127",
                f"a function of type `{signature}` takes no argument, "
                f"but was given one of type `{self.argument.type}`",
            )
        if signature.parameter is not None:
            if self.argument is None:
                raise LanguageTypeError(
                    "E127",
                    f"a function of type `{signature}` needs an argument of type "
                    f"`{signature.parameter}`, but was given none",
                )
            signature.parameter.check_assignable_from(self.argument.type)
        _set(self, "type", signature.result)

    def children(self) -> tuple[Node, ...]:
        return (self.function,) if self.argument is None else (self.function, self.argument)

    def rebuilt(self, children: tuple[Node, ...]) -> Call:
        return Call(*children)

    def pieces(self, section_name: SectionName) -> list[Any]:
        argument = [] if self.argument is None else [self.argument]
        return [self.function, "(", *argument, ")"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lambda(NodeBase):
    """A function: its parameter's name and type, or neither, and its result.

    `span` is where it is defined in the user's source, if that is known.
    """

    _subtrees = ("result",)
    parameter_name: str | None
    parameter_type: Type | None
    result: Node
    type: FunctionType = dataclasses.field(init=False)
    span: Span | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.parameter_name:
            _set(self, "parameter_name", None)
        if (self.parameter_name is None) != (self.parameter_type is None):
            raise LanguageTypeError(
                "E126",
                "a lambda has both a parameter name and a parameter type, or neither; found "
                f"{self.parameter_name!r} and `{self.parameter_type}`",
            )
        _set(self, "type", FunctionType(self.parameter_type, self.result.type))

    def children(self) -> tuple[Node, ...]:
        return (self.result,)

    def rebuilt(self, children: tuple[Node, ...]) -> Lambda:
        return Lambda(self.parameter_name, self.parameter_type, children[0], self.span)

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [f"({printable(self.parameter_name or '')} -> ", self.result, ")"]


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """One local of a block, and where in the user's source it was made, if that is known."""

    name: str
    value: Node
    span: Span | None = dataclasses.field(default=None, compare=False)

    def __iter__(self) -> Iterator[Any]:
        """Yield name and value: for TFF's users, a local is a pair."""
        return iter((self.name, self.value))


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block(NodeBase):
    """Bindings, each visible to those after it and to the result."""

    locals: tuple[Binding, ...]
    result: Node
    type: Type = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        _set(self, "type", self.result.type)

    def children(self) -> tuple[Node, ...]:
        return (*(binding.value for binding in self.locals), self.result)

    def rebuilt(self, children: tuple[Node, ...]) -> Block:
        bindings = (
            Binding(binding.name, value, binding.span)
            for binding, value in zip(self.locals, children[:-1], strict=True)
        )
        return Block(tuple(bindings), children[-1])

    def own_label(self) -> Hashable:
        return tuple(binding.name for binding in self.locals)

    def pieces(self, section_name: SectionName) -> list[Any]:
        items = listed((binding.name, binding.value) for binding in self.locals)
        return ["(let ", Mark.INDENT, *items, Mark.DEDENT, " in ", self.result, ")"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intrinsic(NodeBase):
    """An operator of the language at one concrete type.

    A registered URI must be given an instance of its signature; an unknown one may have any type.
    """

    uri: str
    type: Type

    def __post_init__(self) -> None:
        check_instance(self.uri, self.type)

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [printable(self.uri)]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Data(NodeBase):
    """A value that the executing system finds by a message only it understands: a protobuf `Any`,
    kept as its type URL and bytes."""

    type_url: str
    value: bytes
    type: Type

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [f"data#{data_name(self.type_url, self.value)}"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compiled(NodeBase):
    """A section of another framework: its serialized `TensorFlow` or `Xla` message.

    `kind` is "tensorflow" or "xla".  `name` overrides the printed name, which is otherwise the
    fingerprint of the section's content.  TFF's users also make one of the message of any other
    node, whose kind that is then: `wire.opened` puts the node in its place.
    """

    kind: str
    payload: bytes
    type: Type
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in (*FRAMEWORKS, *UNOPENED):
            raise LanguageValueError("E126", f"unknown kind of compiled section {self.kind!r}")

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [f"comp#{section_name(self)}"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacementNode(NodeBase):
    """A placement as a value."""

    literal: Placement
    type: PlacementType = dataclasses.field(init=False, default_factory=PlacementType)

    @property
    def uri(self) -> str:
        """The wire name of the placement."""
        return self.literal.uri

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [str(self.literal)]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(NodeBase):
    """A constant tensor.  `type` may be less specific in shape than the value is."""

    array: Array
    type: TensorType

    def __post_init__(self) -> None:
        if self.array.dtype is not self.type.element_type:
            raise LanguageValueError(
                "E118", f"a constant of {self.array.dtype} cannot have type `{self.type}`"
            )
        if not shape_is_assignable(self.type.shape, self.array.shape):
            raise LanguageValueError(
                "E118",
                f"a constant of type `{self.array.type}` cannot have type `{self.type}`",
            )

    @property
    def value(self) -> Any:
        """The constant as a value of NumPy, or as bytes."""
        return self.array.numpy()

    def pieces(self, section_name: SectionName) -> list[Any]:
        return [literal_text(self.array, drawn=False)]


Node: TypeAlias = (
    Reference
    | Selection
    | StructNode
    | Call
    | Lambda
    | Block
    | Intrinsic
    | Data
    | Compiled
    | PlacementNode
    | Literal
)


def kind_of(node: Node) -> str:
    """Return the kind of a node, with its article."""
    name = type(node).__name__.removesuffix("Node")
    return f"an {name}" if name == "Intrinsic" else f"a {name}"
