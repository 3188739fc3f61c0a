"""The devices that batches are computed on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence


class Devices:
    """The devices that batches are computed on, and how many calls run on each.

    Concurrent calls on one device share its threads and wait for one another; with as many devices
    as workers, each worker has its own.  The first devices are preferred, because a kernel is
    compiled once for each device.  Thread-safe.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.first = names[0]
        self._running = dict.fromkeys(names, 0)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def least_busy(self) -> Generator[str]:
        """Yield the first device with the fewest calls, and count one more call in the block."""
        with self._lock:
            device = min(self._running, key=self._running.__getitem__)
            self._running[device] += 1
        try:
            yield device
        finally:
            with self._lock:
                self._running[device] -= 1
