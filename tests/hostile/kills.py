"""Processes that are killed at a change that they make to files: any one, one after another.

A change is told by Python itself, right before it is made: a file is opened to be written, renamed,
removed, cut off; a folder is made or removed.  Before a file is known to be on the disk, it may
also be there in part, so that is one more place to be killed at.

Needs a process without threads, for it forks.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tffc.runtime.runs.command_record import COMMANDS
from tffc.runtime.runs.observed import OBSERVED

CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "fcntl.flock", "ctypes.dlsym"}
)
"""The events of Python's audit that are told before a change, besides opening a file to write."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Steps:
    """Counts changes in the calling process, and kills it before the one of a number."""

    def __init__(self, last: int) -> None:
        self._left = last
        self._fsync = os.fsync
        sys.addaudithook(self._heard)
        os.fsync = self._cut

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and arguments[2] & WRITING):
            self._step()

    def _cut(self, descriptor: int) -> None:
        if self._left == 1:
            os.ftruncate(descriptor, max(0, os.fstat(descriptor).st_size - 3))
        self._step()
        self._fsync(descriptor)

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def is_killed(work: Callable[[], object], step: int) -> bool:
    """Do some work in a process of its own, and return whether it was killed before a change.

    With step 0 it never is.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            Steps(step)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - the parent is told by the exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status != 0


def every_kill(work: Callable[[], object]) -> Iterator[int]:
    """Do some work, killed at the first change, then at the second, until it is done."""
    step = 1
    while is_killed(work, step):
        yield step
        step += 1


def contents(folder: pathlib.Path) -> dict[str, bytes | None]:
    """What is in a folder: the content of each file, and None for each folder.

    What rounds took is left out, which is never the same, and is told of finished rounds as far as
    it can be.
    """
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name not in (OBSERVED, COMMANDS)
    }
