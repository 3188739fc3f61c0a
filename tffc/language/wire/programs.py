"""Reads and writes programs as Computation messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import GeneratorType
from typing import Any, ClassVar, assert_never, cast

from tffc.graphs.proto.computation import described
from tffc.graphs.proto.encoding import Content, Place, joined, read_message, signed, size_of
from tffc.graphs.proto.messages import Contents, message_content, named, only, required
from tffc.language.array import Array, to_array
from tffc.language.growth import growth_notes
from tffc.language.nodes import (
    UNOPENED,
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
from tffc.language.size import GROWTH, TYPE_BYTES, max_size, size_text, tree_size
from tffc.language.traverse import postorder, rewrite
from tffc.language.type_base import mismatch
from tffc.language.types import FunctionType, StructType, TensorType, Type
from tffc.language.wire.arrays import ARRAY, array_fields, read_array
from tffc.language.wire.python_functions import check_may_leave
from tffc.language.wire.sections import TENSORFLOW, XLA, read_tensorflow, read_xla
from tffc.language.wire.types import TypeReader, short_key, type_content
from tffc.support.errors import (
    LanguageTypeError,
    LanguageValueError,
    OversizeError,
    WireError,
    reader,
)
from tffc.support.trampoline import Task, run

COMPUTATION = "tffc.v0.Computation"
REFERENCE = "tffc.v0.Reference"

SHARED = frozenset({"tensorflow", "xla", "intrinsic"})
"""The kinds of nodes that programs repeat: equal ones are read once and become one node."""


@reader("a serialized computation", WireError)
def from_bytes(data: bytes) -> Node:
    """Return the program in a serialized Computation message.

    Every node is rebuilt through its constructor and must have the type it is stored with;
    references need not be bound.  Fields that the format does not have are skipped, and the
    content of compiled sections is kept as it is.

    Raises:
      WireError: the message is malformed; the notes name the byte and the field.
    """
    return run(_ProgramReader(data).computation(Place(0, len(data))))


class _ProgramReader(TypeReader):
    """Reads the programs in one input."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._shared: dict[bytes, Node] = {}

    def computation(self, place: Place) -> Task[Node] | Node:
        """Return the node in a Computation message, or the task that reads it."""
        fields = read_message(self.data, place, described(COMPUTATION).schema)
        type_place = required(fields, "type", place)
        del fields["type"]
        kind, inner = only(fields, place, "a computation")
        key = short_key(self.data[place.start : place.end]) if kind in SHARED else b""
        known = self._shared.get(key) if key else None
        if known is not None:
            return known
        declared = self.type(type_place)
        if kind == "reference" and isinstance(declared, Type):  # as a third of all nodes are
            return _reference(read_message(self.data, inner, described(REFERENCE).schema), declared)
        return self._read(kind, inner, declared, place, key)

    def _read(
        self, kind: str, place: Place, type: Task[Type] | Type, whole: Place, key: bytes
    ) -> Task[Node]:
        declared = type if isinstance(type, Type) else (yield type)
        if kind == "lambda" and not isinstance(declared, FunctionType):
            place.refuse("E216", f"a lambda cannot have the type `{declared}`")
        if kind == "literal" and not isinstance(declared, TensorType):
            place.refuse("E216", f"a constant cannot have the type `{declared}`")
        content = self.message(place, described(COMPUTATION).fields[kind].message)
        if isinstance(content, GeneratorType):
            # It yields the tasks inside it, so Python's stack stays flat.
            content = yield from cast("Task[Any]", content)
        try:
            node = self._made(kind, content, declared, place)
        except (LanguageTypeError, LanguageValueError) as error:
            whole.refuse("E216", f"this {kind} is not well formed: {error.message}")
        if node.type is not declared:
            if node.type != declared:
                whole.refuse(
                    "E216",
                    f"this {kind} is stored with a type that it does not have\n"
                    + mismatch(node.type, declared, "equivalent"),
                )
            # Sharing one object for equal types makes comparing them in the parent one step.
            object.__setattr__(node, "type", declared)
        if key:
            self._shared[key] = node
        return node

    def _made(self, kind: str, fields: Any, declared: Any, place: Place) -> Node:
        """Return the node of this kind whose message has these fields."""
        match kind:
            case "call":
                return Call(fields["function"], fields.get("argument"))
            case "struct":
                return _struct(fields.get("element", ()), declared)
            case "selection":
                return Selection(fields["source"], signed(fields.get("index", 0), 32))
            case "lambda":
                return Lambda(fields.get("parameter_name"), declared.parameter, fields["result"])
            case "block":
                pairs = (
                    (local.get("name", ""), local["value"]) for local in fields.get("local", ())
                )
                return Block(tuple(Binding(*pair) for pair in pairs), fields["result"])
            case "reference":
                return _reference(fields, declared)
            case "intrinsic":
                return Intrinsic(fields.get("uri", ""), declared)
            case "placement":
                return PlacementNode(fields)
            case "data":
                content = fields.get("content", {})
                return Data(content.get("type_url", ""), content.get("value", b""), declared)
            case "literal":
                return _literal(fields["value"], declared)
            case _:
                return Compiled(kind, self.data[place.start : place.end], declared)

    readers: ClassVar = {
        **TypeReader.readers,
        COMPUTATION: computation,
        TENSORFLOW: lambda self, place: read_tensorflow(self.data, place),
        XLA: lambda self, place: read_xla(self.data, place),
        ARRAY: lambda self, place: read_array(self.data, place),
    }


def _reference(fields: dict[str, Any], declared: Type) -> Reference:
    return Reference(fields.get("name", ""), declared)


def _struct(elements: Sequence[dict[str, Any]], declared: Type) -> StructNode:
    names = tuple(element.get("name") or None for element in elements)
    values = tuple(element["value"] for element in elements)
    if isinstance(declared, StructType) and declared.names == names:
        if all(value.type is kind for value, kind in zip(values, declared.types, strict=True)):
            return StructNode.of_type(values, declared)
    return StructNode(values, names)


def _literal(array: Array, declared: TensorType) -> Literal:
    if array.dtype is not declared.element_type:
        array = to_array(array.numpy(), declared.element_type)
    return Literal(array, declared)


def to_bytes(node: Node, *, leaves: bool = True) -> bytes:
    """Return the program as a serialized Computation message.

    The bytes are those of protobuf's deterministic serialization.  Python containers, the names
    that elements were selected by, contexts of references, names of sections and places in the
    user's source are not part of the format.  Without `leaves`, the bytes stay in this process.

    Raises:
      LanguageValueError: the program would leave this process and calls functions of Python.
      OversizeError: the program is too large when its shared parts are written out.
      WireError: the program is larger than protobuf can read, or has an abstract type.
    """
    size = tree_size(node)
    if size > max_size():
        raise OversizeError(
            "E201",
            f"the program has {size_text(size)} nodes when it is written out, "
            f"more than the {max_size()} that are written",
            help="bind shared nodes in a block",
        )
    if leaves:
        check_may_leave(node)
    parts = list(postorder(node))
    known = _type_contents(node, parts)
    for part in parts:
        fields = {"type": part.type, _kind(part): _fields(part)}
        known[id(part)] = message_content(COMPUTATION, fields, known)
    return joined(known[id(node)])


def opened(root: Node) -> Node:
    """Return a program with the nodes themselves in place of their unopened messages.

    Raises:
      WireError: a message is malformed, or of another type than its node.
    """

    def rule(node: Node) -> Node | None:
        is_unopened = isinstance(node, Compiled) and node.kind in UNOPENED
        return from_bytes(to_bytes(node)) if is_unopened else None

    return rewrite(root, rule)


def _type_contents(root: Node, nodes: Iterable[Node]) -> Contents:
    """Return the contents of the messages of all types in a program, whose nodes are given.

    Raises:
      OversizeError: the types of all nodes are larger than the limit.
    """
    known: Contents = {}
    contents: dict[Type, bytes | Content] = {}
    taken, most = 0, max_size() * TYPE_BYTES
    kinds = {id(node.type): node.type for node in nodes}.values()
    of_nodes = set(kinds)
    for kind in kinds:
        for part in postorder(kind, known):
            if part not in contents:
                content = type_content(part, known)
                if part in of_nodes:
                    taken += size_of(content)
                    if taken <= most:  # join its pieces once, not for each of its nodes
                        content = joined(content)
                contents[part] = content
            known[id(part)] = contents[part]
    if taken > most:
        raise OversizeError(
            "E167",
            f"the types of the program take {size_text(taken)} bytes when they are written out, "
            f"more than the {most} that are written",
            notes=growth_notes(root, lambda kind: size_of(known[id(kind)]), most, "bytes"),
            help=GROWTH,
        )
    return known


def _kind(node: Node) -> str:
    if isinstance(node, Compiled):
        return node.kind
    return type(node).__name__.removesuffix("Node").lower()


def _fields(node: Node) -> dict[str, Any] | bytes:
    """Return the fields of a node's message, without its type."""
    match node:
        case Lambda():
            return {"parameter_name": node.parameter_name, "result": node.result}
        case Block():
            pairs = ((binding.name, binding.value) for binding in node.locals)
            return {"local": named(pairs), "result": node.result}
        case Call():
            return {"function": node.function, "argument": node.argument}
        case StructNode():
            return {"element": named(node.items())}
        case Selection():
            return {"source": node.source, "index": node.index}
        case Reference():
            return {"name": node.name}
        case Intrinsic() | PlacementNode():
            return {"uri": node.uri}
        case Data():
            return {"content": {"type_url": node.type_url, "value": node.value}}
        case Compiled():
            return node.payload
        case Literal():
            return {"value": array_fields(node.array)}
        case _:
            assert_never(node)
