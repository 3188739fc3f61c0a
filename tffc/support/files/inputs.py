"""The files that a command has read, which it does not replace.

A command counts as read every regular file that it opens, all files of its data sets, and what the
user's modules import and open.  What TensorFlow opens itself is not known.  Only commands count:
who calls tffc from Python may replace what was read.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import stat
import sys
from collections.abc import Generator
from typing import Any, NamedTuple

from tffc.support.errors import LoadError


class _Input(NamedTuple):
    """A file that was read: when its inode changed last, in nanoseconds, and its paths.

    The inode of a file that was removed may become that of another one, such as an output.
    """

    changed: int
    paths: set[str]

    def has(self, status: os.stat_result) -> bool:
        """Return whether a file with its inode and this status is still the file that was read."""
        return status.st_ctime_ns == self.changed or any(
            _is_at(path, status) for path in self.paths
        )


_read: dict[tuple[int, int], _Input] | None = None
"""The files that the command has read, by their devices and inodes; None without a command."""

_is_listening = False
"""Whether files that any code opens are counted."""


def begin() -> None:
    """Count no file as read from now on, at the beginning of a command."""
    global _read
    _read = {}


def remember(path: str | os.PathLike[str]) -> None:
    """Count a file as read."""
    if _read is not None:
        with contextlib.suppress(OSError, ValueError):
            remember_status(os.stat(path), path)


def remember_status(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Count the regular file at `path`, with this status, as read."""
    if _read is not None and stat.S_ISREG(status.st_mode):
        key = status.st_dev, status.st_ino
        _read.setdefault(key, _Input(status.st_ctime_ns, set())).paths.add(os.path.abspath(path))


@contextlib.contextmanager
def replaceable() -> Generator[None]:
    """Do not count what is read in the context: the command was asked to replace it by what comes
    of it."""
    global _read
    before, _read = _read, None
    try:
        yield
    finally:
        _read = before


@contextlib.contextmanager
def remembering_opened() -> Generator[None]:
    """Count as read what any code opens for reading in the context, imported modules included."""
    global _is_listening
    if _read is None:
        yield
        return
    _listen()
    before, _is_listening = _is_listening, True
    try:
        yield
    finally:
        _is_listening = before


@functools.cache
def _listen() -> None:
    """Hear of every file that this process opens; Python cannot end that."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_listening:
        return
    match event, arguments:
        case "open", (str() | bytes() as name, _, int(flags)):
            if flags & os.O_ACCMODE != os.O_WRONLY:
                _remember_opened(os.fsdecode(name))
        case "import", (str(), str() as path, *_):  # a module in machine code, which C opens
            remember(path)
        case _:
            pass  # a file that was opened before, or an event of somebody else


def _remember_opened(path: str) -> None:
    remember(path)
    if path.endswith(".pyc"):  # of a module that Python has compiled before
        with contextlib.suppress(ValueError, NotImplementedError):
            remember(importlib.util.source_from_cache(path))


def was_read(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a file that was read, or to a folder that has one.

    Links in the folder lead out of it, so folders behind them are not searched.
    """
    if os.path.isdir(path):
        files = (os.path.join(at, name) for at, _, names in os.walk(path) for name in names)
        return any(map(was_read, files))
    try:
        status = os.stat(path)
    except OSError:
        return False
    candidate = None if _read is None else _read.get((status.st_dev, status.st_ino))
    return candidate is not None and candidate.has(status)


def _is_at(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), status)
    except OSError:
        return False


def check_no_input(path: str | os.PathLike[str]) -> None:
    """Check that a command does not replace what it has read.

    Raises:
      LoadError: it would.
    """
    if _read and was_read(path):
        raise LoadError(
            "E863",
            f"{os.fspath(path)} was read by this command, which would replace it",
            help="name another file or folder",
        )
