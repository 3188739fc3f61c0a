"""Takes the Python containers out of types."""

from __future__ import annotations

import dataclasses

from tffc.language.nodes import Compiled, Data, Intrinsic, Lambda, Node, Reference, StructNode
from tffc.language.traverse import rewrite
from tffc.language.type_parts import without_containers
from tffc.language.types import Type


def strip_containers(root: Node) -> Node:
    """Remove the Python containers from struct types.

    A serialized program has no containers either.  Otherwise types stay the same, at every depth.
    The notation does not show containers, so a program looks the same before and after.
    """

    def rule(node: Node) -> Node | None:
        match node:
            case Lambda(parameter_type=Type() as parameter):
                return dataclasses.replace(node, parameter_type=without_containers(parameter))
            case StructNode(container=type()):
                return StructNode(node.values, node.names)
            case Reference() | Intrinsic() | Compiled() | Data():
                return dataclasses.replace(node, type=without_containers(node.type))
            case _:
                return None

    return rewrite(root, rule)
