"""The user's folder of caches, and folders that only the user can write to."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat

from tffc.support.files import atomic

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ADMINISTRATOR = 0


def cache_base() -> pathlib.Path:
    """Return tffc's folder of caches; without a home folder, a path that cannot exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    return pathlib.Path(base if os.path.isabs(base) else os.devnull) / "tffc"


def is_private(folder: pathlib.Path) -> bool:
    """Return whether only this user and the administrator can write to a folder in `cache_base()`,
    or put another one in its place.

    Raises:
      OSError: it cannot be looked at.
    """
    own = [each.lstat() for each in (folder, folder.parent)]
    base = folder.parent.parent.stat()  # which may be a link
    return (
        all(stat.S_ISDIR(each.st_mode) and _is_only_ours(each) for each in own)
        and base.st_uid in (os.geteuid(), ADMINISTRATOR)
        # In a folder like /tmp, others rename only what is theirs.
        and bool(base.st_mode & stat.S_ISVTX or not base.st_mode & OTHERS_WRITE)
    )


def is_private_inside(path: pathlib.Path) -> bool:
    """Return whether only they can write to what is at a path in such a folder, and it stays there.

    Raises:
      OSError: it cannot be looked at.
    """
    if path.is_symlink():
        return False
    if not path.parent.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        # Nobody else can reach it.
        return True
    return all(_is_only_ours(each.lstat()) for each in (path, *path.rglob("*")))


def remove_oldest(folder: pathlib.Path, name: re.Pattern[str], most: int) -> None:
    """Remove all but `most` files and folders of a cache, those that were used last, and what
    killed processes left.  Only what has such a name is ever removed.

    Raises:
      OSError: the folder cannot be read.
    """
    times: dict[pathlib.Path, int] = {}
    for path in folder.iterdir():
        # Another process may remove it right now.
        if name.fullmatch(path.name) and not path.is_symlink():
            with contextlib.suppress(OSError):
                times[path] = path.stat().st_mtime_ns
    for path in sorted(times, key=times.__getitem__, reverse=True)[most:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    atomic.remove_abandoned(folder)


def _is_only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE
