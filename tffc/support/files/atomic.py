"""Atomic writing: files and folders appear whole or not at all.

Content is written under a temporary name beside the target and renamed when it is complete, so a
full disk or an interruption leaves what was there before.  The temporary name is derived from the
target's name, and one process at a time writes to a target; so the next writer finds and removes
what a killed one left.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Generator, Mapping
from typing import BinaryIO, TypeAlias

from tffc.support.files import locks
from tffc.support.files.inputs import check_no_input
from tffc.support.files.reading import write_over

LEFTOVER = re.compile(r"\.tffc-[0-9a-f]{16}\.(new|old|lock)")

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""The errors of file systems that have no locks."""

AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Linux constants for `renameat2`."""


Content: TypeAlias = bytes | Callable[[BinaryIO], None]
"""The content of a file, or a function that writes it into an open file."""


def write_file(path: pathlib.Path, content: bytes) -> None:
    """Replace the file at `path`; anything there that is not a regular file is written to instead.

    Raises:
      LoadError: the command has read it.
      OSError: the file cannot be written; it is as it was.
    """
    # Check this before resolving links: a pipe that a shell passes as /dev/fd/63 resolves to no
    # path.
    if path.exists() and not path.is_file():
        write_over(path, content)
        return
    check_no_input(path)
    replace_file(_target(path), content, is_shared=True)


def replace_file(path: pathlib.Path, content: Content, *, is_shared: bool) -> None:
    """Replace what is at `path`: of a link only the link, so that nothing is written elsewhere.

    With `is_shared` unset nothing is locked: nobody else writes to the folder.

    Raises:
      OSError: the file cannot be written; it is as it was.
    """
    with _sole_writer(path) if is_shared else contextlib.nullcontext():
        try:
            os.replace(stage_file(path, content), path)
        except BaseException:
            staged(path).unlink(missing_ok=True)
            raise


def stage_file(path: pathlib.Path, content: Content) -> pathlib.Path:
    """Write the replacement of `path` beside it, for a later `os.replace`, and return its path.

    Nothing is locked.

    Raises:
      OSError: it cannot be written.
    """
    temporary = staged(path)
    _clear(temporary)
    _write(temporary, content)
    return temporary


def staged(path: pathlib.Path) -> pathlib.Path:
    """Return the temporary path where the replacement of `path` is written."""
    return _beside(path, "new")


def write_folder(path: pathlib.Path, files: Mapping[str, Content]) -> None:
    """Replace the folder at `path` by one with these files, given by their relative paths.

    What the command has read there is replaced too: callers know whether that is meant.

    Raises:
      OSError: the folder cannot be written; it is as it was.
    """
    write_folders({path: files})


def write_folders(folders: Mapping[pathlib.Path, Mapping[str, Content]]) -> None:
    """Replace each folder by one with the given files: all of them or none.

    Raises:
      OSError: one of them cannot be written; all are as they were.
    """
    targets = {_target(path): files for path, files in folders.items()}
    with contextlib.ExitStack() as locked:
        for path in sorted(targets):
            path.parent.mkdir(parents=True, exist_ok=True)
            locked.enter_context(_sole_writer(path))
            _put_back(path)
        with contextlib.ExitStack() as undo:
            for path, files in targets.items():
                _stage(path, files, undo)
            for path in targets:
                _put_in_place(path, undo)
            undo.pop_all()
        # All folders are in place by now; the next writer tries to remove the leftovers again.
        with contextlib.suppress(OSError):
            for path in targets:
                _clear(_beside(path, "new"))
                _clear(_beside(path, "old"))


def recover(path: pathlib.Path) -> None:
    """Put back what a killed process moved away from `path` without replacing it.

    That can happen only where the file system cannot exchange two folders in one step.
    """
    with contextlib.suppress(OSError):
        target = _target(path)
        if not target.exists() and _beside(target, "old").exists():
            with _sole_writer(target):
                _put_back(target)


def remove(path: pathlib.Path) -> None:
    """Remove a file, or a folder and its content; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        import shutil  # which takes a while to load

        shutil.rmtree(path)
    else:
        path.unlink()


def remove_leftovers(folder: pathlib.Path) -> None:
    """Remove what killed processes left in a folder that nobody else writes to.

    Raises:
      OSError: something cannot be removed.
    """
    for path in list(folder.iterdir()) if folder.is_dir() else []:
        if is_leftover(path.name):
            remove(path)


def remove_abandoned(folder: pathlib.Path) -> None:
    """Remove what killed processes left unfinished in a folder that others may write to right now.

    Raises:
      OSError: something cannot be removed.
    """
    for path in list(folder.iterdir()):
        if is_leftover(path.name) and path.suffix == ".new":
            # Whoever writes it holds the lock.
            with contextlib.suppress(BlockingIOError):
                lock = locks.take(path.with_suffix(".lock"), wait=False)
                try:
                    _clear(path)
                finally:
                    lock.release()


def is_leftover(name: str) -> bool:
    """Return whether a file of this name is a temporary one."""
    return LEFTOVER.fullmatch(name) is not None


def _target(path: pathlib.Path) -> pathlib.Path:
    """Return the path with links resolved.

    Raises:
      OSError: its links form a loop, or it is a link to nothing.
    """
    found = os.path.realpath(path)
    if os.path.islink(found):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if os.path.islink(path) and not os.path.exists(found):
        raise FileNotFoundError(errno.ENOENT, f"it is a link to {found}, where nothing is")
    return pathlib.Path(found)


def _stage(path: pathlib.Path, files: Mapping[str, Content], undo: contextlib.ExitStack) -> None:
    """Write the files to a new folder beside `path`."""
    import shutil

    temporary = _beside(path, "new")
    _clear(temporary)
    undo.callback(shutil.rmtree, temporary, ignore_errors=True)
    temporary.mkdir()
    for name, content in files.items():
        file = temporary / name
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, content)


def _put_in_place(path: pathlib.Path, undo: contextlib.ExitStack) -> None:
    """Swap the staged folder with what is at `path`."""
    new, old = _beside(path, "new"), _beside(path, "old")
    if not path.exists():
        new.rename(path)
        undo.callback(path.rename, new)
    elif _exchange(new, path):
        undo.callback(_exchange, new, path)
    else:
        _clear(old)
        path.rename(old)
        undo.callback(old.rename, path)
        new.rename(path)
        undo.callback(path.rename, new)


def _exchange(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Swap the names of two folders atomically; return whether the system can do that."""
    # Imported late: few commands need it.
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return rename(AT_FDCWD, names[0], AT_FDCWD, names[1], ctypes.c_uint(RENAME_EXCHANGE)) == 0


def _put_back(path: pathlib.Path) -> None:
    """Move back the folder that was moved away from `path`, unless something is there now."""
    old = _beside(path, "old")
    if not path.exists() and old.exists():
        old.rename(path)


@contextlib.contextmanager
def _sole_writer(path: pathlib.Path) -> Generator[None]:
    """Wait until nobody else writes to `path`, and keep others waiting meanwhile.

    Where the file system has no locks, nobody waits.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locks.holding(_beside(path, "lock")))
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        yield


def _clear(path: pathlib.Path) -> None:
    if os.path.lexists(path):
        remove(path)


def _write(path: pathlib.Path, content: Content) -> None:
    with path.open("xb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())


def _beside(path: pathlib.Path, kind: str) -> pathlib.Path:
    """Return the temporary name of this kind; it is short, however long the target's name is."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()
    return path.with_name(f".tffc-{digest[:16]}.{kind}")
