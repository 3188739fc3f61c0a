"""Which of TensorFlow's devices a batch is computed on: the one that has the fewest at the moment.

Calls that run at once on one device share its threads, and wait for one another.  With as many
devices as workers each has one to itself.  The first devices are preferred, for each compiles a
kernel for itself, which a device that is not needed does not have to.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence


class Devices:
    """Devices by their names, and how many calls run on each; several threads may share them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.first = names[0]
        self._running = dict.fromkeys(names, 0)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def least_busy(self) -> Iterator[str]:
        """Have the device with the fewest calls, the first of them, run one more in the block."""
        with self._lock:
            device = min(self._running, key=self._running.__getitem__)
            self._running[device] += 1
        try:
            yield device
        finally:
            with self._lock:
                self._running[device] -= 1
