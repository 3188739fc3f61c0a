"""Patterns: paths of parts of a client's data, as reports print them.

A path covers everything below it.  `*` stands for any text in a step, a whole step `*` for any one
step, `[*]` for any index, and a whole step `**` for any number of steps.  Everything else stands
for itself.  `how many PATH` means the number of elements, and `shape of PATH` the shape.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tffc.support.errors import Span
from tffc.support.printable import printable


class Aspect(enum.Enum):
    """What a pattern says of a part of the data, and the words that it begins with."""

    DATA = ""
    COUNT = "how many "
    SHAPE = "shape of "


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, and its place in a file; one that `is_optional` may match nothing of a program."""

    text: str
    is_optional: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def aspect(self) -> Aspect:
        """What the pattern says of the data that it covers."""
        special = (Aspect.COUNT, Aspect.SHAPE)
        return next(
            (aspect for aspect in special if self.text.startswith(aspect.value)), Aspect.DATA
        )

    @property
    def path(self) -> str:
        """The pattern without the words that it begins with."""
        return self.text.removeprefix(self.aspect.value).strip()

    @property
    def shown(self) -> str:
        """The pattern as reports have it."""
        return f"{self.text} (optional)" if self.is_optional else self.text

    def covered(self, paths: Iterable[str]) -> list[str]:
        """Return those of the paths that the pattern covers."""
        return [path for path in paths if self._covers(path) or self._covers(printable(path))]

    def _covers(self, path: str) -> bool:
        # A path covers itself, whatever characters its names consist of.
        is_below = path.startswith((f"{self.path}.", f"{self.path}["))
        return path == self.path or is_below or _automaton(self.path).covers(path)


TOKEN = re.compile(
    r"(?P<first_steps>^\*\*\.)|(?P<steps>\.\*\*(?=[.\[]|\Z))|(?P<first>^\*(?=[.\[]|\Z))"
    r"|(?P<step>\.\*(?=[.\[]|\Z))|(?P<index>\[\*\])|(?P<any>\*+)|(?P<text>[^*.\[]+|.)",
    re.DOTALL,
)

NOT_IN_STEPS = frozenset(".[]")

Move: TypeAlias = Callable[[str], bool]
"""Whether a character leads from a state to another."""


class _Automaton:
    """The states of a pattern, and which character leads from one to another.

    A path is compared with all of a pattern's wildcards at once, so it takes time in the product of
    the two lengths, whatever the wildcards are.
    """

    def __init__(self, tokens: Iterable[re.Match[str]]) -> None:
        self._moves: list[list[tuple[Move, int]]] = [[]]
        self._free: list[list[int]] = [[]]
        for token in tokens:
            self._add(token.lastgroup or "", token[0])

    def _state(self) -> int:
        self._moves.append([])
        self._free.append([])
        return len(self._moves) - 1

    def _some(self, start: int, move: Move, end: int) -> None:
        """Lead from a state to another by one character or more."""
        self._moves[start].append((move, end))
        self._moves[end].append((move, end))

    def _add(self, kind: str, text: str) -> None:
        start = len(self._moves) - 1
        match kind:
            case "first_steps":
                inner = self._state()
                end = self._state()
                self._moves[inner] += [(_any, inner), (_one_of("."), end)]
                self._free[start] += [inner, end]
            case "steps":
                inner = self._state()
                end = self._state()
                self._moves[start].append((_one_of(".["), inner))
                self._moves[inner].append((_any, inner))
                self._free[start].append(end)
                self._free[inner].append(end)
            case "first":
                self._some(start, _in_step, self._state())
            case "any":
                end = self._state()
                self._moves[end].append((_in_step, end))
                self._free[start].append(end)
            case "step" | "index":
                digits, dot, name = self._state(), self._state(), self._state()
                opened = self._state()
                end = self._state()
                self._moves[start].append((_one_of("["), opened))
                self._some(opened, _is_digit, digits)
                self._moves[digits].append((_one_of("]"), end))
                if kind == "step":
                    self._moves[start].append((_one_of("."), dot))
                    self._some(dot, _in_step, name)
                    self._free[name].append(end)
            case _:
                for letter in text:
                    start, before = self._state(), start
                    self._moves[before].append((_one_of(letter), start))

    def covers(self, path: str) -> bool:
        """Return whether the pattern ends where a step of the path does."""
        last = len(self._moves) - 1
        states = self._closed({0})
        for letter in path:
            if last in states and letter in ".[":
                return True
            after = {to for state in states for move, to in self._moves[state] if move(letter)}
            if not after:
                return False
            states = self._closed(after)
        return last in states

    def _closed(self, states: set[int]) -> set[int]:
        """Return the states, and those that need no character from them."""
        pending = list(states)
        while pending:
            for free in self._free[pending.pop()]:
                if free not in states:
                    states.add(free)
                    pending.append(free)
        return states


def _any(letter: str) -> bool:
    return True


def _in_step(letter: str) -> bool:
    return letter not in NOT_IN_STEPS


def _is_digit(letter: str) -> bool:
    return letter in "0123456789"


def _one_of(letters: str) -> Move:
    return letters.__contains__


@functools.lru_cache(maxsize=256)
def _automaton(path: str) -> _Automaton:
    return _Automaton(TOKEN.finditer(path))
