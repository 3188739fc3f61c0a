"""A progress bar, on terminals only.  The one module that knows rich."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tffc.backends.local import Progress


@contextlib.contextmanager
def round_progress() -> Iterator[Progress]:
    """Shows how many of a round's clients are done, while the block runs."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # What is printed meanwhile goes above the bar where stdout is a terminal too.
    terminal = sys.stdout.isatty()
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=terminal,
        redirect_stderr=terminal,
    ) as bar:
        task = bar.add_task("clients", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show
