"""The files that a path stands for, and errors in reading them as our own."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator

from tffc.errors import DataError, near_file


def expand(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files that a path stands for, sorted: itself, those in a folder, or those of a pattern.

    Raises:
      DataError: there is none.
    """
    if os.path.isdir(path):
        found = [os.path.join(path, n) for n in os.listdir(path) if n.endswith(suffixes)]
    else:
        found = [path] if os.path.exists(path) else glob.glob(path)
    if not found:
        what = f" that ends in {' or '.join(suffixes)}" if os.path.isdir(path) else ""
        raise DataError(
            "E673", f"{path or 'the empty path'}: there is no file{what}", help=near_file(path)
        )
    return sorted(found)


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turns errors of the system into ours.

    Raises:
      DataError: the file can not be read.
    """
    try:
        yield
    except OSError as error:
        raise DataError(
            "E681",
            f"can not read {path or 'the empty path'}: {error.strerror or error}",
            help=near_file(path),
        ) from error
