"""Folders for temporary files, of which none stays: not after an error, and not after a kill.

A process holds the lock in each of its folders.  So the folders of processes that were killed are
told from those in use, and removed when the next one is made.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator

from tffc.files import locks

NEW, KEPT = "tffc-new-", "tffc-scratch-"
"""What the names of folders begin with, before their lock is held and then."""

KNOWN = re.compile(re.escape(KEPT) + r"\w+")

LOCK = "lock"


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a folder among the temporary files, deleted in the end.

    Raises:
      OSError: it cannot be made.
    """
    root = tempfile.gettempdir()
    remove_abandoned(root)
    made = tempfile.mkdtemp(prefix=NEW, dir=root)
    folder = os.path.join(root, os.path.basename(made).replace(NEW, KEPT, 1))
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, made, ignore_errors=True)
        # Where there are no locks, what is left by a kill stays.
        with contextlib.suppress(OSError):
            held.callback(locks.take(pathlib.Path(made, LOCK), wait=False).release)
        os.rename(made, folder)
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


@contextlib.contextmanager
def temporary_files_in(folder: str) -> Iterator[None]:
    """Have the temporary files of this process made in a folder while the block runs."""
    before = tempfile.tempdir
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = before


def remove_abandoned(root: str) -> None:
    """Remove this user's scratch folders whose processes have ended, as far as that is allowed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(root):
            if KNOWN.fullmatch(name):
                with contextlib.suppress(OSError):
                    _remove_abandoned(pathlib.Path(root, name))


def _remove_abandoned(folder: pathlib.Path) -> None:
    found = os.lstat(folder)
    is_own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    if not stat.S_ISDIR(found.st_mode) or not is_own or not (folder / LOCK).exists():
        return
    lock = locks.take(folder / LOCK, wait=False)
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()
