"""Shorter pauses between the polls of Flower's own code."""

from __future__ import annotations

import time
from collections.abc import Callable

from tffc.deploy.federation.pauses import pause_after


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
