"""Reproducible random draws.

The result of a draw depends only on its place in the program, the party that draws, and the number
of earlier draws at that place, not on arguments; see `Draws`.  So a program and its compiled form
draw the same numbers, even if rounding makes other values differ.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

from tffc.assurance.validation.stand_ins import Draw, answering, loose_operations, runnable, sample
from tffc.language.nodes import Compiled
from tffc.language.types import Type
from tffc.runtime.frameworks.sections import run_section


@dataclasses.dataclass(frozen=True, slots=True)
class Who:
    """A party that draws: the server, a client, or a step that merges partial aggregates."""

    kind: str
    index: int = 0


SERVER = Who("server")


@dataclasses.dataclass(frozen=True, slots=True)
class Calls:
    """All calls at one place by the server, or by each client."""

    place: str
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Numbering:
    """The rule by which calls at a place draw equal or different numbers.

    With `by_order`, each call draws other numbers, but the n-th call draws the same in every run.
    Otherwise all calls draw the same numbers, except those of `apart` at `position`.  With
    `by_all`, all parties draw the same numbers.
    """

    by_order: bool = False
    apart: Calls | None = None
    position: int = 0
    by_all: bool = False

    def number(self, place: str, who: Who, position: int) -> str:
        """Return the text that a call's draws are derived from."""
        calls = Calls(place, who.kind)
        is_apart = calls == self.apart and position == self.position
        number = position if self.by_order else int(is_apart)
        return f"{place} {number}" if self.by_all else f"{place} {who.kind} {who.index} {number}"


IN_ORDER = Numbering(by_order=True)
ALL_ALIKE = Numbering()
SHARED = Numbering(by_all=True)


class Draws:
    """The draws of one run of a program or of its compiled form.

    For each party, the first section with a draw at a place has position 0 there, the next has
    position 1, and so on.  Draws that a loop in a section repeats are steps of one position.
    """

    def __init__(self, seed: int = 0, numbering: Numbering = IN_ORDER) -> None:
        self.sections: dict[str, Type] = {}
        self.loose: collections.Counter[str] = collections.Counter()
        self._seed = seed
        self._numbering = numbering
        self.who = SERVER
        self._next: collections.Counter[tuple[str, Who]] = collections.Counter()
        self._steps: collections.Counter[tuple[str, Who, int]] = collections.Counter()

    @contextlib.contextmanager
    def by(self, who: Who) -> Generator[None]:
        """Attribute draws to `who` while the context is active."""
        before, self.who = self.who, who
        try:
            yield
        finally:
            self.who = before

    def position(self) -> dict[tuple[str, Who], int]:
        """Return the current positions, for `repeat_from`."""
        return dict(self._next)

    def repeat_from(self, position: dict[tuple[str, Who], int]) -> None:
        """Go back to earlier positions; the next draws are further steps of these."""
        self._next = collections.Counter(position)

    def run(
        self,
        section: Compiled,
        argument: Any,
        run_section: Callable[[Compiled, Any], Any] = run_section,
    ) -> Any:
        """Return the result of a section, with its draws made by this object.

        `run_section` runs the section; the default does so without rewriting it, as the interpreter
        does.
        """
        self.loose.update(loose_operations(section))
        ready = runnable(section)
        if not ready.draws:
            return run_section(ready.section, argument)
        places = collections.Counter(draw.place for draw in ready.draws)
        self.sections.update(dict.fromkeys(places, section.type))
        with answering(self._answer):
            result = run_section(ready.section, argument)
        for place, count in places.items():
            self._next[place, self.who] += count
        return result

    def _answer(self, draw: Draw, operands: Sequence[Any]) -> Sequence[Any]:
        place, who = draw.place, self.who
        position = self._next[place, who] + draw.rank
        step = self._steps[place, who, position]
        self._steps[place, who, position] += 1
        number = self._numbering.number(place, who, position)
        digest = hashlib.sha256(f"{self._seed} {number} {step}".encode()).digest()
        return sample(draw.operation, int.from_bytes(digest[:8], "little"), operands)

    def calls(self) -> collections.Counter[tuple[str, Who]]:
        """Count the calls that drew, by place and party."""
        return collections.Counter((place, who) for place, who, _ in self._steps)

    def repeated(self) -> dict[Calls, int]:
        """Return the calls with more than one position of a party, with the number of positions."""
        counts: dict[Calls, int] = {}
        for place, who, position in self._steps:
            calls = Calls(place, who.kind)
            counts[calls] = max(counts.get(calls, 0), position + 1)
        return {calls: count for calls, count in counts.items() if count > 1}

    def too_often(self, expected: Draws) -> str | None:
        """Describe a draw that is made more often than expected; return None if there is none.

        Draws may be missing, because a result may not need them.
        """
        for place, _ in self.calls() - expected.calls():
            return (
                f"a section of type `{expected.sections.get(place, self.sections[place])}`, which "
                "does not always give the same, runs more often"
            )
        for operation, count in sorted((self.loose - expected.loose).items()):
            wanted = expected.loose[operation]
            return f"the operation {operation} runs {wanted + count} times instead of {wanted}"
        return None
