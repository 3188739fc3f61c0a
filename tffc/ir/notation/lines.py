"""The compact and the formatted form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

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
    check_size,
    data_name,
    literal_text,
    section_label,
)
from tffc.ir.notation.pieces import Mark, bracketed, expanded, layout, listed, max_text, on_one_line
from tffc.printable import printable


def compact(root: Node, section_name: SectionName = section_label) -> str:
    """Return the program on one line.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    return on_one_line(_pieces(root, section_name), max_text()).rstrip()


def formatted(root: Node, section_name: SectionName = section_label) -> str:
    """Return the program with the locals of blocks and the elements of structs on their own lines.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    return layout(_pieces(root, section_name), max_text())


def _pieces(root: Node, section_name: SectionName) -> Iterator[str | Mark]:
    check_size(root)
    return expanded([root], lambda node: _parts(node, section_name))


def _parts(node: Node, section_name: SectionName) -> list[Any]:
    match node:
        case Reference():
            context = "" if node.context is None else f"@{node.context}"
            return [printable(f"{node.name}{context}")]
        case Selection():
            step = f"[{node.index}]" if node.name is None else f".{printable(node.name)}"
            return [node.source, step]
        case Struct():
            return bracketed(list(node.items()))
        case Call():
            argument = [] if node.argument is None else [node.argument]
            return [node.function, "(", *argument, ")"]
        case Lambda():
            return [f"({printable(node.parameter_name or '')} -> ", node.result, ")"]
        case Block():
            items = listed((binding.name, binding.value) for binding in node.locals)
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
