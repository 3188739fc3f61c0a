"""Types on the wire."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from tffc.errors import TffcError, UnstorableError
from tffc.ir.dtypes import BY_NUMBER, DType
from tffc.ir.shapes import Shape
from tffc.ir.size import measured
from tffc.ir.trampoline import Task, run
from tffc.ir.types import (
    PLACEMENTS,
    AbstractType,
    FederatedType,
    FunctionType,
    Placement,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.proto.encoding import (
    Kind,
    Message,
    Place,
    content_field,
    content_head,
    integer_field,
    packed_field,
    read_elements,
    read_message,
    read_named,
    read_variant,
    required,
    schema,
    signed,
    string_field,
    write,
)

TYPE = schema(
    function=(1, Kind.MESSAGE),
    struct=(2, Kind.MESSAGE),
    sequence=(3, Kind.MESSAGE),
    tensor=(4, Kind.MESSAGE),
    abstract=(5, Kind.MESSAGE),
    placement=(6, Kind.MESSAGE),
    federated=(7, Kind.MESSAGE),
)
FUNCTION = schema(parameter=(1, Kind.MESSAGE), result=(2, Kind.MESSAGE))
SEQUENCE = schema(element=(1, Kind.MESSAGE))
TENSOR = schema(dtype=(1, Kind.INTEGER), dims=(2, Kind.INTEGERS), unknown_rank=(3, Kind.INTEGER))
FEDERATED = schema(
    placement=(1, Kind.MESSAGE),
    all_equal=(2, Kind.INTEGER),
    member=(3, Kind.MESSAGE),
)
PLACEMENT_SPEC = schema(label=(1, Kind.MESSAGE), value=(2, Kind.MESSAGE))
PLACEMENT = schema(uri=(1, Kind.STRING))

PLACEMENTS_BY_URI = {placement.uri: placement for placement in PLACEMENTS}
SHORT = 128
"""What is up to this size is remembered by its bytes, what is larger by a digest of them."""


class TypeReader:
    """Reads the types of one input.  Equal bytes give the same object and are read once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._known: dict[bytes, Type] = {}

    def read(self, place: Place) -> Type:
        """Return the type in this place.

        Raises:
          WireError: it is malformed, or breaks a rule of the language.
        """
        return run(self._type(place))

    def _type(self, place: Place) -> Task[Type] | Type:
        """Return the type, or the task that reads it."""
        key = short_key(self._data[place.start : place.end])
        known = self._known.get(key)
        return self._read(place, key) if known is None else known

    def _read(self, place: Place, key: bytes) -> Task[Type]:
        kind, inner = read_variant(self._data, place, TYPE, "a type")
        build, *parts = yield from self._parts(kind, inner)
        try:
            made = self._known[key] = build(*parts)
        except TffcError as error:
            place.refuse("E216", f"this {kind} type is not well formed: {error.message}")
        return made

    def _parts(self, kind: str, place: Place) -> Task[tuple[Any, ...]]:
        """Return what makes a type of this kind, and what it makes it of."""
        data = self._data
        match kind:
            case "struct":
                names: list[str | None] = []
                types: list[Type] = []
                for element in read_elements(data, place):
                    name, value = read_named(data, element)
                    names.append(name or None)
                    types.append((yield self._type(value)))
                return StructType.of, tuple(names), tuple(types)
            case "function":
                found = read_message(data, place, FUNCTION)
                parameter = found.get("parameter")
                parameter = None if parameter is None else (yield self._type(parameter))
                return FunctionType, parameter, (yield self._type(required(found, "result", place)))
            case "federated":
                found = read_message(data, place, FEDERATED)
                placement = self._placement(required(found, "placement", place))
                member = yield self._type(required(found, "member", place))
                return FederatedType, member, placement, bool(found.get("all_equal", 0))
            case "sequence":
                found = read_message(data, place, SEQUENCE)
                return SequenceType, (yield self._type(required(found, "element", place)))
            case "placement":
                return (PlacementType,)
            case "tensor":
                found = read_message(data, place, TENSOR)
                return TensorType, read_dtype(found, place), _shape(found)
            case _:
                return place.refuse("E219", "an abstract type cannot be stored")

    def _placement(self, place: Place) -> Placement:
        kind, value = read_variant(self._data, place, PLACEMENT_SPEC, "a placement")
        if kind == "label":
            value.refuse("E217", "a placement is given as a label, which is not in use")
        return self.placement(value)

    def placement(self, place: Place) -> Placement:
        """Return the placement that a Placement message names."""
        uri = read_message(self._data, place, PLACEMENT).get("uri", "")
        if uri not in PLACEMENTS_BY_URI:
            place.refuse(
                "E218",
                f"there is no placement {uri!r}; the placements are {', '.join(PLACEMENTS_BY_URI)}",
            )
        return PLACEMENTS_BY_URI[uri]


def short_key(content: bytes) -> bytes:
    """Return what stands for a message in a table of those read before."""
    return content if len(content) <= SHORT else hashlib.sha256(content).digest()


def _shape(found: dict[str, Any]) -> Shape:
    if found.get("unknown_rank"):
        return None
    sizes = map(signed, found.get("dims", ()))
    return tuple(None if size < 0 else size for size in sizes)


def read_dtype(found: dict[str, Any], place: Place) -> DType:
    """Return the element type that the field `dtype` names."""
    number = found.get("dtype", 0)
    if number not in BY_NUMBER:
        place.refuse("E220", f"there is no element type of number {number}")
    return BY_NUMBER[number]


def expand_type(node: Type) -> Iterable[Any]:
    """Return the pieces of a type's message; the types inside it are among them."""
    match node:
        case TensorType():
            if node.shape is None:
                shape = integer_field(3, 1)
            else:
                shape = packed_field(2, (-1 if size is None else size for size in node.shape))
            return [content_field(4, integer_field(1, node.element_type.number) + shape)]
        case StructType():
            elements = ((string_field(1, name or ""), value) for name, value in node.items())
            return [
                Message(2, [Message(1, [name, Message(2, [value])]) for name, value in elements])
            ]
        case SequenceType():
            return [Message(3, [Message(1, [node.element])])]
        case FunctionType():
            parameter = [] if node.parameter is None else [Message(1, [node.parameter])]
            return [Message(1, [*parameter, Message(2, [node.result])])]
        case FederatedType():
            placement = content_field(2, string_field(1, node.placement.uri))
            all_equal = integer_field(2, 1) if node.all_equal else b""
            member = Message(3, [node.member])
            return [Message(7, [content_field(1, placement), all_equal, member])]
        case PlacementType():
            return [Message(6, [])]
        case AbstractType():
            raise UnstorableError("E221", f"the abstract type `{node}` cannot be stored")
        case _:
            raise AssertionError(f"unknown type {type(node).__name__}")


def type_size(root: Type, known: dict[int, int]) -> int:
    """Return how many bytes the message of a type takes, without writing it.

    `known` is as for `written_size`.
    """
    return measured(root, known, lambda node: sum(_size(p, known) for p in expand_type(node)))


def _size(piece: Any, known: dict[int, int]) -> int:
    if isinstance(piece, Message):
        size = sum(_size(inner, known) for inner in piece.pieces)
        return size + len(content_head(piece.number, size))
    return len(piece) if isinstance(piece, bytes) else known[id(piece)]


def type_to_bytes(node: Type) -> bytes:
    """Return the serialized Type message.  Python containers are not part of it.

    Raises:
      WireError: the type is abstract.
    """
    return write([node], expand_type)


def type_from_bytes(data: bytes) -> Type:
    """Return the type in a serialized Type message.

    Raises:
      WireError: the message is malformed.
    """
    return TypeReader(data).read(Place(0, len(data)))
