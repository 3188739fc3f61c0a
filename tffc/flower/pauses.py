"""How long to pause before asking again for what has not come: a tenth of what was waited so far.

So little is asked where long is waited, and no wait gets longer by more than a tenth.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SHORTEST = 0.05
"""No pause is shorter than so many seconds."""


def pause_after(waited: float, longest: float) -> float:
    """Return how long to pause after so many seconds of waiting."""
    return min(longest, max(SHORTEST, waited / 10))


class Pauses:
    """Stands where Flower looks for the module `time`, to sleep.

    What is waited for is told by how long Flower would sleep, which is the longest pause.
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
        """Pause."""
        now = self._clock()
        if longest != self._longest:
            self._longest, self._begun = longest, now
        self._sleep(pause_after(now - self._begun, longest))

    def came(self) -> None:
        """Say that what was waited for came, so that another wait begins."""
        self._begun = self._clock()
