"""Temporary folders that are always removed, even after an error or a kill.

A process holds a lock in each of its folders.  So folders of killed processes can be told from
those in use; they are removed when any process makes its next folder.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat
import tempfile
from collections.abc import Generator

from tffc.support.files import locks

NEW, KEPT = "tffc-new-", "tffc-scratch-"
"""The prefixes of folder names, before and after their lock is taken."""

KNOWN = re.compile(re.escape(KEPT) + r"\w+")

LOCK = "lock"


@contextlib.contextmanager
def scratch_folder() -> Generator[str]:
    """Make a temporary folder, and delete it at the end.

    Raises:
      OSError: it cannot be made.
    """
    root = tempfile.gettempdir()
    remove_abandoned(root)
    new_folder = tempfile.mkdtemp(prefix=NEW, dir=root)
    folder = os.path.join(root, os.path.basename(new_folder).replace(NEW, KEPT, 1))
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, new_folder, ignore_errors=True)
        # On file systems without locks, the folders of killed processes remain.
        with contextlib.suppress(OSError):
            held.callback(locks.take(pathlib.Path(new_folder, LOCK), wait=False).release)
        os.rename(new_folder, folder)
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


@contextlib.contextmanager
def temporary_files_in(folder: str) -> Generator[None]:
    """Make the temporary files of this process in a folder while the block runs."""
    before = tempfile.tempdir
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = before


def remove_abandoned(root: str) -> None:
    """Remove this user's scratch folders whose processes have ended, as far as permissions
    allow."""
    with contextlib.suppress(OSError):
        for name in os.listdir(root):
            if KNOWN.fullmatch(name):
                with contextlib.suppress(OSError):
                    _remove_abandoned(pathlib.Path(root, name))


def _remove_abandoned(folder: pathlib.Path) -> None:
    status = os.lstat(folder)
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or not is_own or not (folder / LOCK).exists():
        return
    lock = locks.take(folder / LOCK, wait=False)
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()
