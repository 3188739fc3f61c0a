"""Finding the data files that a path or pattern names, and detecting that one has changed."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
from collections.abc import Generator, Sequence
from typing import BinaryIO

from tffc.support.errors import DataError
from tffc.support.files.inputs import remember
from tffc.support.files.reading import Identity, check_within, find_regular, open_regular
from tffc.support.near import near_file


@dataclasses.dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, and its identity when it was first opened.

    Other processes may read it too.  They compare less of the identity, because on another machine
    the same shared file may have another inode and change time.
    """

    path: str
    identity: Identity

    @classmethod
    def of(cls, path: str) -> DataFile:
        """Return the file at a path, as it is now.

        Raises:
          DataError: it cannot be found, or is not a regular file.
        """
        with reading(path):
            return cls(path, Identity.of(find_regular(path)))

    def __reduce__(self) -> tuple[type[DataFile], tuple[str, Identity]]:
        return DataFile, (self.path, self.identity.elsewhere())

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        return self.identity.size

    @contextlib.contextmanager
    def open(self) -> Generator[BinaryIO]:
        """Open the file for reading, checking before and after that it is unchanged.

        Raises:
          DataError: it cannot be read, is not a regular file, or changes or has changed.
        """
        with reading(self.path), open_regular(self.path) as file:
            descriptor = file.fileno()
            if not self.identity.is_of(os.fstat(descriptor)):
                raise changed(self.path)
            yield file
            if not self.identity.is_of(os.fstat(descriptor)):
                raise changed(self.path)


def changed(path: str) -> DataError:
    """Return the error for a file that has changed since it was first opened."""
    return DataError(
        "E630",
        f"{path} has changed since it was opened",
        help="start again, and leave the data alone until the end",
    )


def expand(path: str, suffixes: tuple[str, ...], *, follow_links: bool = False) -> list[str]:
    """Return the files that a path names, sorted: the file itself, those in a folder, or those that
    match a pattern.

    A file found in a folder may be a link to another one in that folder; with `follow_links`, a
    link to anywhere.

    Raises:
      DataError: no file is found, the folder cannot be read, or a link leads out of it.
    """
    if os.path.isdir(path):
        folder = path
        with reading(path):
            files = [os.path.join(path, n) for n in os.listdir(path) if n.endswith(suffixes)]
    else:
        folder = _fixed_folder(path)
        files = [path] if os.path.exists(path) else glob.glob(path)
    if not files:
        what = f" that ends in {' or '.join(suffixes)}" if os.path.isdir(path) else ""
        raise DataError(
            "E640", f"{path or 'the empty path'}: there is no file{what}", help=near_file(path)
        )
    if not follow_links and files != [path]:
        for file in files:
            with reading(file):
                check_within(file, folder)
    for file in files:
        remember(file)
    return sorted(files)


def _fixed_folder(pattern: str) -> str:
    """Return the folder that holds all matches of a pattern: the part before the first wildcard."""
    folder = pattern
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)
    return folder or os.curdir


@contextlib.contextmanager
def reading(path: str) -> Generator[None]:
    """Turn OSError into our error.

    Raises:
      DataError: the file cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise DataError(
            "E626",
            f"cannot read {path or 'the empty path'}: {error.strerror or error}",
            help=near_file(path),
        ) from error


def files_size(paths: Sequence[str]) -> int | None:
    """Return the bytes of files, as far as they can be found; None if there are none."""
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path)) if paths else None
