"""A progress bar, on terminals only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from tffc.engines.engine import Progress


class Display(NamedTuple):
    """What shows how many of a round's clients are done, and what prints a line of data."""

    progress: Progress
    line: Callable[[str], None]


@contextlib.contextmanager
def round_display() -> Iterator[Display]:
    """A bar on stderr below the lines of data, while the block runs; lines alone elsewhere."""
    if not sys.stderr.isatty():
        yield Display(lambda done, total: None, click.echo)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("clients", visible=False, rate="")

        def show(done: int, total: int) -> None:
            if done == 0:
                bar.reset(task)
            bar.update(task, completed=done, total=total, visible=True)
            speed = bar.tasks[0].speed
            bar.update(task, rate="" if speed is None else f"{speed:.0f} a second")

        def write(line: str) -> None:
            # Where both go to the terminal, only the bar's own console can write above the bar.
            if sys.__stdout__ is not None and sys.__stdout__.isatty():
                console.print(Text(line), soft_wrap=True)
            else:
                click.echo(line)

        yield Display(show, write)
