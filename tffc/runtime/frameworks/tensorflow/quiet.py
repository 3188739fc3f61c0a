"""Silencing TensorFlow, which its own settings cannot do completely.

Some builds write to the process's stderr when they are loaded, and when they first look for
devices, whatever the log level is.  Python's own stderr keeps working meanwhile.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import logging
import os
import sys
import threading
from collections.abc import Generator
from typing import IO

from tffc.support.debug import is_debugging

STDERR = 2
LEVEL = "TF_CPP_MIN_LOG_LEVEL"
"""The environment variable with the severity below which TensorFlow logs nothing."""

QUIET = "3"
"""The level that leaves out everything but fatal errors."""


def may_speak() -> bool:
    """Return whether TensorFlow may log: TFFC_DEBUG is 1, or its own level is 0.

    Other levels do not count as set by the user: JAX sets 1 when it is imported.
    """
    return is_debugging() or os.environ.get(LEVEL) == "0"


def keep_quiet() -> None:
    """Make TensorFlow quiet from its import on, unless it is already loaded or may log.

    That includes what it logs through Python's `logging`, such as AutoGraph's warnings, but not
    errors.  Loads nothing itself; call it before running code that may import TensorFlow.
    """
    if "tensorflow" in sys.modules or may_speak():
        return
    os.environ[LEVEL] = QUIET
    logger = logging.getLogger("tensorflow")
    logger.setLevel(logging.ERROR)
    # In a notebook TensorFlow sets another level when it logs first.
    logger.addFilter(_is_error)
    # absl installs its own logger class, so it has to be loaded before the level is set.
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("absl.logging").set_verbosity("error")


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR


def is_quiet() -> bool:
    """Return whether TensorFlow logs nothing: its level was such before it was imported, if at
    all."""
    return os.environ.get(LEVEL) == QUIET


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Discard what native code writes to stderr while the block runs.

    Several threads may be in such blocks at once; the last one to leave restores stderr.  If native
    code aborts the process meanwhile, Python reports where.
    """
    if may_speak():
        yield
        return
    _quiet.enter()
    try:
        yield
    finally:
        _quiet.leave()


def quiet_if_loud() -> contextlib.AbstractContextManager[None]:
    """Return `quiet()`, or nothing to enter if TensorFlow logs nothing: it logs where it was loaded
    before tffc could prevent it."""
    return contextlib.nullcontext() if is_quiet() else quiet()


class _Quiet:
    """Counts the threads in quiet blocks; the last one to leave restores stderr."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._undo = contextlib.ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                with contextlib.ExitStack() as undo:
                    _close_stderr(undo)
                    self._undo = undo.pop_all()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._undo.close()


_quiet = _Quiet()


def _close_stderr(undo: contextlib.ExitStack) -> None:
    """Redirect native stderr to nowhere until `undo` is closed."""
    stderr = sys.stderr
    stderr.flush()
    own = undo.enter_context(os.fdopen(os.dup(STDERR), "w", buffering=1))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), STDERR)
    undo.callback(os.dup2, own.fileno(), STDERR)
    if _file_number(stderr) == STDERR:
        undo.enter_context(contextlib.redirect_stderr(own))
    if not faulthandler.is_enabled():
        faulthandler.enable(own)
        undo.callback(faulthandler.disable)


def _file_number(stream: IO[str]) -> int | None:
    """Return the file descriptor of a stream, or None if it has none."""
    try:
        return stream.fileno()
    except (OSError, AttributeError):
        return None
