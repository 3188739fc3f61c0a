"""Rows: the relevant nodes of graphs and functions, in canonical order."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tffc.assurance.diff.outline.constants import Constant

ARGUMENT = "argument"
"""The operation of rows for arguments."""

CALL = "call"
"""The operation of a node whose own operation is a library function."""

LONGEST = 60
"""The most characters of a text in a row; a longer one is abridged with a hash."""


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineCall:
    """A function as the value of an attribute: its number, or its name if the library lacks it."""

    function: int | str
    attributes: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        attributes = "".join(f" {name}={value}" for name, value in self.attributes)
        name = f"#{self.function}" if isinstance(self.function, int) else repr(self.function)
        return f"function {name}" + (f"({attributes[1:]})" if attributes else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """A resource name as the value of an attribute, numbered: only equality of names matters."""

    number: int

    def __str__(self) -> str:
        return f"#{self.number}"


@dataclasses.dataclass(frozen=True, slots=True)
class Values:
    """A list of constants or calls as the value of an attribute."""

    elements: tuple[Value, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.elements))}]"


Value: TypeAlias = str | Constant | OutlineCall | Resource | Values
"""The value of a node's attribute; plain values are text."""


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineRow:
    """A node: its operation, its name in the graph, and its inputs.

    `inputs` are pairs of a row's position and the output used; `after` are the positions of rows
    with a control edge to this one.
    """

    operation: str
    name: str
    attributes: Mapping[str, Value] = dataclasses.field(default_factory=dict[str, Value])
    inputs: tuple[tuple[int, str], ...] = ()
    after: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineScope:
    """A graph, or the body of a function: the rows of arguments, then those of nodes.

    `results` are like the inputs of a row, and `after` are rows that run for their effects.
    """

    name: str
    rows: list[OutlineRow]
    results: tuple[tuple[int, str], ...]
    after: tuple[int, ...]
    gradient: Value = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Outline:
    """A graph and its functions, indexed by the numbers in calls."""

    graph: OutlineScope
    functions: list[OutlineScope]

    def scopes(self) -> Iterator[OutlineScope]:
        """Yield the graph and then its functions."""
        yield self.graph
        yield from self.functions


def quoted(content: bytes) -> str:
    """Return bytes as quoted text without control characters, abridged if they are long."""
    try:
        text = ascii(content.decode())
    except UnicodeDecodeError:
        text = repr(content)
    return abridged(text, content)


def abridged(text: str, content: bytes) -> str:
    """Return the text, or its beginning and a hash of the content if it is long."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}... ({len(content)} bytes, {digest(content)})"


def digest(content: bytes) -> str:
    """Return the first eight hex digits of a hash."""
    return hashlib.sha256(content).hexdigest()[:8]
