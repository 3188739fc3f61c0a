"""Pausing Python's garbage collector while commands are loaded, and while programs are traced,
compiled and examined.

Modules stay, and programs are trees, so reference counting frees everything that compiling leaves
behind.  The collector would still search for cycles: creating many objects makes it visit
everything alive in the process, which takes longer the more a user has imported and the larger the
program is.  Only the command line pauses it; a process that uses the library decides for itself.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def collector_paused() -> Generator[None]:
    """Pause garbage collection in all threads; do nothing if it is paused already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def skip_last_collection() -> None:
    """Let Python not search all that is alive for garbage as the process ends."""
    gc.freeze()
