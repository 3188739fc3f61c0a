"""Ctrl-C ends a command within two seconds, whatever the user's code does meanwhile.

Python raises `KeyboardInterrupt` in the main thread, once that runs Python again, and at the end
waits for all threads.  Both may never happen: a function of the user's may catch every exception,
wait in a library, or hang in another thread.  So a thread of our own is woken by the signal itself,
and ends the process if the command has not ended it by then.  It can not where a library holds
Python's own lock all the time.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import click

from tffc.cli.status_line import status_line

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""

GRACE = 1.5
"""How many seconds a command has to say what is kept, and to end by itself."""

_told = threading.Event()


def watch_interrupts() -> None:
    """End the process some time after an interruption; to be called once, by the main thread."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="tffc interrupts", daemon=True).start()


def tell_interrupted(what: str = "interrupted") -> None:
    """Say that the command was interrupted, which is then not said again."""
    _told.set()
    click.echo(f"\n{what}", err=True)


def _watch(reader: int) -> None:
    while os.read(reader, 1) != bytes([signal.SIGINT]):
        pass  # another signal, which is not ours
    time.sleep(GRACE)
    status_line.erase_at_once()
    if not _told.is_set():
        os.write(2, b"\ninterrupted\n")
    os._exit(INTERRUPTED)
