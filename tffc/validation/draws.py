"""Random draws of a program, decided by where and how often it draws, not by arguments.

A draw is known by its place in the program, by who draws, and by how many draws of that place came
before: see `Draws`.  What it gives is a function of these alone.  So a program and what was made of
it draw the same numbers, although sums that they are added to may round otherwise.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

from tffc.frameworks.sections import run_section
from tffc.ir.nodes import Compiled
from tffc.ir.types import Type
from tffc.validation.stand_ins import Draw, answering, loose_operations, runnable, sample


@dataclasses.dataclass(frozen=True, slots=True)
class Who:
    """The server, one of the clients, or one of the steps that merge partial aggregates."""

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
    """The rule by which calls at a place draw the same numbers.

    `by_order` has every call draw its own, the first of one run what the first of another draws.
    Otherwise all calls draw the same, but for the one of `apart` that is in `position`.  `by_all`
    has everybody draw the same.
    """

    by_order: bool = False
    apart: Calls | None = None
    position: int = 0
    by_all: bool = False

    def number(self, place: str, who: Who, position: int) -> str:
        """Return what the draws of a call depend on."""
        calls = Calls(place, who.kind)
        is_apart = calls == self.apart and position == self.position
        number = position if self.by_order else int(is_apart)
        return f"{place} {number}" if self.by_all else f"{place} {who.kind} {who.index} {number}"


IN_ORDER = Numbering(by_order=True)
ALL_ALIKE = Numbering()
SHARED = Numbering(by_all=True)


class Draws:
    """The draws of one run of a program, or of what was made of it.

    Of the sections that are run for somebody, the first one with a draw at a place is in position 0
    there, the next one in position 1.  In a loop inside of a section, draws differ from step to
    step.
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
        """Have somebody draw in its context."""
        before, self.who = self.who, who
        try:
            yield
        finally:
            self.who = before

    def position(self) -> dict[tuple[str, Who], int]:
        """Return where the draws that come next stand."""
        return dict(self._next)

    def repeat_from(self, position: dict[tuple[str, Who], int]) -> None:
        """Have the next draws stand where others stand already, as their next step."""
        self._next = collections.Counter(position)

    def run(
        self,
        section: Compiled,
        argument: Any,
        run_section: Callable[[Compiled, Any], Any] = run_section,
    ) -> Any:
        """Return the result of a section, with what it draws decided here.

        `run_section` runs it: by default as the judge does, which is as it is.
        """
        self.loose.update(loose_operations(section))
        made = runnable(section)
        if not made.draws:
            return run_section(made.section, argument)
        places = collections.Counter(draw.place for draw in made.draws)
        self.sections.update(dict.fromkeys(places, section.type))
        with answering(self._answer):
            result = run_section(made.section, argument)
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
        """Return how many calls of each place drew, for each who did."""
        return collections.Counter((place, who) for place, who, _ in self._steps)

    def repeated(self) -> dict[Calls, int]:
        """Return the places of which somebody draws in more than one position, and in how many."""
        found: dict[Calls, int] = {}
        for place, who, position in self._steps:
            calls = Calls(place, who.kind)
            found[calls] = max(found.get(calls, 0), position + 1)
        return {calls: count for calls, count in found.items() if count > 1}

    def too_often(self, expected: Draws) -> str | None:
        """Return what is drawn here more often than expected, in words; None if nothing is.

        What no result needs may be drawn less often.
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
