"""Removes bindings that nothing uses."""

from __future__ import annotations

from tffc.ir.nodes import Block, Node
from tffc.ir.scope import Free, free_in
from tffc.ir.traverse import rewrite


def drop_unused_bindings(root: Node) -> Node:
    """Remove every binding of a block that its result does not need.

    A block without bindings becomes its result.  What an unused binding would have done besides
    computing its value is not done.

        (let y=f(x),z=<y>,y=True in y)   becomes   (let y=True in y)
    """
    known: dict[int, Free] = {}

    def rule(node: Node) -> Node:
        node = _without_unused(node, known)
        known[id(node)] = free_in(node, known)
        return node

    return rewrite(root, rule)


def _without_unused(node: Node, known: dict[int, Free]) -> Node:
    if not isinstance(node, Block):
        return node
    live = {name for name, _ in known[id(node.result)]}
    kept = []
    for binding in reversed(node.locals):
        if binding.name in live:
            kept.append(binding)
            live.discard(binding.name)
            live.update(name for name, _ in known[id(binding.value)])
    if len(kept) == len(node.locals) and kept:
        return node
    return Block(tuple(reversed(kept)), node.result) if kept else node.result
