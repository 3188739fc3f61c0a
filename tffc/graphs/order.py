"""Whether a graph determines the order in which its nodes read and change state.

Where it does not, TensorFlow's thread scheduling decides which value is read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping


class Accesses:
    """The accesses of nodes to state.  Sets of nodes are the bits of an integer."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        """For each node, itself and all nodes before it."""
        self._since: dict[Hashable, tuple[int, int]] = {}
        """For each state the last change, and all accesses since then, the change included."""

    def enter(self, node: str, before: Iterable[str], states: Mapping[Hashable, bool]) -> bool:
        """Add a node after those that it waits for, with the states that it accesses, each with
        whether it changes it; tell whether their order is determined so far."""
        own = until = 1 << len(self._until)
        for name in before:
            until |= self._until.get(name, 0)
        self._until[node] = until
        is_determined = True
        for state, changes in states.items():
            # A change comes after all accesses since the last change, a read after the last change.
            changed, accesses = self._since.get(state, (0, 0))
            is_determined &= not (accesses if changes else changed) & ~until
            self._since[state] = (own, own) if changes else (changed, accesses | own)
        return is_determined
