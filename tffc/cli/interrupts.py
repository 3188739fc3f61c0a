"""Making Ctrl-C and SIGTERM end a command within two seconds, whatever the user's code does.

Both are an interruption: what is finished is kept, and the exit code tells which signal came.  So
is SIGHUP, which comes when the terminal is closed.

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
import select
import signal
import sys
import threading
import time
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that interrupt a command; Windows has no SIGHUP."""

GRACE = 1.0
"""The seconds that an interrupted command has to report what it saved, and to end."""

SAYING = 0.3
"""The seconds that a message may take to print; it blocks if nobody reads stderr."""

AFTER = 0.01
"""The delay in seconds before an interruption is raised again, if it could not be raised at
once."""

LOADING = ("create_module", "exec_module")
"""The methods of `ExtensionFileLoader` that run code of a library."""

_arrived: list[int] = []
"""The numbers of the signals that have come."""

_watched: list[int] = []
"""The numbers of the signals that are not ignored."""

_told = threading.Event()


def end_at_once() -> None:
    """Make an interruption end the process from now on, unless the process ignores the signal.

    Must be called by the main thread.
    """
    _answer(lambda number, frame: _end(number))


def watch_interrupts() -> None:
    """Make an interruption raise `KeyboardInterrupt`, and end the process after `GRACE` seconds.

    Must be called once, by the main thread.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_watch, args=(reader,), name="tffc interrupts", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    sys.unraisablehook = _raise_again(sys.unraisablehook)
    _answer(_interrupt)


def _answer(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let a handler answer each signal that the process does not ignore, as `nohup` asks."""
    _watched[:] = [each for each in SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    for number in _watched:
        signal.signal(number, handler)


def was_interrupted() -> bool:
    """Return whether an interruption has come since `watch_interrupts`."""
    return bool(_arrived)


def check_uninterrupted() -> None:
    """Check that no interruption has come that a library took for a failure of its own.

    Raises:
      KeyboardInterrupt: one has come.
    """
    if _arrived:
        raise KeyboardInterrupt


@contextlib.contextmanager
def no_substitutes() -> Generator[None]:
    """Raise `KeyboardInterrupt` if the block raises another error after an interruption.

    A library may have caught the interruption, and reported an error of its own.
    """
    try:
        yield
    except Exception:
        check_uninterrupted()
        raise


def exit_code() -> int:
    """Return the exit code of the interrupted command, which shells show for its signal too.

    Code that raises `KeyboardInterrupt` without a signal counts as Ctrl-C.
    """
    return _code(_arrived[0] if _arrived else signal.SIGINT)


def _code(number: int) -> int:
    return 128 + number


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
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # no public name runs them
    os._exit(exit_code())


def _interrupt(number: int, frame: FrameType | None) -> None:
    _arrived.append(number)
    if _loads_extension(frame):
        _raise_later()
    else:
        raise KeyboardInterrupt


def _loads_extension(frame: FrameType | None) -> bool:
    """Return whether a library in C is being loaded, which may print what is raised, and go on."""
    while frame is not None:
        if frame.f_code.co_name in LOADING:
            if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
                return True
        frame = frame.f_back
    return False


def _raise_later() -> None:
    waiting = threading.Timer(AFTER, _interrupt_main)
    waiting.daemon = True
    waiting.start()


def _raise_again(report: Any) -> Any:
    """Return a hook for unraisable exceptions that lets an interruption be raised later."""

    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # It came where nothing can be raised, for example during garbage collection.
            _raise_later()
        else:
            report(unraisable)

    return hook


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, _arrived[0])


def _watch(reader: int) -> None:
    while (number := os.read(reader, 1)[0]) not in _watched:
        # Other signals are ignored.
        pass
    # A library may have put its own handler in the place of ours.
    _arrived.append(number)
    time.sleep(GRACE)
    _end(number)


def _end(number: int) -> None:
    """End the process, with a message if stderr accepts one."""
    try:
        # Not in a thread: the signal may have come while another one is started, with a lock held.
        if select.select([], [2], [], SAYING)[1]:
            _say()
    finally:
        os._exit(_code(number))


def _say() -> None:
    # Not through a stream, which may be replaced, closed, or locked by a thread that hangs.
    with contextlib.suppress(OSError):
        # Where it is not loaded, it drew nothing.
        drawn = getattr(sys.modules.get("tffc.cli.status_line"), "status_line", None)
        if drawn is not None:
            drawn.erase_at_once()
        if not _told.is_set():
            _told.set()
            os.write(2, b"\ninterrupted\n")
