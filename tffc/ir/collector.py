"""Python's garbage collector, kept away while programs are traced, read, written and compiled.

Programs are trees, so that reference counts free whatever compiling leaves behind, and there is no
garbage to collect.  The collector would search for it all the same: many new objects make it visit
everything that is alive in the process, which takes longer the more a user has imported.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Collects no garbage meanwhile, in any thread; does nothing where that is so already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
