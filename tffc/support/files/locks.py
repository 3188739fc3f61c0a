"""File locks that end with the process that holds them, however it ends.

A lock is a file that its holder has locked with `flock`.  The kernel releases it when the holder
dies, so a leftover file blocks nobody.  On NFS the server holds the lock.  Where Python has no
`flock` (Windows) locks have no effect.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Generator

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None


class Lock:
    """A lock held by this process."""

    def __init__(self, path: pathlib.Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def release(self) -> None:
        """Release the lock and remove its file."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)


def take(path: pathlib.Path, *, wait: bool) -> Lock:
    """Take the lock whose file is `path`.

    Raises:
      BlockingIOError: another process holds it, and `wait` is not set.
      OSError: the file cannot be created, or its file system has no locks.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(path, descriptor):
                return Lock(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        # The previous holder removed the file meanwhile, so others would lock a new one: try again.
        os.close(descriptor)


@contextlib.contextmanager
def holding(path: pathlib.Path) -> Generator[None]:
    """Hold the lock whose file is `path`, waiting for it.

    Raises:
      OSError: see `take`.
    """
    lock = take(path, wait=True)
    try:
        yield
    finally:
        lock.release()


def _is_at(path: pathlib.Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
