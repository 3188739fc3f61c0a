"""Removes bindings that nothing uses."""

from __future__ import annotations

from tffc.language.nodes import Block, Node
from tffc.language.scope import bound_names
from tffc.language.traverse import postorder


def drop_unused_bindings(root: Node) -> Node:
    """Remove every binding of a block that its result does not need.

    A block without bindings becomes its result.  Effects of unused bindings are dropped too.

        (let y=f(x),z=<y>,y=True in y)   becomes   (let y=True in y)
    """
    used: dict[int, list[int]] = {}
    for bound in bound_names(root, only_needed=True):
        if bound.local is not None and bound.uses:
            used.setdefault(id(bound.binder), []).append(bound.local)
    replaced: dict[int, Node] = {}
    for node in postorder(root):
        new = node
        if replaced:
            new = node.with_children(tuple(replaced.get(id(c), c) for c in node.children()))
        if isinstance(new, Block):
            new = _with_locals(new, sorted(used.get(id(node), ())))
        if new is not node:
            replaced[id(node)] = new
    return replaced.get(id(root), root)


def _with_locals(block: Block, kept: list[int]) -> Node:
    if not kept:
        return block.result
    if len(kept) == len(block.locals):
        return block
    return Block(tuple(block.locals[index] for index in kept), block.result)
