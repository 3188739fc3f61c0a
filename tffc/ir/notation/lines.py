"""The compact and the formatted form."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

from tffc.ir.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Placement,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.notation.labels import (
    SectionName,
    check_length,
    check_size,
    data_name,
    literal_text,
    max_text,
    section_label,
)
from tffc.printable import printable


class Mark(enum.Enum):
    """Where the formatted form breaks the line, and how the indentation changes there."""

    INDENT = 2
    BREAK = 0
    DEDENT = -2


Piece: TypeAlias = str | Mark


def compact(root: Node, section_name: SectionName = section_label) -> str:
    """The program on one line.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    text: list[str] = []
    length, most = 0, max_text()
    for piece in _pieces(root, section_name):
        if isinstance(piece, str):
            text.append(piece)
            length += len(piece)
            if length > most:
                check_length(length, most)
    return "".join(text).rstrip()


def formatted(root: Node, section_name: SectionName = section_label) -> str:
    """The program with the locals of blocks and the elements of structs on lines of their own.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    return layout(_pieces(root, section_name))


def layout(pieces: Iterable[Piece], deepest: int | None = None) -> str:
    """The pieces as lines, without the spaces at their ends.

    Where `deepest` is given, lines are indented by so many levels at most.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    rows: list[str] = []
    row: list[str] = []
    indentation = length = 0
    most = max_text()
    for piece in pieces:
        if isinstance(piece, str):
            row.append(piece)
            length += len(piece)
        else:
            rows.append("".join(row).rstrip())
            indentation += piece.value
            row = [" " * (indentation if deepest is None else min(indentation, 2 * deepest))]
            length += len(row[0]) + 1
        if length > most:
            check_length(length, most)
    rows.append("".join(row).rstrip())
    return "\n".join(rows)


def _pieces(root: Node, section_name: SectionName) -> Iterator[Piece]:
    check_size(root)
    stack: list[Node | Piece] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str | Mark):
            yield item
        else:
            stack.extend(reversed(_parts(item, section_name)))


def _parts(node: Node, section_name: SectionName) -> list[Node | Piece]:
    match node:
        case Reference():
            context = "" if node.context is None else f"@{node.context}"
            return [printable(f"{node.name}{context}")]
        case Selection():
            step = f"[{node.index}]" if node.name is None else f".{printable(node.name)}"
            return [node.source, step]
        case Struct() if not node.values:
            return ["<>"]
        case Struct():
            return ["<", Mark.INDENT, *_items(node.items()), Mark.DEDENT, ">"]
        case Call():
            argument = [] if node.argument is None else [node.argument]
            return [node.function, "(", *argument, ")"]
        case Lambda():
            return [f"({printable(node.parameter_name or '')} -> ", node.result, ")"]
        case Block():
            items = _items((binding.name, binding.value) for binding in node.locals)
            return ["(let ", Mark.INDENT, *items, Mark.DEDENT, " in ", node.result, ")"]
        case Intrinsic():
            return [printable(node.uri)]
        case Data():
            return [f"data#{data_name(node)}"]
        case Compiled():
            return [f"comp#{section_name(node)}"]
        case Placement():
            return [str(node.literal)]
        case Literal():
            return [literal_text(node.value, drawn=False)]
        case _:
            assert_never(node)


def _items(pairs: Iterable[tuple[str | None, Node]]) -> list[Node | Piece]:
    parts: list[Node | Piece] = []
    for name, value in pairs:
        if parts:
            parts.extend((",", Mark.BREAK))
        if name is not None:
            parts.append(f"{printable(name)}=")
        parts.append(value)
    return parts
