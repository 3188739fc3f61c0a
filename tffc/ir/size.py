"""How large what is made of a program may become, told before it is made.

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
from collections.abc import Callable, Iterator
from typing import TypeVar

from tffc.ir.nodes import Block, Lambda, Node
from tffc.ir.term import Term
from tffc.ir.traverse import walk
from tffc.ir.types import Type
from tffc.printable import printable

MAX_SIZE = 4 * 2**20
"""The most parts of what is made of a program, where nothing else is said."""

CHARACTERS = 16
"""How many characters of a text count as a part."""

TYPE_BYTES = 64
"""How many bytes of the types in a message count as a part."""

CALL = 16
"""How many parts a call counts for that inlining makes: its name, function, operands and types."""

GROWTH = "what is shared is written out at each of its places; use it at fewer, or allow more"
"""What to do about a program that grows too large."""

_limit: contextvars.ContextVar[int] = contextvars.ContextVar("size_limit", default=MAX_SIZE)

T = TypeVar("T", bound=Term)


@contextlib.contextmanager
def size_limit(most: int) -> Iterator[None]:
    """Allows what is made inside this scope, in this thread, to have so many parts."""
    token = _limit.set(most)
    try:
        yield
    finally:
        _limit.reset(token)


def max_size() -> int:
    """The most parts that what is made now may have."""
    return _limit.get()


def written_size(root: T, known: dict[int, int], own: Callable[[T], int]) -> int:
    """The size of a term written out as a tree, where `own` gives that of a term without its
    children.

    `known` has the sizes of terms by their ids and gets those of `root`, so that no shared term is
    measured twice; whoever passes it keeps the terms.
    """
    stack: list[Term] = [root]
    while stack:
        term = stack[-1]
        if id(term) in known:
            stack.pop()
            continue
        children = term.children()
        missing = [child for child in children if id(child) not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        known[id(term)] = own(term) + sum(known[id(child)] for child in children)  # type: ignore[arg-type]
    return known[id(root)]


def growth_note(root: Node, most: int, size: Callable[[Type], int], unit: str) -> tuple[str, ...]:
    """Which binding of a program first has a type larger than `most`, as a note of an error."""
    for node in walk(root):
        for name, type_ in _bound(node):
            if size(type_) > most:
                return (f"the type of `{printable(name)}` alone takes {size(type_)} {unit}",)
    return ()


def _bound(node: Node) -> Iterator[tuple[str, Type]]:
    if isinstance(node, Lambda) and node.parameter_name and node.parameter_type is not None:
        yield node.parameter_name, node.parameter_type
    elif isinstance(node, Block):
        for binding in node.locals:
            yield binding.name, binding.value.type
