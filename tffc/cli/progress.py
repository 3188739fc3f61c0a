"""What a command is doing and how far it is, on terminals only, and not before it takes a while.

with shown():
    step("tracing mean.py")
    progress = step("verifying", "arguments")
    progress(3, 12)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from tffc.cli.status_line import status_line
from tffc.printable import printable

DELAY = 0.7
"""How many seconds a command may take before it says what it is doing."""

INTERVAL = 0.2
"""How many seconds pass before the time that is shown is shown anew."""

SELDOM = 0.1
"""How many seconds pass at least before what is counted is shown anew."""

Progress = Callable[[int, int], None]
"""Told how many of how many are done."""

MEGABYTE = 10**6


class _Step(Protocol):
    def parts(self) -> tuple[str, str]:
        """Return what is done, and how far it is, which is shown whole."""
        ...


class _Screen:
    """Draws the step that a command is at, again and again."""

    def __init__(self) -> None:
        self._step: _Step | None = None
        self._since: float | None = None
        self._drawn_at = 0.0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Show steps while the block runs."""
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), name="progress", daemon=True)
        with status_line.on(sys.stderr.fileno()):
            self._since = time.monotonic()
            thread.start()
            try:
                yield
            finally:
                ended.set()
                self._since = self._step = None
                thread.join(INTERVAL)

    @property
    def is_open(self) -> bool:
        """Whether there is a terminal to show steps on."""
        return self._since is not None

    def show(self, step: _Step | None) -> None:
        """Show this step from now on, or nothing."""
        self._step = step
        if step is None:
            status_line.erase()
        else:
            self._drawn_at = 0.0
            self.refresh()

    def refresh(self) -> None:
        """Show what the step says now, if it is time to."""
        now, step = time.monotonic(), self._step
        if step is None or self._since is None or now < self._since + DELAY:
            return
        if now >= self._drawn_at + SELDOM:
            self._drawn_at = now
            text, end = step.parts()
            status_line.draw(printable(text), end)

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(INTERVAL):
            self.refresh()


_screen = _Screen()


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show steps on the terminal that stderr is, below what is printed, while the block runs."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _screen.open():
            yield
    else:
        yield


def start_tensorflow() -> None:
    """Load TensorFlow in silence; on a terminal, `tf.print` prints above the steps from now on.

    Raises:
      ExecutionError: it is not installed.
    """
    from tffc.frameworks.tensorflow.chatter import hear_prints, quiet_start

    step("starting TensorFlow")
    quiet_start()
    if _screen.is_open and sys.stdout.isatty():
        hear_prints(sys.stderr.write)


def step(text: str, things: str = "") -> Progress:
    """Say what is done from now on; returns what is told how many of its things are done."""
    shown = _Counted(text, things)
    _screen.show(shown)
    return shown.tell


def index_step(source: str) -> Callable[[int, int, str], None]:
    """Say that a data set is opened; returns what is told how many of its bytes, or files, are
    indexed."""
    shown = _Counted(f"indexing {source}", "")
    _screen.show(shown)
    return shown.tell_of


def no_step() -> None:
    """Show nothing until the next step, as while somebody is asked something."""
    _screen.show(None)


def show_rounds(first: int, last: int) -> Progress:
    """Say that these rounds run; returns what is told how many of a round's clients are done."""
    shown = _Rounds(first - 1, first, last)
    _screen.show(shown)
    return shown.tell


@dataclasses.dataclass
class _Counted:
    """A step that may have a number of things to do."""

    text: str
    things: str
    done: int = 0
    total: int = 0
    since: float = dataclasses.field(default_factory=time.monotonic)

    def tell(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        _screen.refresh()

    def tell_of(self, done: int, total: int, things: str) -> None:
        self.things = things
        self.tell(done, total)

    def parts(self) -> tuple[str, str]:
        passed = time.monotonic() - self.since
        if not self.total:
            return self.text, f" · {_clock(passed)}"
        counted = f": {self.done} of {self.total} {self.things}".rstrip()
        if self.things == "bytes":
            counted = f": {self.done / MEGABYTE:.1f} of {self.total / MEGABYTE:.1f} MB"
        return self.text, f"{counted} · {_end(passed, self.done, self.total)}"


@dataclasses.dataclass
class _Rounds:
    """Rounds with equally many clients each."""

    number: int
    first: int
    last: int
    done: int = 0
    total: int = 0
    since: float = dataclasses.field(default_factory=time.monotonic)

    def tell(self, done: int, total: int) -> None:
        if done == 0:
            self.number += 1
        self.done, self.total = done, total
        _screen.refresh()

    def parts(self) -> tuple[str, str]:
        if self.number < self.first:
            return "preparing the first round", ""
        passed = time.monotonic() - self.since
        done = (self.number - self.first) * self.total + self.done
        parts = [f"round {self.number} of {self.last}", f"{self.done}/{self.total} clients"]
        if done and passed > 0:
            parts.append(f"{done / passed:.3g} a second")
        everyone = (self.last - self.first + 1) * self.total
        return " · ".join(parts), f" · {_end(passed, done, everyone)}"


def _end(passed: float, done: int, total: int) -> str:
    """How long it takes until all is done, or how long it has taken if nothing is done yet."""
    return f"{_clock(passed / done * (total - done))} left" if done else _clock(passed)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
