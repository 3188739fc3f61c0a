"""State that operations find by name: variables, tables, queues, iterators and the like.

Two operations with one `shared_name` use the same state.  A copy of a graph must not share state
with another copy, but within a copy equal names must still mean the same state.  So all names in a
copy get the prefix of that copy.  State without a name mostly has that of its node, which in a copy
has the prefix already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tffc.graphs.operations import op_table

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView
    from tffc.graphs.proto import NodeDef


NAME_ATTRIBUTES = ("shared_name", "var_name")
ANONYMOUS = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""The name by which TensorFlow asks for anonymous state."""

ANONYMOUS_TABLES = {
    "HashTableV2": "AnonymousHashTable",
    "MutableDenseHashTableV2": "AnonymousMutableDenseHashTable",
    "MutableHashTableOfTensorsV2": "AnonymousMutableHashTableOfTensors",
    "MutableHashTableV2": "AnonymousMutableHashTable",
}
"""Operations that make tables, and those that make the same tables without a name."""

LOOP_ENTRIES = frozenset({"Enter", "RefEnter"})
"""Operations that begin a loop, whose attribute `frame_name` tells loops of one graph apart."""


def has_named_state(node: NodeView) -> bool:
    """Tell whether a node finds its state by a name: an attribute's, or else its own."""
    if "shared_name" in node.attr and node.attr["shared_name"].s == ANONYMOUS:
        return False
    operation = op_table.find(node.op)
    if operation is not None:
        return operation.has_named_state
    return any(name in node.attr for name in NAME_ATTRIBUTES)


def is_named_like_node(node: NodeDef) -> bool:
    """Tell whether a node's state has no other name than the node."""
    if node.op == "VarHandleOp" or not has_named_state(node):
        return False
    return not any(node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr)


def state_name(node: NodeView) -> bytes | None:
    """Return the name by which a node finds its state, empty for variables without one; None if it
    finds none."""
    if not has_named_state(node):
        return None
    names = [node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr]
    own = b"" if node.op == "VarHandleOp" else node.name.encode()
    return next((name for name in names if name), own)


def separable(nodes: Iterable[NodeDef]) -> list[NodeDef]:
    """Return the nodes whose state needs no name: variables and tables whose name none of the other
    nodes uses."""
    users: dict[bytes, list[NodeDef]] = {}
    for node in nodes:
        name = state_name(node)
        if name is not None:
            users.setdefault(name, []).append(node)
    alone = [group[0] for group in users.values() if len(group) == 1]
    return [node for node in alone if node.op in {"VarHandleOp", *ANONYMOUS_TABLES}]


def make_anonymous(node: NodeDef) -> None:
    """Make the state of a variable or table anonymous, so that each run has its own."""
    if node.op == "VarHandleOp":
        node.attr["shared_name"].s = ANONYMOUS
        return
    node.op = ANONYMOUS_TABLES[node.op]
    for name in ("container", "shared_name", "use_node_name_sharing"):
        node.attr.pop(name, None)


def is_scoped(node: NodeDef) -> bool:
    """Tell whether a copy of the node needs other attributes than the node."""
    return node.op in LOOP_ENTRIES or has_named_state(node)


def scope_state(node: NodeDef, prefix: str) -> None:
    """Put the prefix before the name of the node's state; variables without a name share it."""
    if not has_named_state(node):
        return
    for name in NAME_ATTRIBUTES:
        if name in node.attr and node.attr[name].s:
            node.attr[name].s = prefix.encode() + node.attr[name].s
    if node.op == "VarHandleOp" and not node.attr["shared_name"].s:
        node.attr["shared_name"].s = prefix.encode()


def scope_loop(node: NodeDef, prefix: str) -> None:
    """Put the prefix before the name of the loop that a node begins."""
    if node.op in LOOP_ENTRIES:
        node.attr["frame_name"].s = prefix.encode() + node.attr["frame_name"].s
