"""Files that commands write."""

from __future__ import annotations

import pathlib

from tffc.errors import LoadError


def write_output(path: pathlib.Path, content: bytes) -> None:
    """Writes a file whole or not at all.

    Raises:
      LoadError: it can not be written.
    """
    from tffc.backends.atomic import write_file

    try:
        write_file(path, content)
    except OSError as error:
        raise LoadError("E851", f"can not write {path}: {error.strerror}") from None
