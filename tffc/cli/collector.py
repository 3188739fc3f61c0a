"""Python's garbage collector, paused by the command line while programs are traced and compiled.

Programs are trees, so that reference counts free whatever compiling leaves behind, and there is no
garbage to collect.  The collector would search for it all the same: many new objects make it visit
everything that is alive in the process, which takes longer the more a user has imported.  The
library leaves the collector to the process that it is used in.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def collector_paused() -> Generator[None]:
    """Collect no garbage meanwhile, in any thread; do nothing where that is so already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
