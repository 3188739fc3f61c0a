"""Files and folders that appear whole or not at all.

Content is written under a temporary name beside the target and renamed when it is complete, so
that a full disk or an interruption leaves what was there before.
"""

from __future__ import annotations

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
    path = path.resolve()
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
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    temporary.mkdir()
    try:
        for name, content in files.items():
            file = temporary / name
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, content)
        _put_in_place(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _put_in_place(folder: pathlib.Path, path: pathlib.Path) -> None:
    if not path.exists():
        folder.rename(path)
        return
    old = _beside(path)
    path.rename(old)
    try:
        folder.rename(path)
    except BaseException:
        old.rename(path)
        raise
    shutil.rmtree(old)


def _write(path: pathlib.Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _beside(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
