"""The status line of a command: its current step and progress."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Generator
from typing import Protocol

from tffc.cli.output import say
from tffc.cli.status_line import status_line
from tffc.support.printable import printable

DELAY = 0.7
"""The seconds that a command may take before its progress is shown."""

INTERVAL = 0.2
"""The seconds between updates of the time shown."""

FIRST_LINE, LONGEST_WAIT = 10.0, 600.0
"""The seconds before the first line where stderr is no terminal, and the most before another."""

SELDOM = 0.1
"""The least seconds between updates of a count shown."""

MEGABYTE = 10**6


class Tell(Protocol):
    """A callback that takes the number of things done, their total, and the word for them."""

    def __call__(self, done: int, total: int, things: str = "") -> None: ...


class StepLine:
    """Draws the current step of a command repeatedly, on a terminal."""

    is_on_terminal = True

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
        with self._place():
            self._since = time.monotonic()
            thread.start()
            try:
                yield
            finally:
                ended.set()
                self._since = self._step = None
                thread.join(INTERVAL)

    def show_step(self, text: str, things: str) -> Tell:
        """Show a new step; return a callback that takes the number of things done and their
        total."""
        return self._show(CountedStep(text, things))

    def show_rounds(self, first: int, last: int) -> Tell:
        """Show that rounds run; return a callback that takes a round's numbers of finished and of
        all clients."""
        return self._show(RoundsStep(first, last))

    def show_nothing(self) -> None:
        """Show nothing until the next step."""
        self._step = None
        status_line.erase()

    def _place(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which steps can be drawn."""
        return status_line.on(sys.stderr.fileno())

    def _show(self, step: CountedStep) -> Tell:
        self._step = step
        self._drawn_at = 0.0
        self._refresh()

        def tell(done: int, total: int, things: str = "") -> None:
            step.things = things or step.things
            step.tell(done, total)
            self._refresh()

        return tell

    def _refresh(self) -> None:
        """Redraw the step, if it is time to."""
        # Two threads draw: the lock keeps one from showing an older state after a newer one.
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


class SeldomLines(StepLine):
    """Prints the current step of a command now and then, where stderr is no terminal."""

    is_on_terminal = False

    def __init__(self) -> None:
        super().__init__()
        self._step = CountedStep("loading", "")

    def _place(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def show_nothing(self) -> None:
        """Print nothing until the next step."""
        self._step = None

    def _refresh(self) -> None:
        """Do nothing: steps are printed by the clock alone."""

    def _run(self, ended: threading.Event) -> None:
        self.print_steps(ended)

    def print_steps(self, ended: threading.Event) -> None:
        """Print the current step again and again until the command has ended."""
        wait = FIRST_LINE
        while not ended.wait(wait):
            if (step := self._step) is not None:
                say("".join(step.parts()))
            wait = min(2 * wait, LONGEST_WAIT)


class CountedStep:
    """A step of a command, which may count the things it has done."""

    def __init__(self, text: str, things: str) -> None:
        self.text = text
        self.things = things
        self.done = self.total = 0
        self.since = time.monotonic()

    def tell(self, done: int, total: int) -> None:
        """Record the number of things done and their total."""
        self.done, self.total = done, total

    def parts(self) -> tuple[str, str]:
        """Return the name of the step, which may be cut, and its progress."""
        passed = time.monotonic() - self.since
        if not self.total:
            return self.text, f" · {_clock(passed)}"
        counted = f": {self.done} of {self.total} {self.things}".rstrip()
        if self.things == "bytes":
            counted = f": {self.done / MEGABYTE:.1f} of {self.total / MEGABYTE:.1f} MB"
        return self.text, f"{counted} · {_end(passed, self.done, self.total)}"


class RoundsStep(CountedStep):
    """Rounds, of which those to come count as many clients as the mean of those so far."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__("preparing the first round", "clients")
        self._first = first
        self._last = last
        self._number = first - 1
        self._before = 0
        """The clients of the rounds before."""

    def tell(self, done: int, total: int) -> None:
        """Record the number of a round's finished clients; zero begins the next round."""
        if done == 0:
            self._number += 1
            self._before += self.done
        super().tell(done, total)

    def parts(self) -> tuple[str, str]:
        if self._number < self._first:
            return self.text, ""
        passed = time.monotonic() - self.since
        done, known = self._before + self.done, self._before + self.total
        parts = [f"round {self._number} of {self._last}", f"{self.done}/{self.total} {self.things}"]
        if done and passed > 0:
            parts.append(f"{done / passed:.3g} a second")
        to_come = (self._last - self._number) * known / (self._number - self._first + 1)
        return " · ".join(parts), f" · {_end(passed, done, known + to_come)}"


def _end(passed: float, done: int, total: float) -> str:
    """Return the estimated remaining time, or the time passed if nothing is done yet."""
    return f"{_clock(passed / done * (total - done))} left" if done else _clock(passed)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
