"""Polling intervals: a tenth of the time waited so far.

So long waits poll rarely, and polling lengthens a wait by at most a tenth, or `SHORTEST`.
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
    """Replaces the module `time` in Flower's code, with shorter pauses.

    The duration that Flower asks for is the longest pause, and tells different waits apart.
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
        """Record that the wait is over, so that the next one starts with short pauses."""
        self._begun = self._clock()
