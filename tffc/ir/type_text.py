"""The printed forms of types.

Formatted text breaks inside every struct that has elements and nowhere else; there is no limit on
the width of a line.
"""

from __future__ import annotations

from collections.abc import Callable

from tffc.ir.size import size_text, written_size
from tffc.ir.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.printable import printable

LONGEST, SHOWN = 2**18, 1000
"""Of a text of more pieces than the first number, the second number is shown."""


def compact_type(root: Type) -> str:
    """The type on one line."""
    return "".join(_render(root, _compact_parts))


def formatted_type(root: Type) -> str:
    """The type with the elements of every struct on lines of their own."""
    return _join_rows(_render(root, _formatted_parts))


def python_type(root: Type) -> str:
    """The Python expression that makes the type, the class of a container after `as`."""
    return "".join(_render(root, _python_parts))


def _render(root: Type, parts: Callable[[Type], list[Type | str]]) -> list[str]:
    """The pieces of text that make up `root`, where `parts` gives those of one type.

    Of more than LONGEST pieces only the first are given, and how many parts the type has.
    """
    pieces: list[str] = []
    stack: list[Type | str] = [root]
    while stack:
        if len(pieces) > LONGEST:
            size = written_size(root, {}, lambda inner: 1)
            return [*pieces[:SHOWN], f" ...{size_text(size)} parts in all"]
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        else:
            stack.extend(reversed(parts(item)))
    return pieces


_INDENT, _DEDENT, _BREAK = "\x01", "\x02", "\x03"
"""Marks in formatted pieces: where the elements of a struct begin and end, and between two."""


def _compact_parts(node: Type) -> list[Type | str]:
    return _parts(node, formatted=False)


def _formatted_parts(node: Type) -> list[Type | str]:
    return _parts(node, formatted=True)


def _parts(node: Type, formatted: bool) -> list[Type | str]:
    match node:
        case TensorType():
            return [tensor_text(node)]
        case StructType():
            return _struct_parts(node, formatted)
        case SequenceType():
            return [node.element, "*"]
        case FunctionType():
            parameter = [] if node.parameter is None else [node.parameter]
            return ["(", *parameter, " -> ", node.result, ")"]
        case FederatedType() if node.all_equal:
            return [node.member, f"@{node.placement}"]
        case FederatedType():
            return ["{", node.member, f"}}@{node.placement}"]
        case AbstractType():
            return [printable(node.name)]
        case PlacementType():
            return ["placement"]
    raise AssertionError(f"unknown type {type(node).__name__}")


def _struct_parts(node: StructType, formatted: bool) -> list[Type | str]:
    if not node.types:
        return ["<>"]
    parts: list[Type | str] = ["<"]
    if formatted:
        parts.append(_INDENT)
    for index, (name, element) in enumerate(node.items()):
        if index:
            parts.append("," + _BREAK if formatted else ",")
        if name is not None:
            parts.append(f"{printable(name)}=")
        parts.append(element)
    if formatted:
        parts.append(_DEDENT)
    parts.append(">")
    return parts


def _python_parts(node: Type) -> list[Type | str]:
    match node:
        case TensorType():
            shape = "" if node.shape == () else f", {node.shape!r}"
            return [f"TensorType({node.dtype!r}{shape})"]
        case StructType():
            parts: list[Type | str] = ["StructType(["]
            for index, (name, element) in enumerate(node.items()):
                parts.append(", " if index else "")
                parts.extend([element] if name is None else [f"({name!r}, ", element, ")"])
            suffix = "" if node.container is None else f" as {node.container.__name__}"
            return [*parts, f"]){suffix}"]
        case SequenceType():
            return ["SequenceType(", node.element, ")"]
        case FunctionType():
            parameter = "None" if node.parameter is None else node.parameter
            return ["FunctionType(", parameter, ", ", node.result, ")"]
        case FederatedType():
            return ["FederatedType(", node.member, f", {node.placement!r}, {node.all_equal!r})"]
        case AbstractType():
            return [f"AbstractType({node.name!r})"]
        case PlacementType():
            return ["PlacementType()"]
    raise AssertionError(f"unknown type {type(node).__name__}")


def tensor_text(node: TensorType) -> str:
    """The compact text of a tensor type."""
    if node.shape is None:
        return f"'{node.dtype}'(shape=None)"
    if not node.shape:
        return str(node.dtype)
    return f"{node.dtype}[{','.join('?' if d is None else str(d) for d in node.shape)}]"


def _join_rows(pieces: list[str]) -> str:
    depth = 0
    text: list[str] = []
    for piece in pieces:
        if piece == _INDENT:
            depth += 1
            text.append("\n" + "  " * depth)
        elif piece == _DEDENT:
            depth -= 1
            text.append("\n" + "  " * depth)
        elif piece.endswith(_BREAK):
            text.append(piece[:-1] + "\n" + "  " * depth)
        else:
            text.append(piece)
    return "".join(text)
