"""Reads and writes types as Type messages."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from tffc.graphs.proto.encoding import Content, Place, joined, signed
from tffc.graphs.proto.messages import Contents, FieldReader, message_content, named
from tffc.language.dtypes import BY_NUMBER, DType
from tffc.language.shapes import Shape
from tffc.language.size import counted
from tffc.language.traverse import postorder
from tffc.language.types import (
    PLACEMENTS,
    FederatedType,
    FunctionType,
    Placement,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.errors import (
    LanguageTypeError,
    LanguageValueError,
    UnstorableError,
    WireError,
    reader,
)
from tffc.support.trampoline import Task, run

TYPE = "tffc.v0.Type"
PLACEMENT_SPEC = "tffc.v0.PlacementSpec"
PLACEMENT = "tffc.v0.Placement"

PLACEMENTS_BY_URI = {placement.uri: placement for placement in PLACEMENTS}
SHORT = 128
"""A message up to this size, in bytes, is its own key; a larger one has a digest as its key."""


class TypeReader(FieldReader):
    """Reads the types of one input.  Equal bytes give the same object and are read once."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._known: dict[bytes, Type] = {}

    def type(self, place: Place) -> Task[Type] | Type:
        """Return the type at this place, or the task that reads it.

        Raises:
          WireError: it is malformed, or breaks a rule of the language.
        """
        key = short_key(self.data[place.start : place.end])
        known = self._known.get(key)
        return self._type(place, key) if known is None else known

    def _type(self, place: Place, key: bytes) -> Task[Type]:
        kind, inner, message = self.variant(place, TYPE, "a type")
        fields = yield self.fields(inner, message)
        if kind == "abstract":
            inner.refuse("E217", "an abstract type cannot be stored")
        try:
            type = self._known[key] = _made(kind, fields, inner)
        except (LanguageTypeError, LanguageValueError) as error:
            place.refuse("E216", f"this {kind} type is not well formed: {error.message}")
        return type

    def _placement_spec(self, place: Place) -> Task[Placement]:
        kind, value, _ = self.variant(place, PLACEMENT_SPEC, "a placement")
        if kind == "label":
            value.refuse("E217", "a placement is given as a label, which is not in use")
        return self._placement(value)

    def _placement(self, place: Place) -> Task[Placement]:
        fields = yield self.fields(place, PLACEMENT)
        uri = fields.get("uri", "")
        if uri not in PLACEMENTS_BY_URI:
            place.refuse(
                "E217",
                f"there is no placement {uri!r}; the placements are {', '.join(PLACEMENTS_BY_URI)}",
            )
        return PLACEMENTS_BY_URI[uri]

    readers: ClassVar = {TYPE: type, PLACEMENT_SPEC: _placement_spec, PLACEMENT: _placement}


def _made(kind: str, fields: dict[str, Any], place: Place) -> Type:
    """Return the type of this kind whose message has these fields."""
    match kind:
        case "struct":
            elements = fields.get("element", ())
            names = tuple(element.get("name") or None for element in elements)
            return StructType.of(names, tuple(element["value"] for element in elements))
        case "function":
            return FunctionType(fields.get("parameter"), fields["result"])
        case "federated":
            all_equal = bool(fields.get("all_equal"))
            return FederatedType(fields["member"], fields["placement"], all_equal)
        case "sequence":
            return SequenceType(fields["element"])
        case "placement":
            return PlacementType()
        case _:
            return TensorType(read_dtype(fields, place), _shape(fields, place))


def short_key(content: bytes) -> bytes:
    """Return the key of a message in a table of messages that were read before."""
    return content if len(content) <= SHORT else hashlib.sha256(content).digest()


def _shape(fields: dict[str, Any], place: Place) -> Shape:
    if fields.get("unknown_rank"):
        return None
    sizes = [signed(size) for size in fields.get("dims", ())]
    if min(sizes, default=0) < -1:
        place.refuse("E216", f"a size is {min(sizes)}")
    return tuple(None if size == -1 else size for size in sizes)


def read_dtype(fields: dict[str, Any], place: Place) -> DType:
    """Return the element type that the field `dtype` names."""
    number = fields.get("dtype", 0)
    if number not in BY_NUMBER:
        place.refuse("E217", f"there is no element type of number {number}")
    return BY_NUMBER[number]


def type_content(node: Type, known: Contents) -> bytes | Content:
    """Return the content of a type's message; `known` has those of the types in it.

    Raises:
      UnstorableError: the type is abstract, at a placement that programs do not have, or has a
        size that no message can hold.
    """
    content = message_content(TYPE, {_kind(node): _fields(node)}, known)
    if isinstance(content, Content):
        # Shared types may double the size with each level.
        content.size = counted(content.size)
    return content


def _fields(node: Type) -> dict[str, Any]:
    """Return the fields of a type's message, which contain types."""
    match node:
        case TensorType():
            sizes = [-1 if size is None else _stored(size, node) for size in node.shape or ()]
            shape = {"dims": sizes, "unknown_rank": node.shape is None}
            return {"dtype": node.element_type.number, **shape}
        case StructType():
            return {"element": named(node.items())}
        case SequenceType():
            return {"element": node.element}
        case FunctionType():
            return {"parameter": node.parameter, "result": node.result}
        case FederatedType():
            if node.placement not in PLACEMENTS:
                raise UnstorableError(
                    "E105",
                    f"the type `{node}` cannot be stored: programs have no such placement",
                    help="use tff.SERVER or tff.CLIENTS",
                )
            placement = {"value": {"uri": node.placement.uri}}
            return {"placement": placement, "all_equal": node.all_equal, "member": node.member}
        case PlacementType():
            return {}
        case _:
            raise UnstorableError("E109", f"the abstract type `{node}` cannot be stored")


def _stored(size: int, type: TensorType) -> int:
    """Return a size that a message can hold; -1 stands for an unknown one there."""
    if 0 <= size < 2**63:
        return size
    raise UnstorableError(
        "E112",
        f"the type `{type}` cannot be stored: a size is {size}",
        help="write None for a size that is not known" if size < 0 else None,
    )


def _kind(node: Type) -> str:
    """Return the name of the field of a Type message that holds types of this kind."""
    kind = StructType if isinstance(node, StructType) else type(node)
    return kind.__name__.removesuffix("Type").lower()


def type_to_bytes(node: Type) -> bytes:
    """Return the serialized Type message.  Python containers are not part of it.

    Raises:
      WireError: the type is abstract, or at a placement that programs do not have.
    """
    known: Contents = {}
    for part in postorder(node):
        known[id(part)] = type_content(part, known)
    return joined(known[id(node)])


@reader("a serialized type", WireError)
def type_from_bytes(data: bytes) -> Type:
    """Return the type in a serialized Type message.

    Raises:
      WireError: the message is malformed.
    """
    return run(TypeReader(data).type(Place(0, len(data))))
