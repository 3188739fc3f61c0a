"""Nodes of a graph under construction.

Copies of a node often differ in name and inputs alone.  Everything else, the operation, device and
attributes, is in one message that such copies share.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
    from google.protobuf.message import Message

    from tffc.graphs.proto import AttrValue, GraphDef, NodeDef

Nodes: TypeAlias = "RepeatedCompositeFieldContainer[NodeDef]"
"""The nodes of a graph or function, to which others can be added."""

Attributes: TypeAlias = "Mapping[str, AttrValue]"
"""The attributes of a node or function by name."""

M = TypeVar("M", bound="Message")


class NodeView(Protocol):
    """What is read of a node: of a NodeDef, or of a record with the same fields."""

    @property
    def name(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def input(self) -> Sequence[str]: ...

    @property
    def device(self) -> str: ...

    @property
    def attr(self) -> Attributes: ...


PORT = re.compile("[0-9]{1,9}")
"""The number of an output of a node, as inputs write it."""

CLASS = "_class"
COLOCATION = b"loc:@"
"""The attribute that lists the nodes beside which a node must be placed, and the prefix of their
names in it."""


@dataclasses.dataclass(slots=True)
class GraphNode:
    """A node: `inputs` as in a NodeDef, `rest` a NodeDef without name and inputs.

    `functions` are the library functions that the attributes or `op` name.  A node of a section has
    the number of the section's `call`.
    """

    name: str
    inputs: list[str]
    rest: NodeDef
    functions: tuple[str, ...] = ()
    call: int | None = None

    @property
    def op(self) -> str:
        """The operation."""
        return self.rest.op

    def message(self, names: Container[str]) -> NodeDef:
        """Return the NodeDef in a graph whose nodes have these names."""
        message = copied_message(self.rest)
        message.name = self.name
        message.input.extend(self.inputs)
        rename_colocations(message, lambda name: name if name in names else None)
        return message

    def encode(self, names: Container[str]) -> bytes:
        """Return the bytes of that NodeDef."""
        if CLASS in self.rest.attr:
            return encoded(self.message(names))
        # The shared message is changed and restored, because copying it takes longer than writing
        # it.
        self.rest.name = self.name
        self.rest.input.extend(self.inputs)
        content = encoded(self.rest)
        self.rest.ClearField("name")
        self.rest.ClearField("input")
        return content


def copied_message(message: M) -> M:
    """Return a copy of a message."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def encoded(message: Message) -> bytes:
    """Return the bytes of a message: the same bytes for the same content."""
    return message.SerializeToString(deterministic=True)


def tokens(parts: Iterable[object]) -> bytes:
    """Return the texts of parts, each after its length; bytes stand for themselves.

    No other sequence of parts has the same bytes.
    """
    texts: list[bytes] = []
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        texts.append(b"%d:%b" % (len(content), content))
    return b"".join(texts)


def hash_of(parts: Iterable[object]) -> bytes:
    """Return the SHA-256 of a sequence of parts."""
    return hashlib.sha256(tokens(parts)).digest()


def rename_colocations(node: NodeDef, renamed: Callable[[str], str | None]) -> None:
    """Rename the nodes beside which a node must be placed, and leave out those renamed to None.

    Bytes that are not UTF-8 are surrogates in the names.
    """
    if CLASS not in node.attr:
        return
    classes: list[bytes] = []
    for text in node.attr[CLASS].list.s:
        if text.startswith(COLOCATION):
            name = text.removeprefix(COLOCATION).decode(errors="surrogateescape")
            new = renamed(name)
            if new is not None:
                classes.append(COLOCATION + new.encode(errors="surrogateescape"))
        else:
            classes.append(text)
    del node.attr[CLASS]
    if classes:
        node.attr[CLASS].list.s.extend(classes)


def source(edge: str) -> str:
    """Return the name of the node that an input comes from."""
    return edge[1:] if edge.startswith("^") else edge.partition(":")[0]


def port_of(edge: str) -> int | None:
    """Return the number of the output that a data input reads; None if it is malformed."""
    _, colon, port = edge.partition(":")
    if not colon:
        return 0
    return int(port) if PORT.fullmatch(port) else None


def data_edges(node: NodeView) -> list[str]:
    """Return the inputs of a node that are tensors."""
    return [edge for edge in node.input if not edge.startswith("^")]


def control_edges(node: NodeView) -> list[str]:
    """Return the inputs of a node, `^name`, that it only waits for."""
    return [edge for edge in node.input if edge.startswith("^")]


def all_nodes(graph: GraphDef) -> Iterator[NodeDef]:
    """Yield the nodes of a graph, and those of all functions of its library."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


N = TypeVar("N", str, int)
"""A node: its name, or its number."""


def reached(roots: Iterable[N], nexts: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """Return what can be reached from the roots, roots included, as a depth-first walk meets it."""
    seen: dict[N, None] = {}
    stack = [*roots][::-1]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen[name] = None
            stack += [*nexts(name)][::-1]
    return seen


def inputs_first(roots: Iterable[N], inputs: Callable[[N], Iterable[N]]) -> list[N]:
    """Return the roots and all nodes that lead into them, each after its inputs.

    On a loop, a node comes before some of its inputs.
    """
    order: list[N] = []
    seen: set[N] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            name, expanded = stack.pop()
            if expanded:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack.extend((source, False) for source in inputs(name))
    return order
