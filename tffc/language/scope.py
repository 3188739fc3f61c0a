"""Free names: those that a node uses without binding them.

A block's local is visible to the locals after it and to the result; a lambda's parameter is
visible in its result; the innermost, latest binder wins.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tffc.language.nodes import Block, Lambda, Node, Reference
from tffc.language.traverse import CHILDREN, postorder
from tffc.language.types import Type

Uses = dict[str, set[Type]]
"""Names with the types they are used at."""


class BoundName(NamedTuple):
    """A name that `binder` binds to a value of this type, and the types it is used at.

    `local` is its position among the locals of a block, None for the parameter of a lambda.
    """

    binder: Lambda | Block
    local: int | None
    name: str
    type: Type
    uses: set[Type]


def bound_names(
    root: Node, free: Uses | None = None, *, only_needed: bool = False
) -> Iterator[BoundName]:
    """Yield every scope in `root`, inner ones first and those of a block from the last to the
    first.

    At the end, `free` has the names that nothing binds.  With `only_needed`, uses inside bindings
    that are not used themselves do not count.

    The names of a node become those of its parent, the smaller set merged into the larger one, so
    that the time stays nearly linear in the program, also where many names are used deep inside.
    """
    nodes = tuple(postorder(root))
    names = _Names(nodes)
    for node in nodes:
        if isinstance(node, Reference):
            names.known[id(node)] = {node.name: {node.type}}
            continue
        uses: Uses = {}
        if isinstance(node, Block):
            uses = names.join(uses, node.result)
            for local in reversed(range(len(node.locals))):
                binding = node.locals[local]
                used = uses.pop(binding.name, set())
                yield BoundName(node, local, binding.name, binding.value.type, used)
                if used or not only_needed:
                    uses = names.join(uses, binding.value)
        else:
            for child in node.children():
                uses = names.join(uses, child)
            if isinstance(node, Lambda) and node.parameter_name is not None:
                assert node.parameter_type is not None
                used = uses.pop(node.parameter_name, set())
                yield BoundName(node, None, node.parameter_name, node.parameter_type, used)
        if uses:
            names.known[id(node)] = uses
    if free is not None:
        free.update(names.known.get(id(root), {}))


class _Names:
    """The free names of nodes; `known` has them until all parents of a node have been visited."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        children = itertools.chain.from_iterable(map(CHILDREN, nodes))
        self._takers = Counter(map(id, children))
        self.known: dict[int, Uses] = {}

    def join(self, uses: Uses, node: Node) -> Uses:
        """Return the union of `uses`, which must not be used any more, and the free names of
        `node`, for one of its parents."""
        key = id(node)
        more = self.known.get(key)
        if more is None:
            return uses
        # The last parent takes over the set and changes it.  Earlier parents need a copy, because
        # the names that they bind must stay free for the others.
        if self._takers[key] == 1:
            del self.known[key]
        else:
            self._takers[key] -= 1
            more = {name: set(types) for name, types in more.items()}
        if not uses:
            return more
        # Merging the smaller set into the larger one moves a name only into a set at least twice as
        # large, so at most as often as the logarithm of the program's size.
        if len(uses) < len(more):
            uses, more = more, uses
        for name, types in more.items():
            if name in uses:
                uses[name] |= types
            else:
                uses[name] = types
        return uses


def free_references(root: Node) -> frozenset[tuple[str, Type]]:
    """Return the names that `root` uses and does not bind, each with every type it is used at."""
    free: Uses = {}
    for _ in bound_names(root, free):
        pass  # only the free names are needed
    return frozenset((name, used) for name, uses in free.items() for used in uses)


def free_names(root: Node) -> frozenset[str]:
    """Return the names that `root` uses and does not bind."""
    return frozenset(name for name, _ in free_references(root))
