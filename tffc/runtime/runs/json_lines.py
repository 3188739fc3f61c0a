"""Files with a JSON object on each line, which are appended to and lose no more than a line."""

from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from tffc.support.errors import DataError
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, is_object, read_json


def append_line(file: pathlib.Path, line: str) -> None:
    """Append a line to a file.

    Raises:
      OSError: it cannot be written.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(file, flags, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        # End a line that was cut off, so that only that one is damaged.
        is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        content = (is_cut * "\n" + line).encode()
        if os.write(descriptor, content) < len(content):
            # A disk that fills takes a part of the line, and says nothing.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def read_lines(file: pathlib.Path, limit: int, without: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file's undamaged lines; none if there is no file.

    `without` says what is lost without the file.

    Raises:
      DataError: the file cannot be read, or is longer than the limit.
    """
    try:
        content = read_regular(file, limit)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(
            "E850",
            f"cannot read {file}: {error.strerror or error}",
            help=f"let it be read, or remove it: {without}",
        ) from error
    for line in content.splitlines():
        try:
            fields = read_json(line)
        except NotJsonError:
            continue
        if is_object(fields):
            yield fields
