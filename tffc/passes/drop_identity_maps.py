"""Removes maps that do nothing."""

from __future__ import annotations

from tffc.ir.nodes import Block, Call, Intrinsic, Lambda, Node, Reference, Struct
from tffc.ir.traverse import rewrite

MAP_LIKE = frozenset(
    {"federated_map", "federated_map_all_equal", "federated_apply", "sequence_map"}
)


def drop_identity_maps(root: Node) -> Node:
    """Replace a map of the identity by the value it maps.

        federated_map(<(x -> x),v>)   becomes   v

    A map that changes the type of its value, such as a map of an all-equal value to one that need
    not be, is kept.
    """

    def rule(node: Node) -> Node | None:
        match node:
            case Call(Intrinsic(uri), Struct((Lambda() as function, value))) if uri in MAP_LIKE:
                return value if is_identity(function) and value.type == node.type else None
        return None

    return rewrite(root, rule)


def is_identity(node: Lambda) -> bool:
    """Whether a lambda returns its parameter as it is."""
    result: Node = node.result
    while isinstance(result, Block) and not result.locals:
        result = result.result
    return isinstance(result, Reference) and result.name == node.parameter_name
