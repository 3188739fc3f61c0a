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

import collections
import dataclasses
import operator
import sys
from collections.abc import Callable
from typing import Any, cast

from tffc.language.containers.named import (
    annotated_fields,
    class_of,
    field_names,
    is_dataclass,
    is_named_class,
    is_named_container,
    is_pair,
    lists_names,
    named_items,
)
from tffc.language.containers.struct import Elements, Struct, check_element_names
from tffc.language.dtypes import DType, is_dtype_like, to_dtype
from tffc.language.notation.pieces import bracketed
from tffc.language.placement import CLIENTS as CLIENTS
from tffc.language.placement import PLACEMENTS as PLACEMENTS
from tffc.language.placement import SERVER as SERVER
from tffc.language.placement import Placement as Placement
from tffc.language.shapes import Shape, is_shape_like, shape_is_assignable, to_shape
from tffc.language.traverse import find, rewrite
from tffc.language.type_base import Interning, Type
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.printable import json_string, printable
from tffc.support.trampoline import Task, run


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class TensorType(Type):
    """Tensors of one element type and shape.

    `element_type` is what tffc works with; `dtype` is the same as TFF's users know it.
    """

    element_type: DType
    shape: Shape

    def __init__(self, dtype: Any, shape: Any = ()) -> None:
        object.__setattr__(self, "element_type", to_dtype(dtype))
        is_scalar = isinstance(shape, tuple) and not shape
        object.__setattr__(self, "shape", () if is_scalar else to_shape(shape))

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        if self.shape is None:
            return [f"'{self.element_type}'(shape=None)"]
        if not self.shape:
            return [str(self.element_type)]
        return [
            f"{self.element_type}[{','.join('?' if d is None else str(d) for d in self.shape)}]"
        ]

    def python_pieces(self) -> list[Any]:
        shape = "" if self.shape == () else f", {self.shape!r}"
        return [f"TensorType({self.element_type!r}{shape})"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        if not isinstance(source, TensorType) or self.element_type is not source.element_type:
            return None
        return [] if shape_is_assignable(self.shape, source.shape) else None

    @property
    def dtype(self) -> Any:
        """The element type as a NumPy dtype; that of strings is the one of `np.str_`."""
        return self.element_type.numpy_dtype

    def is_scalar(self) -> bool:
        return self.shape == ()

    def is_fully_defined(self) -> bool:
        """Tell whether rank and every dimension are known."""
        return self.shape is not None and None not in self.shape


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class StructType(Elements[Type], Type):
    """Ordered elements, each with or without a name.

    Made from an iterable of types and (name, type) pairs, or from a mapping of names to types.
    """

    _subtrees = ("types",)
    names: tuple[str | None, ...]
    types: tuple[Type, ...]

    def __init__(self, elements: Any) -> None:
        pairs = run(_elements(elements, set()))
        self._fill(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))

    @classmethod
    def of(cls, names: tuple[str | None, ...], types: tuple[Type, ...]) -> StructType:
        """Return the struct with these names and element types, both already in their final
        form."""
        struct = StructType.__new__(StructType)
        struct._fill(names, types)
        struct.seal()
        return struct

    def _fill(self, names: tuple[str | None, ...], types: tuple[Type, ...]) -> None:
        check_element_names(names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "types", types)

    def children(self) -> tuple[Type, ...]:
        return self.types

    def _parts(self) -> tuple[tuple[str | None, ...], tuple[Type, ...]]:
        return self.names, self.types

    def _described(self) -> str:
        return str(self)

    def with_types(self, types: tuple[Type, ...]) -> StructType:
        """Return the struct of other types under the same names, in no container."""
        if self.container is None and all(map(operator.is_, self.types, types)):
            return self
        return StructType.of(self.names, types)

    @property
    def container(self) -> type | None:
        """The Python class that values of this type are given in, if one is known."""
        return None

    @property
    def python_container(self) -> type | None:
        """Return the same as `container`, as TFF's users know it."""
        return self.container

    def rebuilt(self, children: tuple[Type, ...]) -> StructType:
        return StructWithPythonType.with_container(self.names, children, self.container)

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        return bracketed(list(self.items()), spell)

    def python_pieces(self) -> list[Any]:
        pieces: list[Any] = ["StructType(["]
        for index, (name, element) in enumerate(self.items()):
            pieces.append(", " if index else "")
            pieces.extend([element] if name is None else [f"({name!r}, ", element, ")"])
        suffix = "" if self.container is None else f" as {self.container.__name__}"
        return [*pieces, f"]){suffix}"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        if not isinstance(source, StructType) or len(self) != len(source):
            return None
        if any(s not in (None, t) for t, s in zip(self.names, source.names, strict=True)):
            return None
        names = enumerate(self.names)
        steps = [f"[{i}]" if name is None else f".{printable(name)}" for i, name in names]
        return list(zip(self.types, source.types, steps, strict=True))

    def fields(self) -> list[str]:
        """Return the names of the named elements."""
        return [name for name in self.names if name is not None]

    def index_of(self, name: str) -> int | None:
        """Return the position of the element of this name, or None."""
        return self.names.index(name) if name in self.names else None

    def is_argument_struct(self) -> bool:
        """Tell whether every unnamed element stands before every named one, as in a Python call."""
        named = [name is not None for name in self.names]
        return named == sorted(named)

    def __bool__(self) -> bool:
        return True

    def element_named(self, name: str) -> Type | None:
        index = self.index_of(name)
        return None if index is None else self.types[index]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class StructWithPythonType(StructType):
    """A struct type that also knows the Python class its values are given in."""

    _flag = "has_container"
    container_type: type

    def __init__(self, elements: Any, container_type: type) -> None:
        object.__setattr__(self, "container_type", container_type)
        StructType.__init__(self, elements)

    @classmethod
    def with_container(
        cls, names: tuple[str | None, ...], types: tuple[Type, ...], container: type | None
    ) -> StructType:
        """Return the struct with these elements in this container, or in none."""
        if container is None:
            return StructType.of(names, types)
        struct = StructWithPythonType.__new__(StructWithPythonType)
        object.__setattr__(struct, "container_type", container)
        struct._fill(names, types)
        struct.seal()
        return struct

    @property
    def container(self) -> type | None:
        return self.container_type


Struct.register(StructType)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class SequenceType(Type):
    """Finite ordered streams of elements of one type; the elements hold tensors and structs."""

    _subtrees = ("element",)
    element: Type

    def __init__(self, element: Any) -> None:
        element = to_type(element)
        banned = find(element, (FederatedType, FunctionType, SequenceType))
        if banned is not None:
            raise LanguageValueError(
                "E104",
                f"a sequence cannot have elements of type `{element}`",
                notes=(f"`{banned}` is federated, a function or itself a sequence",),
                help=_instead_of_element(banned),
            )
        object.__setattr__(self, "element", _as_elements(element))

    def children(self) -> tuple[Type, ...]:
        return (self.element,)

    def rebuilt(self, children: tuple[Type, ...]) -> SequenceType:
        return SequenceType(*children)

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        return [self.element, "*"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        if not isinstance(source, SequenceType):
            return None
        return [(self.element, source.element, "*")]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class FunctionType(Type):
    """Functions of at most one parameter."""

    _subtrees = ("parameter", "result")
    parameter: Type | None
    result: Type

    def __init__(self, parameter: Any, result: Any) -> None:
        object.__setattr__(self, "parameter", None if parameter is None else to_type(parameter))
        object.__setattr__(self, "result", to_type(result))

    def children(self) -> tuple[Type, ...]:
        return (self.result,) if self.parameter is None else (self.parameter, self.result)

    def rebuilt(self, children: tuple[Type, ...]) -> FunctionType:
        return FunctionType(children[0] if len(children) == 2 else None, children[-1])

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        parameter = [] if self.parameter is None else [self.parameter]
        return ["(", *parameter, " -> ", self.result, ")"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        if not isinstance(source, FunctionType):
            return None
        result = (self.result, source.result, ".result")
        if self.parameter is None or source.parameter is None:
            return [result] if self.parameter is source.parameter else None
        return [(source.parameter, self.parameter, ".parameter"), result]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class FederatedType(Type):
    """Values with one constituent at each participant of a placement.

    Values of programs are at `CLIENTS` or `SERVER`; see `check_placements`.
    """

    _subtrees = ("member",)
    _flag = "has_placement"
    member: Type
    placement: Placement
    all_equal: bool

    def __init__(self, member: Any, placement: Any, all_equal: bool | None = None) -> None:
        member = to_type(member)
        if not isinstance(placement, Placement):
            raise LanguageTypeError(
                "E105",
                f"expected a placement, found {placement!r}",
                help="use tff.SERVER or tff.CLIENTS",
            )
        banned = find(member, (FederatedType, FunctionType))
        if banned is not None:
            raise LanguageValueError(
                "E104",
                f"a federated value cannot have members of type `{member}`",
                notes=(f"`{banned}` is federated or a function",),
                help=_instead_of_member(banned),
            )
        object.__setattr__(self, "member", member)
        same = (known for known in PLACEMENTS if known == placement)
        object.__setattr__(self, "placement", next(same, placement))
        all_equal = placement.default_all_equal if all_equal is None else bool(all_equal)
        object.__setattr__(self, "all_equal", all_equal)

    def children(self) -> tuple[Type, ...]:
        return (self.member,)

    def rebuilt(self, children: tuple[Type, ...]) -> FederatedType:
        return FederatedType(children[0], self.placement, self.all_equal)

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        if self.all_equal:
            return [self.member, f"@{self.placement}"]
        return ["{", self.member, f"}}@{self.placement}"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        if not isinstance(source, FederatedType) or self.placement != source.placement:
            return None
        if self.all_equal and not source.all_equal:
            return None
        return [(self.member, source.member, "@")]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class AbstractType(Type):
    """A type variable; it occurs in the signatures of intrinsics only.  Its name is `name`."""

    _flag = "is_abstract"
    name: str

    def __init__(self, label: str) -> None:
        object.__setattr__(self, "name", str(label))

    @property
    def label(self) -> str:
        """Return the name, as TFF's users know it."""
        return self.name

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        return [json_string(self.name) if spell is not printable else printable(self.name)]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        raise LanguageTypeError(
            "E109",
            f"the abstract type `{self}` cannot be compared",
            help=f"put a concrete type in the place of `{self}`",
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacementType(Type):
    """The type of placements themselves."""

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        return ["placement"]

    def pairs_with(self, source: Type) -> list[tuple[Type, Type, str]] | None:
        return [] if isinstance(source, PlacementType) else None


def at_server(member: Any) -> FederatedType:
    """Return `member@SERVER`."""
    return FederatedType(member, SERVER)


def at_clients(member: Any, all_equal: bool = False) -> FederatedType:
    """Return `{member}@CLIENTS`, or `member@CLIENTS` where all clients hold the same value."""
    return FederatedType(member, CLIENTS, all_equal)


def _instead_of_element(banned: Type) -> str:
    """Return the help for a sequence with elements of this type."""
    match banned:
        case FederatedType():
            return "place the whole sequence, not its elements"
        case SequenceType():
            return "join the inner sequences into one, or batch them into tensors"
        case _:
            return "leave the function out"


def _instead_of_member(banned: Type) -> str:
    """Return the help for a federated value with this in the type of its members."""
    if isinstance(banned, FederatedType):
        return "leave out the inner placement: a value is placed once"
    return "call the function first, and place its result"


def _as_elements(root: Type) -> Type:
    """Return the type with tuples in place of lists and OrderedDicts in place of dataclasses,
    because elements of datasets cannot be those."""

    def rule(node: Type) -> Type | None:
        if not isinstance(node, StructType) or node.container is None:
            return None
        if node.container is list:
            return StructWithPythonType.with_container(node.names, node.types, tuple)
        if is_dataclass(node.container):
            ordered = collections.OrderedDict
            return StructWithPythonType.with_container(node.names, node.types, ordered)
        return None

    return rewrite(root, rule)


def to_type(source: Any) -> Type:
    """Return the type that `source` stands for.

    Raises:
      LanguageTypeError: `source` is not one of the forms listed at the top of this module.
    """
    return run(_converted(source, set()))


def _converted(source: Any, around: set[int]) -> Task[Type]:
    """Convert `source` to a type; `around` has the ids of the containers around it."""
    kind = class_of(source)
    if isinstance(source, Type):
        return source
    if is_dtype_like(source):
        return TensorType(source)
    special = _tensorflow_spec(source)
    if special is not None:
        return special
    if isinstance(source, tuple):
        pair = cast("tuple[Any, ...]", source)
        if len(pair) == 2 and is_dtype_like(pair[0]) and is_shape_like(pair[1]):
            return TensorType(*pair)
    is_class = isinstance(source, type) and bool(annotated_fields(source))
    if not (is_class or isinstance(source, (list, tuple, Struct)) or is_named_container(source)):
        raise LanguageTypeError(
            "E110",
            f"the class {source.__name__!r} is not a type, nor can it be read as one"
            if is_named_class(source)
            else f"{source!r} is not a type, nor can it be read as one",
            help=f"give an object of the class that holds types, such as {_example(source)}"
            if is_named_class(source)
            else "give a NumPy or TensorFlow dtype, a (dtype, shape) pair, a TensorSpec, a tff "
            "type, or a list, tuple, mapping, namedtuple, attrs object or dataclass of these",
        )
    pairs = yield _elements(source, around)
    names, types = tuple(name for name, _ in pairs), tuple(type for _, type in pairs)
    is_plain = isinstance(source, Struct) or (not is_class and lists_names(source))
    container = None if is_plain else cast("type[Any]", source) if is_class else kind
    return Interning.interned(StructWithPythonType.with_container(names, types, container))


def _example(kind: type[Any]) -> str:
    """Return the text of an object of a class with named fields, whose values are types."""
    return f"{kind.__name__}({', '.join(f'{name}=np.float32' for name in field_names(kind))})"


def _elements(source: Any, around: set[int]) -> Task[list[tuple[str | None, Type]]]:
    """Return the (name or None, type) pairs of a struct type written in Python; for `around` see
    `_converted`.

    Raises:
      LanguageTypeError: an element is neither a type nor a (name, type) pair.
      LanguageValueError: a container contains itself.
    """
    if id(source) in around:
        raise LanguageValueError(
            "E110", f"a {type(source).__name__} that contains itself is not a type"
        )
    around.add(id(source))
    pairs: list[tuple[str | None, Type]] = []
    for name, element in _named_elements(source):
        pairs.append((name, (yield _converted(element, around))))
    around.discard(id(source))
    return pairs


def _named_elements(source: Any) -> list[tuple[str | None, Any]]:
    """Return the (name or None, what stands for the type) pairs of a struct type written in
    Python."""
    if fields := annotated_fields(source):
        return list(fields)
    if is_named_container(source):
        return list(named_items(source))
    if isinstance(source, Struct):
        return list(source.items())
    if is_pair(source):
        return [(source[0], source[1])]
    if isinstance(source, str) or not hasattr(source, "__iter__"):
        raise LanguageTypeError(
            "E110",
            f"{source!r} is not a collection of types and (name, type) pairs",
            help='write a list of types, or of names and types, such as [("a", np.int32)]',
        )
    return [(item[0], item[1]) if is_pair(item) else (None, item) for item in source]


def _tensorflow_spec(source: Any) -> Type | None:
    """Return the type of a TensorFlow type specification, or None for anything else."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "TypeSpec"):
        return None
    if isinstance(source, tensorflow.TensorSpec):
        return TensorType(source.dtype, source.shape)
    if isinstance(source, tensorflow.data.DatasetSpec):
        return SequenceType(to_type(source.element_spec))
    if isinstance(source, tensorflow.TypeSpec):
        raise LanguageTypeError(
            "E111",
            f"a {type(source).__name__} is not a type of the language",
            help="give its component tensors as a struct",
        )
    return None
