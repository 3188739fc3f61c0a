"""The base of types and nodes: immutable trees, hashed at most once and compared by content.

Trees may be deep and may share subtrees, so nothing here recurses, no pair of shared subtrees is
compared twice, and trees are pickled as flat lists.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, NamedTuple, Self, cast


class Term:
    """An immutable tree.  Subclasses are frozen slotted dataclasses.

    One with subtrees returns them as its `children`, and names their fields in `_subtrees`.  Two
    terms are equal when class, label and children are.
    """

    __slots__ = ("_hash",)
    _hash: int
    _subtrees: ClassVar[tuple[str, ...]] = ()

    def children(self) -> tuple[Any, ...]:
        """Return the subtrees, in the order of every traversal."""
        return ()

    def own_label(self) -> Hashable:
        """Return the content of this term besides its subtrees: its other fields that are
        compared."""
        return _label(type(self), self._subtrees)(self)

    def hashed_label(self) -> Hashable:
        """Return the part of the label that the hash depends on."""
        return self.own_label()

    def rebuilt(self, children: tuple[Any, ...]) -> Term:
        """Return the term with these subtrees, of which there are as many as before."""
        raise AssertionError(f"{type(self).__name__} has no subtrees")

    def with_children(self, children: tuple[Any, ...]) -> Any:
        """Return the term with these subtrees, or the term itself if it has them already."""
        return self if all(map(operator.is_, self.children(), children)) else self.rebuilt(children)

    def seal(self) -> None:
        """Compute what a subclass keeps beside its fields; nothing by default."""

    def __hash__(self) -> int:
        # Most nodes are never hashed, so no node is hashed when it is made.
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
        return restore, (flatten(self),)


@functools.cache
def _label(kind: type[Term], subtrees: tuple[str, ...]) -> Callable[[Term], Hashable]:
    fields: Any = dataclasses.fields(cast("Any", kind))
    made_of = [field.name for field in fields if field.init and field.compare]
    names = [name for name in made_of if name not in subtrees]
    return operator.attrgetter(*names) if names else lambda term: None


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
            or left.own_label() != right.own_label()
        ):
            return False
        left_children, right_children = left.children(), right.children()
        if len(left_children) != len(right_children):
            return False
        seen.add((id(left), id(right)))
        stack.extend(zip(left_children, right_children, strict=True))
    return True


def set_hash(term: Term, children: tuple[Any, ...]) -> None:
    """Hash a term whose children are hashed already."""
    content = (type(term).__name__, term.hashed_label(), tuple(map(hash, children)))
    object.__setattr__(term, "_hash", hash(content))


def _hash_all(root: Term) -> int:
    """Hash a term and those of its subtrees that are not hashed yet."""
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
            set_hash(term, children)
    return hash(root)


# Pickling as flat lists: terms may be deeper than pickle can follow, and hashes are valid in one
# process only.


class Number(NamedTuple):
    """A reference to a term in a flat list, by its position."""

    position: int


def flatten(root: Term) -> list[tuple[type, dict[str, Any]]]:
    """Return the class and the fields of every term in `root`, each after the terms in its fields.

    A shared term occurs once.
    """
    numbers: dict[int, Number] = {}
    flat: list[tuple[type, dict[str, Any]]] = []
    missing = [root]

    def number(term: Term) -> Number | None:
        if id(term) not in numbers:
            missing.append(term)
        return numbers.get(id(term))

    while missing:
        term, count = missing[-1], len(missing)
        fields = {name: _replace(value, Term, number) for name, value in _fields(term).items()}
        if len(missing) == count:
            missing.pop()
            if id(term) not in numbers:
                numbers[id(term)] = Number(len(flat))
                flat.append((type(term), fields))
    return flat


def restore(flat: list[tuple[type, dict[str, Any]]]) -> Term:
    """Return the term that `flatten` made the list of."""
    terms: list[Term] = []

    def by_number(number: Number) -> Term:
        return terms[number.position]

    for kind, state in flat:
        term = cast("Term", object.__new__(kind))
        for name, value in state.items():
            object.__setattr__(term, name, _replace(value, Number, by_number))
        term.seal()
        terms.append(term)
    return terms[-1]


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _replace(value: Any, kind: type, by: Callable[[Any], Any]) -> Any:
    """Return the value of a field with everything of one kind in it replaced."""
    if isinstance(value, kind):
        return by(value)
    if type(value) is tuple:  # one with named fields, such as a span, holds no terms
        return tuple(_replace(item, kind, by) for item in cast("tuple[Any, ...]", value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Term):
        parts = tuple(_fields(value).values())  # a binding, or a record without terms
        replaced = _replace(parts, kind, by)
        return value if all(map(operator.is_, parts, replaced)) else type(value)(*replaced)
    return value
