"""Keeping native code silent, which no setting of TensorFlow does altogether.

Some builds write to the stderr of the process when they are loaded, and when they look for devices
for the first time, whatever the log level is.  Python's own stderr stays open meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

STDERR = 2


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Sends what native code writes to stderr nowhere while the block runs."""
    if os.environ.get("TFFC_DEBUG") == "1":
        yield
        return
    stderr = sys.stderr
    with contextlib.ExitStack() as stack:
        stderr.flush()
        kept = stack.enter_context(os.fdopen(os.dup(STDERR), "w", buffering=1))
        nowhere = stack.enter_context(open(os.devnull, "w"))
        os.dup2(nowhere.fileno(), STDERR)
        stack.callback(os.dup2, kept.fileno(), STDERR)
        if stderr is sys.__stderr__:
            stack.enter_context(contextlib.redirect_stderr(kept))
        yield
