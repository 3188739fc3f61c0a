"""Walks over nodes.  Every one uses an explicit stack and visits a shared node once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import assert_never

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
from tffc.ir.size import COUNTED


def walk(root: Node) -> Iterator[Node]:
    """Every distinct node object of `root`, each before its children, in reading order."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(node.children()))


def postorder(root: Node) -> Iterator[Node]:
    """Every distinct node object of `root`, each after its children."""
    seen: set[int] = set()
    stack: list[Node | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:  # all under the node below it is done
            finished = stack.pop()
            assert finished is not None
            yield finished
        elif id(node) not in seen:
            seen.add(id(node))
            children = node.children()
            if not children:
                yield node
                continue
            stack += (node, None)
            stack.extend(reversed(children))


def with_children(node: Node, children: tuple[Node, ...]) -> Node:
    """`node` with other children, which are as many as before; itself if none differs."""
    if all(old is new for old, new in zip(node.children(), children, strict=True)):
        return node
    match node:
        case Selection():
            struct = children[0].type
            names = getattr(struct, "names", ())
            keeps = node.index < len(names) and names[node.index] == node.name
            return Selection(children[0], node.index, node.name if keeps else None)
        case Struct():
            return Struct(children, node.names, node.container)
        case Call():
            return Call(*children)
        case Lambda():
            return Lambda(node.parameter_name, node.parameter_type, children[0], node.span)
        case Block():
            bindings = (
                dataclasses.replace(binding, value=value)
                for binding, value in zip(node.locals, children[:-1], strict=True)
            )
            return Block(tuple(bindings), children[-1])
        case Reference() | Intrinsic() | Data() | Compiled() | Placement() | Literal():
            return node
        case _:
            assert_never(node)


def rewrite(root: Node, rule: Callable[[Node], Node | None]) -> Node:
    """Rebuilds `root` bottom-up.

    `rule(node)` is asked for each node whose children are rebuilt already and gives its
    replacement, or None to keep it.  It must not look at scope: a node shared between two places
    is rewritten once for both.
    """
    replaced: dict[int, Node] = {}
    for node in postorder(root):
        rebuilt = node
        if replaced:
            children = tuple(replaced.get(id(child), child) for child in node.children())
            rebuilt = with_children(node, children)
        replacement = rule(rebuilt)
        new = rebuilt if replacement is None else replacement
        if new is not node:
            replaced[id(node)] = new
    return replaced.get(id(root), root)


def count(root: Node) -> int:
    """How many distinct node objects `root` has."""
    return sum(1 for _ in walk(root))


def tree_size(root: Node) -> int:
    """How many nodes `root` has when it is written out as a tree, a shared one at each place."""
    sizes: dict[int, int] = {}
    for node in postorder(root):
        size = 1
        for child in node.children():
            size += sizes[id(child)]
        sizes[id(node)] = size if size < COUNTED else COUNTED
    return sizes[id(root)]
