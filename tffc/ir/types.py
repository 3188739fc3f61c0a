"""The types of the language, their printed forms and the rules of assignability.

    tensor     int32, float32[2,?], 'int32'(shape=None)
    struct     <a=int32,float32>          sequence   int32*
    function   (int32 -> float32)         federated  {int32}@CLIENTS, int32@SERVER
    placement  placement                  abstract   T

A type that exists is well formed: constructors refuse what the language refuses.  Types are
compared by content; the Python container of a struct is part of its identity but not of
assignability.  Nesting is not limited.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from tffc.errors import (
    LanguageTypeError,
    LanguageValueError,
)
from tffc.ir.dtypes import DType
from tffc.ir.size import GROWTH, max_size, size_text, written_size
from tffc.ir.term import Term

RESERVED_NAMES = frozenset(
    {"_asdict", "_hash", "_element_array", "_name_to_index", "_name_array", "_elements_cache"}
)
"""Element names that TFF's struct container keeps for itself, so that files stay readable there."""

Shape = tuple[int | None, ...] | None
"""Sizes of the dimensions, None for one that is unknown; None in place of all: unknown rank."""

IS_ABSTRACT = operator.attrgetter("is_abstract")
HAS_CONTAINER = operator.attrgetter("has_container")


class Placement(enum.Enum):
    """Where the constituents of a federated value are: its wire name and whether all are equal
    unless said otherwise."""

    CLIENTS = ("clients", False)
    SERVER = ("server", True)

    def __init__(self, uri: str, default_all_equal: bool) -> None:
        self.uri = uri
        self.default_all_equal = default_all_equal

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"PlacementLiteral({self.uri!r})"


CLIENTS = Placement.CLIENTS
SERVER = Placement.SERVER


class Type(Term):
    """A type.  `str` gives the compact text, `repr` the Python expression that makes it; a text of
    more than 262,144 pieces is cut short.

    `is_abstract` tells whether it holds type variables, `has_container` whether a struct in it, or
    itself, names a Python container.
    """

    __slots__ = ("has_container", "is_abstract")
    has_container: bool
    is_abstract: bool

    def children(self) -> tuple[Type, ...]:
        return ()

    def _seal(self) -> None:
        children = self.children()
        object.__setattr__(self, "is_abstract", any(map(IS_ABSTRACT, children)))
        object.__setattr__(self, "has_container", any(map(HAS_CONTAINER, children)))

    def __str__(self) -> str:
        return self.compact_representation()

    def __repr__(self) -> str:
        from tffc.ir.type_text import python_type

        return python_type(self)

    def compact_representation(self) -> str:
        """The type on one line."""
        from tffc.ir.type_text import compact_type

        return compact_type(self)

    def formatted_representation(self) -> str:
        """The type with the elements of every struct on lines of their own."""
        from tffc.ir.type_text import formatted_type

        return formatted_type(self)

    def is_assignable_from(self, source: Type) -> bool:
        """Whether a value of type `source` can stand where this type is needed.

        Raises:
          LanguageTypeError: an abstract type is met, which is not comparable.
        """
        if self is source and not self.is_abstract:
            return True
        from tffc.ir.assignability import first_difference

        return first_difference(self, source) is None

    def is_equivalent_to(self, other: Type) -> bool:
        """Whether each of the two types is assignable from the other."""
        return self == other or (self.is_assignable_from(other) and other.is_assignable_from(self))

    def is_identical_to(self, other: Type) -> bool:
        """Whether the two types are the same, names and Python containers included."""
        return self == other

    def check_assignable_from(self, source: Type) -> None:
        """Raises TypeNotAssignableError, which names the first place that differs."""
        if self is source and not self.is_abstract:
            return
        from tffc.ir.assignability import check_assignable

        check_assignable(self, source)

    def check_equivalent_to(self, other: Type) -> None:
        """Raises TypesNotEquivalentError unless each type is assignable from the other."""
        from tffc.ir.assignability import check_equivalent

        check_equivalent(self, other)

    def check_identical_to(self, other: Type) -> None:
        """Raises TypesNotIdenticalError unless the two types are the same."""
        from tffc.ir.assignability import check_identical

        check_identical(self, other)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TensorType(Type):
    """Tensors of one element type and shape."""

    dtype: DType
    shape: Shape

    def __init__(self, dtype: Any, shape: Any = ()) -> None:
        from tffc.ir.convert import to_dtype, to_shape

        object.__setattr__(self, "dtype", dtype if isinstance(dtype, DType) else to_dtype(dtype))
        object.__setattr__(self, "shape", () if shape == () else to_shape(shape))
        self._seal()

    def label(self) -> Hashable:
        return (self.dtype, self.shape)

    def is_scalar(self) -> bool:
        return self.shape == ()

    def is_fully_defined(self) -> bool:
        """Whether rank and every dimension are known."""
        return self.shape is not None and None not in self.shape


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class StructType(Type):
    """Ordered elements, each with or without a name.

    Made from an iterable of types and (name, type) pairs, or from a mapping of names to types.
    """

    names: tuple[str | None, ...]
    types: tuple[Type, ...]

    def __init__(self, elements: Any) -> None:
        from tffc.ir.convert import to_elements

        pairs = to_elements(elements)
        self._fill(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))

    @classmethod
    def of(cls, names: tuple[str | None, ...], types: tuple[Type, ...]) -> StructType:
        """The struct with these names and element types, both already in their final form."""
        made = StructType.__new__(StructType)
        made._fill(names, types)
        return made

    def _fill(self, names: tuple[str | None, ...], types: tuple[Type, ...]) -> None:
        check_element_names(names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "types", types)
        self._seal()

    def with_types(self, types: tuple[Type, ...]) -> StructType:
        """The struct of other types under the same names, in no container."""
        if self.container is None and all(map(operator.is_, self.types, types)):
            return self
        return StructType.of(self.names, types)

    @property
    def container(self) -> type | None:
        """The Python class that values of this type are given in, if one is known."""
        return None

    def children(self) -> tuple[Type, ...]:
        return self.types

    def label(self) -> Hashable:
        return (self.names, self.container)

    def items(self) -> Iterator[tuple[str | None, Type]]:
        """The (name, type) pairs of the elements."""
        return zip(self.names, self.types, strict=True)

    def fields(self) -> list[str]:
        """The names of the named elements."""
        return [name for name in self.names if name is not None]

    def index_of(self, name: str) -> int | None:
        """The position of the element of this name, or None."""
        return self.names.index(name) if name in self.names else None

    def is_argument_struct(self) -> bool:
        """Whether every unnamed element stands before every named one, as in a Python call."""
        named = [name is not None for name in self.names]
        return named == sorted(named)

    def __len__(self) -> int:
        return len(self.types)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Type]:
        return iter(self.types)

    def __getitem__(self, key: int | str) -> Type:
        if isinstance(key, str):
            return self._named(key)
        return self.types[key]

    def __getattr__(self, name: str) -> Type:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._named(name)

    def _named(self, name: str) -> Type:
        index = self.index_of(name)
        if index is None:
            known = ", ".join(repr(n) for n in self.names if n is not None) or "no names"
            raise AttributeError(f"no element {name!r} in {self}; it has {known}")
        return self.types[index]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class StructWithPythonType(StructType):
    """A struct type that also knows the Python class its values are given in."""

    container_type: type

    def __init__(self, elements: Any, container_type: type) -> None:
        object.__setattr__(self, "container_type", container_type)
        StructType.__init__(self, elements)

    @classmethod
    def with_container(
        cls, names: tuple[str | None, ...], types: tuple[Type, ...], container: type | None
    ) -> StructType:
        """The struct with these elements in this container, or in none."""
        if container is None:
            return StructType.of(names, types)
        made = StructWithPythonType.__new__(StructWithPythonType)
        object.__setattr__(made, "container_type", container)
        made._fill(names, types)
        return made

    def _seal(self) -> None:
        StructType._seal(self)
        object.__setattr__(self, "has_container", True)

    @property
    def container(self) -> type | None:
        return self.container_type


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class SequenceType(Type):
    """Finite ordered streams of elements of one type; the elements hold tensors and structs."""

    element: Type

    def __init__(self, element: Any) -> None:
        element = _to_type(element)
        banned = find(element, (FederatedType, FunctionType, SequenceType))
        if banned is not None:
            raise LanguageValueError(
                "E104",
                f"a sequence cannot have elements of type `{element}`",
                notes=(f"`{banned}` is federated, a function or itself a sequence",),
                help=_instead_of_element(banned),
            )
        object.__setattr__(self, "element", _lists_to_tuples(element))
        self._seal()

    def children(self) -> tuple[Type, ...]:
        return (self.element,)

    def label(self) -> Hashable:
        return None


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class FunctionType(Type):
    """Functions of at most one parameter."""

    parameter: Type | None
    result: Type

    def __init__(self, parameter: Any, result: Any) -> None:
        object.__setattr__(self, "parameter", None if parameter is None else _to_type(parameter))
        object.__setattr__(self, "result", _to_type(result))
        self._seal()

    def children(self) -> tuple[Type, ...]:
        return (self.result,) if self.parameter is None else (self.parameter, self.result)

    def label(self) -> Hashable:
        return None


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class FederatedType(Type):
    """Values with one constituent at each participant of a placement."""

    member: Type
    placement: Placement
    all_equal: bool

    def __init__(self, member: Any, placement: Placement, all_equal: bool | None = None) -> None:
        member = _to_type(member)
        if not isinstance(placement, Placement):
            raise LanguageTypeError(
                "E105",
                f"expected a placement, found {placement!r}",
                help="use tff.SERVER or tff.CLIENTS",
            )
        banned = find(member, (FederatedType, FunctionType))
        if banned is not None:
            raise LanguageValueError(
                "E106",
                f"a federated value cannot have members of type `{member}`",
                notes=(f"`{banned}` is federated or a function",),
                help=_instead_of_member(banned),
            )
        object.__setattr__(self, "member", member)
        object.__setattr__(self, "placement", placement)
        all_equal = placement.default_all_equal if all_equal is None else bool(all_equal)
        object.__setattr__(self, "all_equal", all_equal)
        self._seal()

    def children(self) -> tuple[Type, ...]:
        return (self.member,)

    def label(self) -> Hashable:
        return (self.placement, self.all_equal)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class AbstractType(Type):
    """A type variable; it occurs in the signatures of intrinsics only.  Its name is `name`."""

    name: str

    def __init__(self, label: str) -> None:
        object.__setattr__(self, "name", str(label))
        self._seal()

    def _seal(self) -> None:
        Type._seal(self)
        object.__setattr__(self, "is_abstract", True)

    def label(self) -> Hashable:
        return self.name


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class PlacementType(Type):
    """The type of placements themselves."""

    def __init__(self) -> None:
        self._seal()

    def label(self) -> Hashable:
        return None


def at_server(member: Any) -> FederatedType:
    """`member@SERVER`."""
    return FederatedType(member, SERVER)


def at_clients(member: Any, all_equal: bool = False) -> FederatedType:
    """`{member}@CLIENTS`, or `member@CLIENTS` where all clients hold the same value."""
    return FederatedType(member, CLIENTS, all_equal)


def _to_type(source: Any) -> Type:
    if isinstance(source, Type):
        return source
    from tffc.ir.convert import to_type

    return to_type(source)


def _instead_of_element(banned: Type) -> str:
    """Return what to write where a sequence was to have elements of this type."""
    match banned:
        case FederatedType():
            return "place the whole sequence, not its elements"
        case SequenceType():
            return "join the inner sequences into one, or batch them into tensors"
        case _:
            return "leave the function out"


def _instead_of_member(banned: Type) -> str:
    """Return what to write where a value with this in its type was to be placed."""
    if isinstance(banned, FederatedType):
        return "leave out the inner placement: a value is placed once"
    return "call the function first, and place its result"


def check_element_names(names: Iterable[str | None]) -> None:
    """Raises LanguageValueError for a name that stands twice or that is reserved."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise LanguageValueError(
                "E107",
                f"a struct cannot have two elements named {name!r}",
                help="give each element a name of its own",
            )
        if name in RESERVED_NAMES:
            raise LanguageValueError(
                "E108",
                f"the element name {name!r} is reserved",
                help="give the element another name; those reserved begin with an underscore",
            )
        seen.add(name)


def subtypes(root: Type) -> Iterator[Type]:
    """Every distinct type object in `root`, each before the types inside it."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(node.children()))


def find(root: Type, kinds: type | tuple[type, ...]) -> Type | None:
    """The first type of one of the kinds inside `root` (itself included), or None."""
    return next((t for t in subtypes(root) if isinstance(t, kinds)), None)


def contains(root: Type, kinds: type | tuple[type, ...]) -> bool:
    """Whether a type of one of the kinds stands inside `root`, itself included."""
    return find(root, kinds) is not None


def distinct_leaves(root: Type) -> list[Type]:
    """The types of `root` that are not structs, each object once, in the order of their first
    places; a federated member is not entered."""
    if not isinstance(root, StructType):
        return [root]
    found: list[Type] = []
    seen: set[int] = set()
    stack: list[Type] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, StructType):
            stack.extend(reversed(node.types))
        else:
            found.append(node)
    return found


UNCOUNTED = 10_000
"""So many parts of a type are visited before anybody counts how many there are."""


def leaves(root: Type) -> list[Type]:
    """The types of `root` that are not structs, in order; a federated member is not entered.

    Raises:
      LanguageValueError: the structs of `root`, written out, have more parts than a type may.
    """
    found: list[Type] = []
    stack = [root]
    visited, counted = 0, min(UNCOUNTED, max_size())
    while stack:
        node = stack.pop()
        visited += 1
        if visited == counted:
            check_parts(root)
        if isinstance(node, StructType):
            stack.extend(reversed(node.types))
        else:
            found.append(node)
    return found


def check_parts(root: Type) -> None:
    """Check that the type, with each struct in it written out at each place, is not too large.

    Raises:
      LanguageValueError: it has more parts than a type may.
    """
    parts = written_size(root, {}, lambda inner: 1)
    if parts > max_size():
        raise LanguageValueError(
            "E167",
            f"the type `{root}` has {size_text(parts)} parts when it is written out, more than the "
            f"{max_size()} that are looked at",
            help=GROWTH,
        )


def transform(root: Type, rule: Callable[[Type], Type | None]) -> Type:
    """Rebuilds `root` bottom-up.

    `rule(type)` is asked for each type whose children are rebuilt already and gives its
    replacement or None.  Types that do not change are kept as they are; shared ones are visited
    once.
    """
    done: dict[int, Type] = {}
    stack: list[tuple[Type, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if id(node) in done:
            continue
        if not expanded:
            stack.append((node, True))
            stack.extend((child, False) for child in node.children())
            continue
        rebuilt = with_children(node, tuple(done[id(child)] for child in node.children()))
        replacement = rule(rebuilt)
        done[id(node)] = rebuilt if replacement is None else replacement
    return done[id(root)]


def with_children(node: Type, children: tuple[Type, ...]) -> Type:
    """`node` with other children, which are as many as before."""
    if all(old is new for old, new in zip(node.children(), children, strict=True)):
        return node
    match node:
        case StructType():
            return StructWithPythonType.with_container(node.names, children, node.container)
        case SequenceType():
            return SequenceType(children[0])
        case FunctionType():
            return FunctionType(children[0] if len(children) == 2 else None, children[-1])
        case FederatedType():
            return FederatedType(children[0], node.placement, node.all_equal)
    raise AssertionError(f"{type(node).__name__} has no children")


def without_containers(root: Type) -> Type:
    """`root` with plain structs only, as it is after a round trip over the wire."""
    if not root.has_container:
        return root

    def rule(node: Type) -> Type | None:
        if isinstance(node, StructType) and node.container is not None:
            return StructType.of(node.names, node.types)
        return None

    return transform(root, rule)


def _lists_to_tuples(root: Type) -> Type:
    """Datasets have no list structure, so a sequence's elements are tuples instead."""

    def rule(node: Type) -> Type | None:
        if isinstance(node, StructType) and node.container is list:
            return StructWithPythonType.with_container(node.names, node.types, tuple)
        return None

    return transform(root, rule)


def shape_is_assignable(target: Shape, source: Shape) -> bool:
    """Whether every tensor of shape `source` is also of shape `target`."""
    if target is None:
        return True
    if source is None or len(target) != len(source):
        return False
    return all(t is None or t == s for t, s in zip(target, source, strict=True))


def local_type(placed: Type) -> Type:
    """`placed` with every federated type replaced by its member."""
    if isinstance(placed, FederatedType):
        return placed.member
    return transform(placed, lambda t: t.member if isinstance(t, FederatedType) else None)
