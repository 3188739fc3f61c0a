"""The line on a terminal that says what a command is doing and how far it is."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from tffc.cli.status_line import status_line
from tffc.printable import printable

if TYPE_CHECKING:
    from tffc.data.source import Progress

DELAY = 0.7
"""How many seconds a command may take before it says what it is doing."""

INTERVAL = 0.2
"""How many seconds pass before the time that is shown is shown anew."""

SELDOM = 0.1
"""How many seconds pass at least before what is counted is shown anew."""


MEGABYTE = 10**6


class StepLine:
    """Draws the step that a command is at, again and again."""

    def __init__(self) -> None:
        self._step: CountedStep | None = None
        self._since: float | None = None
        self._drawn_at = 0.0
        self._drawing = threading.Lock()

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
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

    def show_step(self, text: str, things: str) -> Progress:
        """Show a step from now on; returns a callback for how many of its things are done."""
        return self._show(CountedStep(text, things))

    def show_index(self, source: str) -> Callable[[int, int, str], None]:
        """Show that a data set is opened; returns a callback for how much of it is indexed."""
        step = CountedStep(f"indexing {source}", "")
        tell = self._show(step)

        def tell_of(done: int, total: int, things: str) -> None:
            step.things = things
            tell(done, total)

        return tell_of

    def show_rounds(self, first: int, last: int) -> Progress:
        """Show that these rounds run; returns a callback for how many clients of one are done."""
        return self._show(RoundsStep(first, last))

    def show_nothing(self) -> None:
        """Show nothing until the next step."""
        self._step = None
        status_line.erase()

    def _show(self, step: CountedStep) -> Progress:
        self._step = step
        self._drawn_at = 0.0
        self._refresh()

        def tell(done: int, total: int) -> None:
            step.tell(done, total)
            self._refresh()

        return tell

    def _refresh(self) -> None:
        """Show what the step says now, if it is time to."""
        # Two threads draw: what one has read must not be shown after what the other read later.
        with self._drawing:
            now, step = time.monotonic(), self._step
            if step is None or self._since is None or now < self._since + DELAY:
                return
            if now >= self._drawn_at + SELDOM:
                self._drawn_at = now
                text, end = step.parts()
                status_line.draw(printable(text), end)

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(INTERVAL):
            self._refresh()


class CountedStep:
    """What a command is at, which may have a number of things to do."""

    def __init__(self, text: str, things: str) -> None:
        self.text = text
        self.things = things
        self.done = self.total = 0
        self.since = time.monotonic()

    def tell(self, done: int, total: int) -> None:
        """Note how many of the things are done."""
        self.done, self.total = done, total

    def parts(self) -> tuple[str, str]:
        """Return the name of the step and how far it is; the second is never cut."""
        passed = time.monotonic() - self.since
        if not self.total:
            return self.text, f" · {_clock(passed)}"
        counted = f": {self.done} of {self.total} {self.things}".rstrip()
        if self.things == "bytes":
            counted = f": {self.done / MEGABYTE:.1f} of {self.total / MEGABYTE:.1f} MB"
        return self.text, f"{counted} · {_end(passed, self.done, self.total)}"


class RoundsStep(CountedStep):
    """Rounds with equally many clients each."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__("preparing the first round", "clients")
        self._first = first
        self._last = last
        self._number = first - 1

    def tell(self, done: int, total: int) -> None:
        """Note how many clients of a round are done; none are where the next round begins."""
        if done == 0:
            self._number += 1
        super().tell(done, total)

    def parts(self) -> tuple[str, str]:
        if self._number < self._first:
            return self.text, ""
        passed = time.monotonic() - self.since
        done = (self._number - self._first) * self.total + self.done
        parts = [
            f"round {self._number} of {self._last}",
            f"{self.done}/{self.total} {self.things}",
        ]
        if done and passed > 0:
            parts.append(f"{done / passed:.3g} a second")
        everyone = (self._last - self._first + 1) * self.total
        return " · ".join(parts), f" · {_end(passed, done, everyone)}"


def _end(passed: float, done: int, total: int) -> str:
    """Return how long it takes until all is done, or how long it has taken if nothing is done
    yet."""
    return f"{_clock(passed / done * (total - done))} left" if done else _clock(passed)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
