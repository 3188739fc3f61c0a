"""Walks over terms, which are nodes and types.

Every one uses an explicit stack and visits a shared term once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, TypeVar

from tffc.language.term import Term

T = TypeVar("T", bound=Term)


CHILDREN: Callable[[Any], Sequence[Any]] = operator.methodcaller("children")


def walk(
    root: T, inside: Callable[[T], Sequence[T]] = CHILDREN, seen: set[int] | None = None
) -> Iterator[T]:
    """Yield every distinct term object of `root`, each before its children, in reading order.

    `inside` gives the terms to enter, by default all children.  Terms whose ids are in `seen` are
    left out; visited ones are added to it.
    """
    seen = set() if seen is None else seen
    stack: list[Any] = [root]
    while stack:
        term = stack.pop()
        if (key := id(term)) in seen:
            continue
        seen.add(key)
        yield term
        stack += inside(term)[::-1]


def postorder(root: T, known: Container[int] = ()) -> Iterator[T]:
    """Yield every distinct term object of `root`, each after its children.

    Terms whose ids are in `known` are left out, and so is what only they contain.
    """
    seen: set[int] = set()
    stack: list[Any] = [root]
    while stack:
        term = stack.pop()
        if term is None:  # the term below it comes after its children
            yield stack.pop()
        elif (key := id(term)) not in seen and key not in known:
            seen.add(key)
            children = term.children()
            if not children:
                yield term
                continue
            stack += (term, None)
            stack += children[::-1]


def rewrite(root: T, rule: Callable[[T], T | None]) -> T:
    """Return `root` rebuilt bottom-up.

    `rule(term)` is called for each term after its children are rebuilt, and returns its
    replacement, or None to keep it.  It must not depend on scope: a term shared between two places
    is rewritten once for both.
    """
    replaced: dict[int, Any] = {}
    for term in postorder(root):
        rebuilt = term
        if replaced:
            children = tuple(replaced.get(id(child), child) for child in term.children())
            rebuilt = term.with_children(children)
        replacement = rule(rebuilt)
        new = rebuilt if replacement is None else replacement
        if new is not term:
            replaced[id(term)] = new
    return replaced.get(id(root), root)


def count(root: Term) -> int:
    """Return how many distinct term objects `root` has."""
    return sum(1 for _ in walk(root))


def find(root: T, kinds: type | tuple[type, ...]) -> T | None:
    """Return the first term of one of these classes inside `root`, itself included, or None."""
    return next((term for term in walk(root) if isinstance(term, kinds)), None)


def contains(root: Term, kinds: type | tuple[type, ...]) -> bool:
    """Tell whether a term of one of these classes stands inside `root`, itself included."""
    return find(root, kinds) is not None
