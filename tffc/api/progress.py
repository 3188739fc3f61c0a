"""Progress of long work in Python: silent, until a notebook or a script says how to show it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import TypeAlias

from tffc.runtime.data.source import Progress, no_progress

Display: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of one piece of work, which it is told in words, until the context ends."""


@contextlib.contextmanager
def silent(work: str) -> Generator[Progress]:
    """Show nothing."""
    yield no_progress


_display: list[Display] = [silent]


def show_progress(display: Display) -> None:
    """Show the progress of all further work of this process on a display."""
    _display[0] = display


def progress_of(work: str) -> AbstractContextManager[Progress]:
    """Return a context for a piece of work, which takes its progress."""
    return _display[0](work)
