"""Which names a node uses without binding them.

A block's local is visible to the locals after it and to the result; a lambda's parameter is
visible in its result; the innermost, latest binder wins.
"""

from __future__ import annotations

from tffc.ir.nodes import Block, Lambda, Node, Reference
from tffc.ir.traverse import postorder
from tffc.ir.types import Type

Free = frozenset[tuple[str, Type]]
"""Names with the types they are used at."""


def free_references(root: Node) -> Free:
    """The names that `root` uses and does not bind, each with every type it is used at."""
    known: dict[int, Free] = {}
    for node in postorder(root):
        known[id(node)] = free_in(node, known)
    return known[id(root)]


def free_in(node: Node, known: dict[int, Free]) -> Free:
    """What is free in `node`, given what is free in its children by their identity."""
    match node:
        case Reference():
            return frozenset(((node.name, node.type),))
        case Lambda():
            inside = known[id(node.result)]
            if not any(name == node.parameter_name for name, _ in inside):
                return inside
            return frozenset(use for use in inside if use[0] != node.parameter_name)
        case Block():
            return _free_in_block(node, known)
    children = [free for child in node.children() if (free := known[id(child)])]
    if len(children) <= 1:
        return children[0] if children else frozenset()
    return frozenset().union(*children)


def _free_in_block(node: Block, known: dict[int, Free]) -> Free:
    types: dict[str, set[Type]] = {}
    _add(types, known[id(node.result)])
    for binding in reversed(node.locals):
        types.pop(binding.name, None)
        _add(types, known[id(binding.value)])
    return frozenset((name, used) for name, uses in types.items() for used in uses)


def _add(types: dict[str, set[Type]], free: Free) -> None:
    for name, used in free:
        types.setdefault(name, set()).add(used)


def free_names(root: Node) -> frozenset[str]:
    """The names that `root` uses and does not bind."""
    return frozenset(name for name, _ in free_references(root))
