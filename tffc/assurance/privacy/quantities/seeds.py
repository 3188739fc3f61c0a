"""Seeds that whoever asks vouches for: those that follow from a clock, or begin so in the state.

A seed is known by where it comes from and by what was added to it, so that equal seeds are seen to
be equal.  Only integers of 64 bits are followed: what is added to one of them makes another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

COARSEST = 1e6
"""The least number of steps in a second with which a clock is a seed."""

FINEST = 1e9
"""The largest number of steps in a second that integers of 64 bits can count."""

LARGEST = 2**31
"""The largest number by which seeds of a state may differ, far below what wraps around."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seed:
    """Integers that nobody can guess, as `assumption` says.

    The `source` stands for all draws from seeds of a clock, or of an element of the state.
    `reading` is one reading of the clock.  `offsets` were added to the elements of the state; those
    that were added to a reading of a clock do not count, so that all its seeds are one.
    """

    source: int
    assumption: str
    reading: int = 0
    offsets: tuple[int, ...] = ()
    is_word: bool = True
    """Whether it is held as an integer of 64 bits, and not as a floating-point number."""

    @property
    def key(self) -> tuple[int, ...]:
        """What tells it from other seeds of its source."""
        return (self.reading, *self.offsets)


def repeats(step: tuple[int, ...], offsets: Iterable[tuple[int, ...]]) -> bool:
    """Tell whether two rounds may draw from one seed, if each adds a step to the seeds of the state
    and draws from those with offsets."""
    place = next((place for place, length in enumerate(step) if length), None)
    if place is None:
        return True
    different = set(offsets)
    rounds = {offset: offset[place] // step[place] for offset in different}
    starts = {
        tuple(o - rounds[offset] * s for o, s in zip(offset, step, strict=True))
        for offset in different
    }
    return len(starts) < len(different)
