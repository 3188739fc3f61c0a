"""Making Ctrl-C end a command within two seconds, whatever the user's code does.

Python raises `KeyboardInterrupt` in the main thread when that thread next runs Python code, and
waits for all threads at exit.  Both may never happen: the user's code may catch every exception,
wait in a library, or hang in another thread.  So the signal also wakes a watching thread, which
ends the process unless the command has ended by then.  It cannot if a library holds the GIL.

When there is nothing to clean up, before a command begins and after it has ended, the process
simply ends.
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
"""The seconds that an interrupted command has to report what it saved, and to end."""

SAYING = 0.3
"""The seconds that a message may take to print; it blocks if nobody reads stderr."""

AFTER = 0.01
"""The delay in seconds before an interruption is raised again, if it could not be raised at
once."""

_arrived = threading.Event()
_told = threading.Event()


def end_at_once() -> None:
    """Make an interruption end the process from now on, unless the process ignores SIGINT.

    Must be called by the main thread.
    """
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: _end())


def watch_interrupts() -> None:
    """Make an interruption raise `KeyboardInterrupt`, and end the process after `GRACE` seconds.

    Must be called once, by the main thread.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_watch, args=(reader,), name="tffc interrupts", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    sys.unraisablehook = _raise_again(sys.unraisablehook)
    signal.signal(signal.SIGINT, _interrupt)


def was_interrupted() -> bool:
    """Return whether an interruption has come since `watch_interrupts`."""
    return _arrived.is_set()


def begin_command() -> None:
    """Forget the messages of an earlier command in this process."""
    _told.clear()


def tell_interrupted(what: str = "interrupted") -> None:
    """Report that the command was interrupted, unless that was reported already."""
    if not _told.is_set():
        _told.set()
        sys.stderr.write(f"\n{what}\n")
        sys.stderr.flush()


def leave() -> NoReturn:
    """End the interrupted process without waiting for its threads or for libraries."""
    tell_interrupted()
    with contextlib.suppress(BaseException):
        # This removes the temporary files of libraries.
        atexit._run_exitfuncs()
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _arrived.set()
    raise KeyboardInterrupt


def _raise_again(report: Any) -> Any:
    """Return a hook for unraisable exceptions that lets an interruption be raised later."""

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # It came where nothing can be raised, for example during garbage collection.
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
        # Other signals are ignored.
        pass
    time.sleep(GRACE)
    _end()


def _end() -> None:
    """End the process, with a message if stderr accepts one."""
    try:
        saying = threading.Thread(target=_say, daemon=True)
        saying.start()
        saying.join(SAYING)
    finally:
        os._exit(INTERRUPTED)


def _say() -> None:
    # Not through a stream, which may be replaced, closed, or locked by a thread that hangs.
    with contextlib.suppress(OSError):
        status_line.erase_at_once()
        if not _told.is_set():
            _told.set()
            os.write(2, b"\ninterrupted\n")
