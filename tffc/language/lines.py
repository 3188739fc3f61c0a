"""Walks over programs that know which of the user's lines each node comes from."""

from __future__ import annotations

from collections.abc import Iterator

from tffc.language.nodes import Block, Lambda, Node
from tffc.support.errors import Span


def walk_with_lines(root: Node) -> Iterator[tuple[Node, Span | None]]:
    """Yield every distinct node object of `root` in reading order, and the innermost line around it
    that is known."""
    stack: list[tuple[Node, Span | None]] = [(root, None)]
    seen: set[int] = set()
    while stack:
        node, span = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, span
        if isinstance(node, Block):
            stack.append((node.result, span))
            stack += [(local.value, local.span or span) for local in reversed(node.locals)]
        else:
            inner = node.span or span if isinstance(node, Lambda) else span
            stack += [(child, inner) for child in reversed(node.children())]
