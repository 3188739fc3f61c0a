"""The structural form: the tree of nodes, drawn from the top down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from tffc.language.nodes import (
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
from tffc.language.notation.canvas import NEAR, Canvas
from tffc.language.notation.labels import (
    SectionName,
    check_size,
    data_name,
    literal_text,
    section_label,
)
from tffc.support.printable import printable

CALL_DISTANCE, BLOCK_DISTANCE, ITEM_DISTANCE = 4, 5, 1
"""The distances, in the first row, of the arms of a call, those of a block, and two items of a
list."""


def structural(root: Node, section_name: SectionName = section_label) -> str:
    """Return the program drawn as a tree.

    Raises:
      NotationError: the drawing has more than MAX_TEXT characters.
    """
    check_size(root)
    drawn: list[Canvas] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        children = node.children()
        if not expanded:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children))
            continue
        first = len(drawn) - len(children)
        parts = drawn[first:]
        del drawn[first:]
        drawn.append(_draw(node, parts, section_name))
    return drawn[0].text()


def _draw(node: Node, parts: list[Canvas], section_name: SectionName) -> Canvas:
    match node:
        case Reference():
            return Canvas(f"Ref({printable(node.name)})")
        case Selection():
            step = str(node.index) if node.name is None else printable(node.name)
            return _stem(f"Sel({step})", parts[0])
        case StructNode():
            return _stem("Struct", _list(node.names, parts))
        case Call() if node.argument is None:
            return _cap("Call", _left_arm(parts[0]))
        case Call():
            arms = _left_arm(parts[0]).join(_right_arm(parts[1]), CALL_DISTANCE)
            return _cap("Call", arms)
        case Lambda():
            return _stem(f"Lambda({printable(str(node.parameter_name))})", parts[0])
        case Block():
            items = _list((binding.name for binding in node.locals), parts[:-1])
            return _cap("Block", _left_arm(items).join(_right_arm(parts[-1]), BLOCK_DISTANCE))
        case Intrinsic():
            return Canvas(printable(node.uri))
        case Data():
            return Canvas(f"Data({data_name(node.type_url, node.value)})")
        case Compiled():
            return Canvas(f"Compiled({section_name(node)})")
        case PlacementNode():
            return Canvas("Placement")
        case Literal():
            return Canvas(f"Lit({literal_text(node.array, drawn=True)})")
        case _:
            assert_never(node)


def _list(names: Iterable[str | None], values: list[Canvas]) -> Canvas:
    drawing = Canvas("[")
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        if index:
            drawing = drawing.join(Canvas(","), NEAR, NEAR)
        item = value if name is None else Canvas(f"{printable(name)}=").join(value, NEAR, NEAR)
        drawing = drawing.join(item, ITEM_DISTANCE) if index else drawing.join(item, NEAR, NEAR)
    return drawing.join(Canvas("]"), NEAR, NEAR)


def _left_arm(drawing: Canvas) -> Canvas:
    drawing.put_above(drawing.width - drawing.trail(), "/")
    return drawing


def _right_arm(drawing: Canvas) -> Canvas:
    drawing.put_above(drawing.lead() - 1, "\\")
    return drawing


def _cap(label: str, drawing: Canvas) -> Canvas:
    drawing.put_above(drawing.lead() + 1, label)
    return drawing


def _stem(label: str, drawing: Canvas) -> Canvas:
    column = drawing.lead()
    drawing.put_above(column, "|")
    drawing.put_above(column, label)
    return drawing
