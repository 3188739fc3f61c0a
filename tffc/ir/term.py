"""What types and nodes share: immutable trees, hashed at most once and compared by content.

Trees may be deep and may share subtrees, so nothing here recurses and no pair of shared subtrees
is compared twice.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self


class Term:
    """An immutable tree.  Subclasses are frozen slotted dataclasses that define two methods.

    `children` gives the subtrees in their fixed order, `label` everything else that makes up the
    content.  Two terms are equal when class, label and children are.
    """

    __slots__ = ("_hash",)
    _hash: int

    def children(self) -> tuple[Term, ...]:
        """The subtrees, in the order of every traversal."""
        raise AssertionError(f"{type(self).__name__} does not define its children")

    def label(self) -> Hashable:
        """The content of this term besides its subtrees."""
        raise AssertionError(f"{type(self).__name__} does not define its label")

    def _seal(self) -> None:
        """Computes what a subclass keeps beside its fields; nothing unless it says so."""

    def __hash__(self) -> int:
        # Most nodes are never asked, so that none is hashed when it is made.
        try:
            return self._hash
        except AttributeError:
            return _hash_all(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Term):
            return NotImplemented
        return _equal(self, other)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> Any:
        from tffc.ir.pickling import flatten, restore

        return restore, (flatten(self),)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal


def _equal(first: Term, second: Term) -> bool:
    seen: set[tuple[int, int]] = set()
    stack = [(first, second)]
    while stack:
        left, right = stack.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        if (
            hash(left) != hash(right)
            or type(left) is not type(right)
            or left.label() != right.label()
        ):
            return False
        left_children, right_children = left.children(), right.children()
        if len(left_children) != len(right_children):
            return False
        seen.add((id(left), id(right)))
        stack.extend(zip(left_children, right_children, strict=True))
    return True


def _hash_all(root: Term) -> int:
    """Hashes a term and those of its subtrees that are not hashed yet."""
    stack = [root]
    while stack:
        term = stack[-1]
        children = () if hasattr(term, "_hash") else term.children()
        missing = [child for child in children if not hasattr(child, "_hash")]
        if missing:
            stack += missing
            continue
        stack.pop()
        if not hasattr(term, "_hash"):
            content = (type(term).__name__, term.label(), tuple(map(hash, children)))
            object.__setattr__(term, "_hash", hash(content))
    return root._hash
