"""Programs on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_never

from tffc.errors import OversizeError, TffcError
from tffc.ir.array import Array, to_array
from tffc.ir.growth import growth_notes
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.ir.size import GROWTH, TYPE_BYTES, max_size, size_text, tree_size
from tffc.ir.trampoline import Task, run
from tffc.ir.traverse import postorder
from tffc.ir.type_base import mismatch
from tffc.ir.types import FunctionType, StructType, TensorType, Type
from tffc.ir.wire.arrays import array_pieces, read_array
from tffc.ir.wire.sections import any_field, read_any, read_tensorflow, read_xla
from tffc.ir.wire.types import TypeReader, expand_type, short_key, type_size
from tffc.proto.encoding import (
    NAMED,
    Kind,
    Message,
    Place,
    content_field,
    integer_field,
    only,
    read_elements,
    read_message,
    read_named,
    required,
    schema,
    signed,
    string_field,
    write,
)

VARIANTS = {
    "tensorflow": 2,
    "intrinsic": 3,
    "lambda": 4,
    "block": 5,
    "reference": 6,
    "call": 7,
    "struct": 8,
    "selection": 9,
    "data": 10,
    "placement": 11,
    "xla": 12,
    "literal": 14,
}
COMPUTATION = schema(
    type=(1, Kind.MESSAGE),
    **{name: (number, Kind.MESSAGE) for name, number in VARIANTS.items()},
)
INTRINSIC = schema(uri=(1, Kind.STRING))
LAMBDA = schema(parameter_name=(1, Kind.STRING), result=(2, Kind.MESSAGE))
BLOCK = schema(local=(1, Kind.MESSAGES), result=(2, Kind.MESSAGE))
CALL = schema(function=(1, Kind.MESSAGE), argument=(2, Kind.MESSAGE))
SELECTION = schema(source=(1, Kind.MESSAGE), index=(3, Kind.INTEGER))
DATA = schema(uri=(1, Kind.STRING), content=(3, Kind.MESSAGE))
LITERAL = schema(value=(1, Kind.MESSAGE))

SHARED = frozenset({"tensorflow", "xla", "intrinsic"})
"""The variants of which equal ones are one node, for a program uses the same ones often."""


def from_bytes(data: bytes) -> Node:
    """Return the program in a serialized Computation message.

    Every node is rebuilt through its constructor and must have the type it is stored with;
    references need not be bound.  Fields that the format does not have are skipped, and the
    content of compiled sections is kept as it is.

    Raises:
      WireError: the message is malformed; the notes name the byte and the field.
    """
    return run(_ProgramReader(data).computation(Place(0, len(data))))


class _ProgramReader:
    """Reads one input."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._types = TypeReader(data)
        self._shared: dict[bytes, Node] = {}

    def computation(self, place: Place) -> Task[Node] | Node:
        """Return the node that a Computation message holds, or the task that reads it."""
        found = read_message(self._data, place, COMPUTATION)
        type_place = required(found, "type", place)
        del found["type"]
        kind, inner = only(found, place, "a computation")
        key = short_key(self._data[place.start : place.end]) if kind in SHARED else b""
        known = self._shared.get(key)
        return self._read(kind, inner, type_place, key) if known is None else known

    def _read(self, kind: str, place: Place, type_place: Place, key: bytes) -> Task[Node]:
        declared = self._types.read(type_place)
        build, *parts = yield from self._parts(kind, place, declared)
        node = _built(declared, place, build, *parts)
        if key:
            self._shared[key] = node
        return node

    def _parts(self, kind: str, place: Place, declared: Type) -> Task[tuple[Any, ...]]:
        """Return what makes a node of this kind, and what it makes it of."""
        data = self._data
        match kind:
            case "call":
                found = read_message(data, place, CALL)
                function, argument = required(found, "function", place), found.get("argument")
                function = yield self.computation(function)
                return (
                    Call,
                    function,
                    None if argument is None else (yield self.computation(argument)),
                )
            case "struct":
                return (yield from self._struct(place, declared))
            case "selection":
                found = read_message(data, place, SELECTION)
                source = yield self.computation(required(found, "source", place))
                return Selection, source, signed(found.get("index", 0), 32)
            case "lambda":
                if not isinstance(declared, FunctionType):
                    place.refuse("E232", f"a lambda cannot have the type `{declared}`")
                found = read_message(data, place, LAMBDA)
                result = yield self.computation(required(found, "result", place))
                return Lambda, found.get("parameter_name"), declared.parameter, result
            case "block":
                return (yield from self._block(place))
            case _:
                return self._leaf(kind, place, declared)

    def _struct(self, place: Place, declared: Type) -> Task[tuple[Any, ...]]:
        names: list[str | None] = []
        values: list[Node] = []
        for element in read_elements(self._data, place):
            name, value = read_named(self._data, element)
            values.append((yield self.computation(value)))
            names.append(name or None)
        return _struct, values, names, declared

    def _block(self, place: Place) -> Task[tuple[Any, ...]]:
        found = read_message(self._data, place, BLOCK)
        bindings: list[Binding] = []
        for local in found.get("local", ()):
            name, value = read_named(self._data, local)
            bindings.append(Binding(name, (yield self.computation(value))))
        return Block, tuple(bindings), (yield self.computation(required(found, "result", place)))

    def _leaf(self, kind: str, place: Place, declared: Type) -> tuple[Any, ...]:
        """Return what makes a node that holds no others, and what it makes it of."""
        data = self._data
        match kind:
            case "tensorflow" | "xla":
                (read_tensorflow if kind == "tensorflow" else read_xla)(data, place)
                return Compiled, kind, data[place.start : place.end], declared
            case "intrinsic":
                return Intrinsic, read_message(data, place, INTRINSIC).get("uri", ""), declared
            case "reference":
                return Reference, read_message(data, place, NAMED).get("name", ""), declared
            case "data":
                content = read_message(data, place, DATA).get("content")
                url, value = ("", b"") if content is None else read_any(data, content)
                return Data, url, value, declared
            case "placement":
                return PlacementNode, self._types.placement(place)
            case _:
                if not isinstance(declared, TensorType):
                    place.refuse("E233", f"a constant cannot have the type `{declared}`")
                value = required(read_message(data, place, LITERAL), "value", place)
                return _literal, read_array(data, value), declared


def _built(declared: Type, place: Place, build: Callable[..., Node], *parts: Any) -> Node:
    """Return what `build` makes of what was read at `place`; it must have the type it is stored
    with."""
    whole = place.parent
    assert whole is not None
    try:
        node = build(*parts)
    except TffcError as error:
        whole.refuse("E230", f"this {place.step} is not well formed: {error.message}")
    if node.type is declared:
        return node
    if node.type != declared:
        whole.refuse(
            "E231",
            f"this {place.step} is stored with a type that it does not have\n"
            + mismatch(node.type, declared, "equivalent"),
        )
    # One object for equal types makes the comparison one step in the node around this one.
    object.__setattr__(node, "type", declared)
    return node


def _struct(values: list[Node], names: list[str | None], declared: Type) -> StructNode:
    if isinstance(declared, StructType) and declared.names == tuple(names):
        if all(value.type is kind for value, kind in zip(values, declared.types, strict=True)):
            return StructNode.of_type(tuple(values), declared)
    return StructNode(tuple(values), tuple(names))


def _literal(array: Array, declared: TensorType) -> Literal:
    if array.dtype is not declared.element_type:
        array = to_array(array.numpy(), declared.element_type)
    return Literal(array, declared)


def to_bytes(node: Node) -> bytes:
    """Return the program as a serialized Computation message.

    The bytes are those of protobuf's deterministic serialization.  Python containers, the names
    that elements were selected by, contexts of references, names of sections and places in the
    user's source are not part of the format.

    Raises:
      OversizeError: what the program shares makes it too large when it is written out.
      WireError: the program is larger than protobuf can read, or has an abstract type.
    """
    size = tree_size(node)
    if size > max_size():
        raise OversizeError(
            "E234",
            f"the program has {size_text(size)} nodes when it is written out, "
            f"more than the {max_size()} that are written",
            help="bind shared nodes in a block",
        )
    types = _type_contents(node)

    def expand(item: Any) -> Iterable[Any]:
        content = content_field(1, types[item.type])
        return [content, Message(VARIANTS[_kind(item)], _pieces(item))]

    return write([node], expand)


def _type_contents(root: Node) -> dict[Type, bytes]:
    """Return the serialized types of all nodes, and those that stand in several others.

    Many of them hold others, whose bytes are taken over; so those are written first.

    Raises:
      OversizeError: they are larger than they may be.
    """
    kept = _kept_types(root)
    _check_types(root, kept)
    contents: dict[Type, bytes] = {}

    def expand(item: Type) -> Iterable[Any]:
        return [contents[item]] if item in contents else expand_type(item)

    met: set[int] = set()
    for root_type in kept:
        for item in postorder(root_type, met):
            met.add(id(item))
            if item in kept and item not in contents:
                contents[item] = write([item], expand)
    return contents


def _kept_types(root: Node) -> dict[Type, None]:
    """Return the types of all nodes, and the others that stand in more than one place of them."""
    kept = {node.type: None for node in postorder(root)}
    taken: set[int] = set()
    stack = list(kept)
    while stack:
        for child in stack.pop().children():
            if id(child) in taken:
                kept[child] = None
            else:
                taken.add(id(child))
                stack.append(child)
    return kept


def _check_types(root: Node, kept: Iterable[Type]) -> None:
    """Check that the types that are kept, each written out, are not too large together.

    Raises:
      OversizeError: they are.
    """
    known: dict[int, int] = {}
    taken, most = sum(type_size(item, known) for item in kept), max_size() * TYPE_BYTES
    if taken > most:
        raise OversizeError(
            "E252",
            f"the types of the program take {size_text(taken)} bytes when they are written out, "
            f"more than the {most} that are written",
            notes=growth_notes(root, lambda type_: type_size(type_, known), most, "bytes"),
            help=GROWTH,
        )


def _kind(node: Node) -> str:
    return (
        node.kind
        if isinstance(node, Compiled)
        else type(node).__name__.removesuffix("Node").lower()
    )


def _pieces(node: Node) -> list[Any]:
    match node:
        case Lambda():
            return [string_field(1, node.parameter_name or ""), Message(2, [node.result])]
        case Block():
            pairs = ((binding.name, binding.value) for binding in node.locals)
            return [*_named(pairs), Message(2, [node.result])]
        case Call():
            argument = [] if node.argument is None else [Message(2, [node.argument])]
            return [Message(1, [node.function]), *argument]
        case StructNode():
            return _named((name or "", value) for name, value in node.items())
        case Selection():
            index = integer_field(3, node.index) if node.index else b""
            return [Message(1, [node.source]), index]
        case Reference():
            return [string_field(1, node.name)]
        case Intrinsic():
            return [string_field(1, node.uri)]
        case PlacementNode():
            return [string_field(1, node.literal.uri)]
        case Data():
            return [any_field(3, node.type_url, node.content)]
        case Compiled():
            return [node.payload]
        case Literal():
            return [Message(1, array_pieces(node.value))]
        case _:
            assert_never(node)


def _named(pairs: Iterable[tuple[str, Node]]) -> list[Any]:
    return [Message(1, [string_field(1, name), Message(2, [value])]) for name, value in pairs]
