"""The parts that types are made of, and types with other parts."""

from __future__ import annotations

from tffc.language.size import GROWTH, max_size, size_text, tree_size
from tffc.language.traverse import rewrite, walk
from tffc.language.types import CLIENTS, PLACEMENTS, FederatedType, StructType, Type, at_clients
from tffc.support.errors import LanguageTypeError, LanguageValueError


def distinct_leaves(root: Type) -> list[Type]:
    """Return the types of `root` that are not structs, each object once, in the order of their
    first places; a federated member is not entered."""
    parts = walk(root, lambda part: part.types if isinstance(part, StructType) else ())
    return [part for part in parts if not isinstance(part, StructType)]


UNCOUNTED = 10_000
"""How many parts of a type are visited before they are counted."""


def leaves(root: Type) -> list[Type]:
    """Return the types of `root` that are not structs, in order; a federated member is not entered.

    Raises:
      LanguageValueError: the structs of `root`, written out, have more parts than a type may.
    """
    parts: list[Type] = []
    stack = [root]
    visited, counted = 0, min(UNCOUNTED, max_size())
    while stack:
        node = stack.pop()
        visited += 1
        if visited == counted:
            check_parts(root)
        if isinstance(node, StructType):
            stack.extend(reversed(node.types))
        else:
            parts.append(node)
    return parts


def check_parts(root: Type) -> None:
    """Check that the type, with each struct in it written out at each place, is not too large.

    Raises:
      LanguageValueError: it has more parts than a type may.
    """
    parts = tree_size(root) if root.children() else 1
    if parts > max_size():
        raise LanguageValueError(
            "E167",
            f"the type `{root}` has {size_text(parts)} parts when it is written out, more than the "
            f"{max_size()} that are looked at",
            help=GROWTH,
        )


def check_placements(root: Type) -> None:
    """Check that all placements in a type are those of programs.

    Raises:
      LanguageTypeError: there is another one.
    """
    for part in walk(root) if root.has_placement else ():
        if isinstance(part, FederatedType) and part.placement not in PLACEMENTS:
            raise LanguageTypeError(
                "E105",
                f"a value of a program cannot be of type `{part}`",
                help="programs have values at tff.SERVER and at tff.CLIENTS",
            )


def without_containers(root: Type) -> Type:
    """Return `root` with plain structs only, as it is after a round trip over the wire."""
    if not root.has_container:
        return root

    def rule(node: Type) -> Type | None:
        if isinstance(node, StructType) and node.container is not None:
            return StructType.of(node.names, node.types)
        return None

    return rewrite(root, rule)


def is_all_equal(type: Type) -> bool:
    """Tell whether a type is of values at the clients that are the same for all of them."""
    return isinstance(type, FederatedType) and type.placement is CLIENTS and type.all_equal


def not_all_equal(root: Type) -> Type:
    """Return `root` with its all-equal values at the clients as values that may differ."""
    return rewrite(root, lambda t: at_clients(local_type(t)) if is_all_equal(t) else None)


def local_type(placed: Type) -> Type:
    """Return `placed` with every federated type replaced by its member."""
    if isinstance(placed, FederatedType):
        return placed.member
    return rewrite(placed, lambda t: t.member if isinstance(t, FederatedType) else None)
