"""The values of names at one place of a program, while it is evaluated."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

V = TypeVar("V")

_Part: TypeAlias = "dict[str, V] | tuple[_Part[V], ...]"
"""A dictionary, or a tuple of parts where that would have too many names."""

_MOST = 16
"""How many names are kept in one dictionary."""

_BITS = 4
"""How many bits of a name's hash tell in which part of a larger environment it is."""

_DEEPEST = 16
"""How deep parts nest; after that no bits of a hash are left."""


class Environment(Generic[V]):
    """The values of names.  An environment never changes; one with another name shares nearly all
    of it.

    Finding and adding a name takes time logarithmic in their number, however deep their scopes
    nest.
    """

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Part[V] = {}

    def bind(self, name: str, value: V) -> Environment[V]:
        """Return this environment with a new value for a name."""
        extended: Environment[V] = Environment()
        extended._root = _bound(self._root, name, value, 0)
        return extended

    def find(self, name: str) -> V | None:
        """Return the value of a name, or None if it has none."""
        part, depth = self._root, 0
        while not isinstance(part, dict):
            part, depth = part[_place(name, depth)], depth + 1
        return part.get(name)


def _place(name: str, depth: int) -> int:
    return (hash(name) >> depth * _BITS) % 2**_BITS


def _bound(part: _Part[V], name: str, value: V, depth: int) -> _Part[V]:
    """Return a part with one more name."""
    if not isinstance(part, dict):
        at = _place(name, depth)
        return (*part[:at], _bound(part[at], name, value, depth + 1), *part[at + 1 :])
    names = {**part, name: value}
    if len(names) <= _MOST or depth == _DEEPEST:
        return names
    parts: tuple[dict[str, V], ...] = tuple({} for _ in range(2**_BITS))
    for key, bound in names.items():
        parts[_place(key, depth)][key] = bound
    return parts
