"""Removes maps that do nothing."""

from __future__ import annotations

from tffc.language.invariants import is_identity_map
from tffc.language.nodes import Call, Node, StructNode
from tffc.language.traverse import rewrite


def drop_identity_maps(root: Node) -> Node:
    """Replace a map of the identity with the value that it maps.

    A map that changes the type of its value, such as from an all-equal value to one that may
    differ, stays.

        federated_map(<(x -> x),v>)   becomes   v
    """

    def rule(node: Node) -> Node | None:
        if isinstance(node, Call) and is_identity_map(node):
            assert isinstance(node.argument, StructNode)
            return node.argument.values[1]
        return None

    return rewrite(root, rule)
