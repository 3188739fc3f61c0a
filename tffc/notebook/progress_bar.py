"""A bar that shows the progress of long work in a notebook.

It is plain HTML that is replaced in place, which Jupyter, VS Code and Colab do alike; no widgets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pathlib
import time
from collections.abc import Generator

from tffc.runtime.data.source import Progress
from tffc.support.cell import cell

TEMPLATE = pathlib.Path(__file__).with_suffix(".html")

OFTEN = 0.1
"""The seconds between two updates of the bar, at least."""

AT_ONCE = 0.5
"""Work that takes fewer seconds shows no bar."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProgressBar:
    """A piece of work: how many of its parts are done, of how many, and in which time."""

    work: str
    done: int
    total: int
    seconds: float

    def _repr_html_(self) -> str:
        return cell(TEMPLATE, bar=self, seconds=f"{self.seconds:.1f}")

    def __repr__(self) -> str:
        return f"{self.work}: {self.done:,} of {self.total:,}, {self.seconds:.1f} s"


@contextlib.contextmanager
def progress_bar(work: str) -> Generator[Progress]:
    """Show the progress of a piece of work in the cell until the context ends."""
    shown = _Shown(work)
    try:
        yield shown.progress
    finally:
        shown.end()


class _Shown:
    """The bar of a piece of work, displayed once it has taken a while."""

    def __init__(self, work: str) -> None:
        self._work = work
        self._done = self._total = 0
        self._begun = self._updated = time.monotonic()
        self._handle: object = None

    def progress(self, done: int, total: int) -> None:
        """See `Progress`."""
        self._done, self._total = done, total
        now = time.monotonic()
        if now - self._begun >= AT_ONCE and now - self._updated >= OFTEN:
            self._updated = now
            self._update()

    def end(self) -> None:
        """Show the last state, if the bar is displayed."""
        if self._handle is not None:
            self._update()

    def _update(self) -> None:
        # IPython is there if this runs, and only there.
        display = importlib.import_module("IPython.display").display
        bar = ProgressBar(self._work, self._done, self._total, time.monotonic() - self._begun)
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            display(bar, display_id=getattr(self._handle, "display_id", None), update=True)
