"""Polling intervals: a tenth of the time waited so far.

Long waits poll rarely, and polling makes no wait longer by more than a tenth.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SHORTEST = 0.05
"""The shortest pause in seconds."""


def pause_after(waited: float, longest: float) -> float:
    """Return how long to pause after having waited for this many seconds."""
    return min(longest, max(SHORTEST, waited / 10))


class Pauses:
    """Replaces the module `time` in Flower's code, to sleep shorter.

    The duration that Flower asks for identifies what it waits for, and is the longest pause.
    """

    def __init__(
        self,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep = sleep
        self._clock = clock
        self._longest, self._begun = 0.0, 0.0

    def sleep(self, longest: float) -> None:
        """Sleep for the next pause."""
        now = self._clock()
        if longest != self._longest:
            self._longest, self._begun = longest, now
        self._sleep(pause_after(now - self._begun, longest))

    def came(self) -> None:
        """Record that what was waited for arrived, so that the next wait starts again."""
        self._begun = self._clock()
