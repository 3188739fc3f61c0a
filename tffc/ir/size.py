"""Limits on the size of what is made of a program, checked before it is made.

A small program may stand for an astronomically large one: values that are shared between places,
functions that call others twice, struct types that hold one type twice.  What has to write out what
is shared counts it first, in time of what is shared, and refuses what is larger than the bound.

The bound is a number of parts, which is one for all: a part is a node of a program, a tensor in a
type, a step of an evaluation or so many characters of a text.  It is `MAX_SIZE` unless a scope of
`size_limit` allows more, or less.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import TypeVar

from tffc.ir.term import Term
from tffc.ir.traverse import postorder

MAX_SIZE = 4 * 2**20
"""The most parts of what is made of a program, where nothing else is said."""

CHARACTERS = 16
"""How many characters of a text count as a part."""

TYPE_BYTES = 64
"""How many bytes of the types in a message count as a part."""

CALL = 16
"""How many parts a call counts for that inlining makes: its name, function, operands and types."""

APPLICATION = 16
"""How many steps, each a part, it takes to apply a function in place."""

GROWTH = "what is shared is written out at each of its places; use it at fewer, or allow more"
"""What to do about a program that grows too large."""

COUNTED_BITS = 256
"""How long the numbers of parts get.  They may double with every step of counting, and all of them
are kept, so that without an end they would fill memory themselves."""

COUNTED = 1 << COUNTED_BITS
"""What is larger counts as this."""

_limit: contextvars.ContextVar[int] = contextvars.ContextVar("size_limit", default=MAX_SIZE)

T = TypeVar("T", bound=Term)


@contextlib.contextmanager
def size_limit(most: int) -> Generator[None]:
    """Allow what is made inside this scope, in this thread, to have so many parts."""
    token = _limit.set(most)
    try:
        yield
    finally:
        _limit.reset(token)


def max_size() -> int:
    """Return the most parts that what is made now may have."""
    return _limit.get()


def counted(size: int) -> int:
    """Return a size as far as sizes are counted."""
    return size if size < COUNTED else COUNTED


def size_text(size: int) -> str:
    """Return the text of a size."""
    return str(size) if size < COUNTED else f"at least 2^{COUNTED_BITS}"


def written_size(root: T, known: dict[int, int], own: Callable[[T], int]) -> int:
    """Return the size of a term written out as a tree, where `own` gives that of a term without its
    children.

    `known` has the sizes of terms by their ids and gets those of `root`, so that no shared term is
    measured twice; whoever passes it keeps the terms.
    """
    for term in postorder(root, known):
        inside = sum(known[id(child)] for child in term.children())
        known[id(term)] = counted(own(term) + inside)
    return known[id(root)]


def tree_size(root: Term) -> int:
    """Return how many terms `root` has when it is written out as a tree."""
    return written_size(root, {}, lambda term: 1)
