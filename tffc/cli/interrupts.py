"""Ctrl-C ends a command within two seconds, whatever the user's code does meanwhile.

Python raises `KeyboardInterrupt` in the main thread, once that runs Python again, and at the end
waits for all threads.  Both may never happen: a function of the user's may catch every exception,
wait in a library, or hang in another thread.  So a thread of our own is woken by the signal itself,
and ends the process if the command has not ended it by then.  It cannot where a library holds
Python's own lock all the time.

Where there is nothing to clean up, before a command begins and after it has ended, the process just
ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

from tffc.cli.status_line import status_line

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""

GRACE = 1.0
"""How many seconds a command has to say what is kept, and to end by itself."""

SAYING = 0.3
"""How many seconds it may take to say something, which waits where nobody reads stderr."""

AFTER = 0.01
"""How many seconds later an interruption is raised again that could be raised nowhere."""

_arrived = threading.Event()
_told = threading.Event()


def end_at_once() -> None:
    """Have an interruption end the process from now on, unless the process was told to ignore it;
    to be called by the main thread."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: _end())


def watch_interrupts() -> None:
    """Have an interruption raise `KeyboardInterrupt`, and end the process some time after it; to be
    called once, by the main thread."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_watch, args=(reader,), name="tffc interrupts", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    sys.unraisablehook = _raise_again(sys.unraisablehook)
    signal.signal(signal.SIGINT, _interrupt)


def was_interrupted() -> bool:
    """Return whether an interruption has come since they are watched."""
    return _arrived.is_set()


def begin_command() -> None:
    """Forget what was said of a command before, which this process may have run, too."""
    _told.clear()


def tell_interrupted(what: str = "interrupted") -> None:
    """Say that the command was interrupted, unless that is said already."""
    if not _told.is_set():
        _told.set()
        sys.stderr.write(f"\n{what}\n")
        sys.stderr.flush()


def leave() -> NoReturn:
    """End the interrupted process, and wait neither for its threads nor for libraries."""
    tell_interrupted()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()  # temporary files of libraries go
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _arrived.set()
    raise KeyboardInterrupt


def _raise_again(report: Any) -> Any:
    """Return a hook that reports exceptions which Python can raise nowhere, but an interruption."""

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # It came where the garbage collector ran, say, and is raised after that.
            threading.Timer(AFTER, _interrupt_main).start()
        else:
            report(unraisable)

    return hook


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def _watch(reader: int) -> None:
    while os.read(reader, 1) != bytes([signal.SIGINT]):
        pass  # another signal, which is not ours
    time.sleep(GRACE)
    _end()


def _end() -> None:
    """End the process, with a word about it if stderr takes one."""
    try:
        saying = threading.Thread(target=_say, daemon=True)
        saying.start()
        saying.join(SAYING)
    finally:
        os._exit(INTERRUPTED)


def _say() -> None:
    # Not by a stream, which may be replaced, closed, or in the hands of a thread that hangs.
    with contextlib.suppress(OSError):
        status_line.erase_at_once()
        if not _told.is_set():
            _told.set()
            os.write(2, b"\ninterrupted\n")
