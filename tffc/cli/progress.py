"""What a command is doing and how far it is, on terminals only, and not before it takes a while.

with shown():
    step("tracing mean.py")
    progress = step("verifying", "arguments")
    progress(3, 12)

Where stderr is not a terminal nothing is shown, and what would show it is not loaded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tffc.cli.step_line import StepLine
    from tffc.data.source import Progress

_line: StepLine | None = None
"""Where steps are shown now, if anywhere."""


@contextlib.contextmanager
def shown() -> Generator[None]:
    """Show steps on the terminal that stderr is, below what is printed, while the block runs."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from tffc.cli.step_line import StepLine

    global _line
    _line = StepLine()
    try:
        with _line.open():
            yield
    finally:
        _line = None


def start_tensorflow() -> None:
    """Load TensorFlow in silence; on a terminal, `tf.print` prints above the steps from now on.

    Raises:
      ExecutionError: it is not installed.
    """
    from tffc.frameworks.tensorflow.load import hear_prints, quiet_start

    step("starting TensorFlow")
    quiet_start()
    if _line is not None and sys.stdout.isatty():
        hear_prints(sys.stderr.write)


def step(text: str, things: str = "") -> Progress:
    """Show a step from now on; returns a callback for how many of its things are done."""
    return _unseen if _line is None else _line.show_step(text, things)


def index_step(source: str) -> Callable[[int, int, str], None]:
    """Show that a data set is opened; returns a callback for how many of its bytes, or files,
    are indexed."""
    return _unseen if _line is None else _line.show_index(source)


def no_step() -> None:
    """Show nothing until the next step, as while somebody is asked something."""
    if _line is not None:
        _line.show_nothing()


def show_rounds(first: int, last: int) -> Progress:
    """Show that these rounds run; returns a callback for how many of a round's clients are done."""
    return _unseen if _line is None else _line.show_rounds(first, last)


def _unseen(done: int, total: int, things: str = "") -> None:
    """Take how many are done where nobody looks."""
