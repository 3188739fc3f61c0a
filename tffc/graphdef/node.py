"""Nodes of a graph under construction, encoded without a protobuf message for each.

Of a node that is copied only name and inputs change.  So what follows them in the encoding, its
device and attributes, is kept as bytes, which all copies share.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

from tffc.proto import NodeDef
from tffc.proto.encoding import content_field, string_field

PORT = re.compile("[0-9]{1,9}")
"""The number of an output of a node, as inputs write it."""

COLOCATION = "loc:@"
"""What the name of a node begins with in the `_class` of those that have to be placed beside it."""


@dataclasses.dataclass(slots=True)
class GraphNode:
    """A node: `inputs` as in a NodeDef, `rest` the encoded fields after them.

    `classes` is the attribute `_class` where there is one, which `rest` then does not have; bytes
    that are not UTF-8 are surrogates there;
    `functions` are the library functions that the attributes or `op` name; `call` counts the calls
    of sections, for a node that was copied in by one.
    """

    name: str
    op: str
    inputs: list[str]
    rest: bytes
    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    call: int | None = None

    def encode(self, names: Container[str]) -> bytes:
        """Return the NodeDef in a graph whose nodes have these names."""
        rest = self._rest(names) if self.classes else self.rest
        fields = [string_field(1, self.name), string_field(2, self.op)]
        fields += [string_field(3, edge) for edge in self.inputs]
        return b"".join((*fields, rest))

    def _rest(self, names: Container[str]) -> bytes:
        kept = [
            name.encode(errors="surrogateescape")
            for name in self.classes
            if not name.startswith(COLOCATION) or name.removeprefix(COLOCATION) in names
        ]
        if not kept:
            return self.rest
        message = NodeDef.FromString(self.rest)
        message.attr["_class"].list.s.extend(kept)
        return encode_rest(message)


def source(edge: str) -> str:
    """Return the name of the node that an input comes from."""
    return edge[1:] if edge.startswith("^") else edge.partition(":")[0]


def port_of(edge: str) -> int | None:
    """Return the number of the output of its node that a data input is; None for what is none."""
    _, colon, port = edge.partition(":")
    if not colon:
        return 0
    return int(port) if PORT.fullmatch(port) else None


def encode_rest(message: Any) -> bytes:
    """Return the fields of a NodeDef without name, operation and inputs."""
    return message.SerializeToString(deterministic=True)


def new_rest(attributes: Mapping[str, bytes], device: str = "") -> bytes:
    """Return the rest of a node with these serialized AttrValues."""
    entries = (
        content_field(5, string_field(1, name) + content_field(2, attributes[name]))
        for name in sorted(attributes)
    )
    return string_field(4, device) + b"".join(entries)


def reached(roots: Iterable[str], nexts: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Return what can be reached from the roots, themselves included, in the order of a walk: each
    before what comes next, and all that is reached from one before the one beside it."""
    seen: dict[str, None] = {}
    stack = [*roots][::-1]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen[name] = None
            stack += [*nexts(name)][::-1]
    return seen


N = TypeVar("N", str, int)
"""A node: its name, or its number."""


def inputs_first(roots: Iterable[N], inputs: Callable[[N], Iterable[N]]) -> list[N]:
    """Return the nodes that lead into the roots, themselves included, each after its inputs; but
    one on a loop before some of them."""
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
                stack.extend((each, False) for each in inputs(name))
    return order
