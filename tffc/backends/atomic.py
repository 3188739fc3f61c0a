"""Files and folders that appear whole or not at all.

Content is written under a temporary name beside the target and renamed when it is complete, so
that a full disk or an interruption leaves what was there before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import secrets
import shutil
from collections.abc import Mapping


def write_file(path: pathlib.Path, content: bytes) -> None:
    """Replaces the file at `path`; what is there and is no regular file is written to instead.

    Raises:
      OSError: the file can not be written; it is as it was.
    """
    path = _resolved(path)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    temporary = _beside(path)
    try:
        _write(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_folder(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
    """Replaces the folder at `path` by one with these files, given by their relative paths.

    Raises:
      OSError: the folder can not be written; it is as it was.
    """
    write_folders({path: files})


def write_folders(folders: Mapping[pathlib.Path, Mapping[str, bytes]]) -> None:
    """Replaces each folder by one with the files that stand for it: all of them or none.

    Raises:
      OSError: one of them can not be written; all are as they were.
    """
    with contextlib.ExitStack() as undo:
        staged = [
            (_stage(path, files, undo), path)
            for path, files in ((_resolved(path), files) for path, files in folders.items())
        ]
        replaced = [_put_in_place(temporary, path, undo) for temporary, path in staged]
        undo.pop_all()
    for old in replaced:
        if old is not None:
            remove(old)


def remove(path: pathlib.Path) -> None:
    """Removes a file, or a folder with all that is in it; of a link, the link alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _stage(
    path: pathlib.Path, files: Mapping[str, bytes], undo: contextlib.ExitStack
) -> pathlib.Path:
    """Writes the files to a new folder beside `path`, and gives that folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    undo.callback(shutil.rmtree, temporary, ignore_errors=True)
    temporary.mkdir()
    for name, content in files.items():
        file = temporary / name
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, content)
    return temporary


def _put_in_place(
    folder: pathlib.Path, path: pathlib.Path, undo: contextlib.ExitStack
) -> pathlib.Path | None:
    """Renames a folder to `path`, and gives the new name of what was there."""
    old = None
    if path.exists():
        old = _beside(path)
        path.rename(old)
        undo.callback(old.rename, path)
    folder.rename(path)
    undo.callback(shutil.rmtree, path)
    return old


def _write(path: pathlib.Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _resolved(path: pathlib.Path) -> pathlib.Path:
    """The path with all links followed.

    Raises:
      OSError: a link leads back to itself.
    """
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def _beside(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
