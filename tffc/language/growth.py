"""Search for the binding that makes a program large."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tffc.language.nodes import Block, Lambda, Node
from tffc.language.size import size_text
from tffc.language.traverse import walk
from tffc.language.types import Type
from tffc.support.printable import printable


def growth_notes(root: Node, size: Callable[[Type], int], most: int, unit: str) -> tuple[str, ...]:
    """Return, as a note of an error, the first binding whose type alone is larger than `most`.

    There is no note if only all types together are too large.
    """
    for node in walk(root):
        for name, type_ in _bound(node):
            if size(type_) > most:
                return (
                    f"the type of `{printable(name)}` alone takes {size_text(size(type_))} {unit}",
                )
    return ()


def _bound(node: Node) -> Iterator[tuple[str, Type]]:
    if isinstance(node, Lambda) and node.parameter_name and node.parameter_type is not None:
        yield node.parameter_name, node.parameter_type
    elif isinstance(node, Block):
        for binding in node.locals:
            yield binding.name, binding.value.type
