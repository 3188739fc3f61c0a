"""Progress of a command, shown if the command takes a while.

    with shown():
        step("tracing mean.py")
        progress = step("verifying", "arguments")
        progress(3, 12)

On a terminal, a line below all other output changes all the time.  Elsewhere a line is printed
after ten seconds, and then ever more rarely, so that a log shows that the command still works.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tffc.cli.step_line import StepLine, Tell

SWITCH, OFF = "TFFC_PROGRESS", "off"
"""The environment variable that turns progress off where stderr is no terminal, and its value."""

_line: StepLine | None = None
"""The line that shows steps now, if any."""


@contextlib.contextmanager
def shown() -> Generator[None]:
    """Show steps on stderr while the block runs."""
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if not is_terminal and (os.environ.get(SWITCH) == OFF or not _has_file(sys.stderr)):
        yield
        return
    from tffc.cli.step_line import SeldomLines, StepLine

    global _line
    _line = StepLine() if is_terminal else SeldomLines()
    try:
        with _line.open():
            yield
    finally:
        _line = None


def _has_file(stream: Any) -> bool:
    """Return whether a stream is one of the process, and not only in Python's memory."""
    try:
        stream.fileno()
    except (OSError, ValueError):
        return False
    return True


def start_tensorflow() -> None:
    """Load TensorFlow quietly; on a terminal, `tf.print` prints above the steps from now on.

    Raises:
      ExecutionError: it is not installed.
    """
    from tffc.runtime.frameworks.tensorflow.load import hear_prints, quiet_start

    step("starting TensorFlow")
    quiet_start()
    if _line is not None and _line.is_on_terminal and sys.stdout.isatty():
        hear_prints(sys.stderr.write)


def step(text: str, things: str = "") -> Tell:
    """Show a new step; return a callback that takes the number of things done and their total."""
    return _unseen if _line is None else _line.show_step(text, things)


def index_step(source: str) -> Tell:
    """Show that a data set is being opened; return a callback for its progress."""
    return step(f"indexing {source}")


def no_step() -> None:
    """Show nothing until the next step, for example during a prompt."""
    if _line is not None:
        _line.show_nothing()


def show_rounds(first: int, last: int) -> Tell:
    """Show that rounds run; return a callback that takes a round's numbers of finished and of all
    clients."""
    return _unseen if _line is None else _line.show_rounds(first, last)


def _unseen(done: int, total: int, things: str = "") -> None:
    """Ignore progress."""
