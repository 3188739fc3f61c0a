"""Limits on the size of what is made of a program, checked before it is made.

A small program may stand for an astronomically large one: values that are shared between places,
functions that call others twice, struct types that hold one type twice.  Code that writes out
shared parts counts them first, in time linear in the shared program, and refuses what is larger
than the bound.

There is one bound, a number of parts: a part is a node of a program, a tensor in a type, a step of
an evaluation, or `CHARACTERS` characters of a text.  The bound is `MAX_SIZE` unless a scope of
`size_limit` sets another.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import TypeVar

from tffc.language.term import Term
from tffc.language.traverse import postorder

MAX_SIZE = 4 * 2**20
"""The default bound."""

CHARACTERS = 16
"""How many characters of a text count as a part."""

TYPE_BYTES = 64
"""How many bytes of the types in a message count as a part."""

CALL = 16
"""How many parts a call counts that inlining makes, for its name, function, operands and types."""

APPLICATION = 16
"""How many steps, each a part, the inlining of one application counts."""

GROWTH = "what is shared is written out at each of its places; use it at fewer, or allow more"
"""What to do about a program that grows too large."""

COUNTED_BITS = 256
"""The longest size that is computed, in bits.  Sizes may double with each step of counting, and all
are kept, so that without a limit the numbers alone could fill memory."""

COUNTED = 1 << COUNTED_BITS
"""Larger sizes are cut to this."""

_limit: contextvars.ContextVar[int] = contextvars.ContextVar("size_limit", default=MAX_SIZE)

T = TypeVar("T", bound=Term)


@contextlib.contextmanager
def size_limit(most: int) -> Generator[None]:
    """Set the most parts of what is made inside this scope, in this thread."""
    token = _limit.set(most)
    try:
        yield
    finally:
        _limit.reset(token)


def max_size() -> int:
    """Return the bound that holds now."""
    return _limit.get()


def counted(size: int) -> int:
    """Return a size, cut to `COUNTED`."""
    return size if size < COUNTED else COUNTED


def size_text(size: int) -> str:
    """Return the text of a size."""
    return str(size) if size < COUNTED else f"at least 2^{COUNTED_BITS}"


def written_size(root: T, known: dict[int, int], own: Callable[[T], int]) -> int:
    """Return the size of a term written out as a tree, where `own` gives that of a term without its
    children.

    `known` has the sizes of terms by their ids and gets those of `root`, so that no shared term is
    measured twice; the caller keeps the terms alive.
    """
    for term in postorder(root, known):
        size = own(term)
        for child in term.children():
            size += known[id(child)]
        known[id(term)] = counted(size)
    return known[id(root)]


def tree_size(root: Term) -> int:
    """Return how many terms `root` has when it is written out as a tree."""
    return written_size(root, {}, lambda term: 1)
