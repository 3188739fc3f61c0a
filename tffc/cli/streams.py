"""The standard streams of the process, which may be closed, full, or have no reader.

A failure to write to stdout loses data, so it ends the command.  A failure to write to stderr loses
a message, and cannot be reported.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any

from tffc.cli.status_line import status_line
from tffc.support.errors import LoadError

READER_GONE = 128 + 13
"""The exit code of a command whose output has no reader any more, as shells report SIGPIPE."""


class OutputError(LoadError):
    """The output of a command cannot be written to stdout."""


class ReaderGone(Exception):
    """The reader of stdout has gone; the command ends without a message."""


class _Stdout(io.FileIO):
    """The file behind stdout."""

    has_failed = False

    def write(self, data: Any) -> int | None:
        """Write as a file does; after a failure, drop the data of later writes.

        Raises:
          ReaderGone: stdout is a pipe without a reader.
          OutputError: writing fails for another reason.
        """
        if self.has_failed:
            return memoryview(data).nbytes
        try:
            with status_line.away():
                return super().write(data)
        except OSError as error:
            self.has_failed = True
            if isinstance(error, BrokenPipeError):
                raise ReaderGone from None
            raise OutputError(
                "E851",
                f"cannot write to stdout: {_reason(error)}",
                help="redirect stdout to where there is room for it",
            ) from None


class _Stderr(io.FileIO):
    """The file behind stderr."""

    def write(self, data: Any) -> int | None:
        """Write as a file does; ignore failures."""
        try:
            with status_line.away():
                return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Replace the standard streams, even closed ones, by streams that fail as described above."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Occupy a closed descriptor; otherwise the next file opened would get its number and
            # receive stdout.  Opening takes the lowest free number, and the wrong mode makes any
            # use fail, as it would if closed.
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _text(_Stdout(1, "wb", closefd=False), sys.stdout)
    # A duplicate descriptor, so that number 2 can be closed to silence native code while Python
    # still writes.
    sys.stderr = _text(_Stderr(os.dup(2), "wb"), sys.stderr)


def _text(file: io.FileIO, stream: Any) -> io.TextIOWrapper:
    """Return a text stream for a file, with the encoding and buffering of `stream`, if open."""
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=stream is None
        or stream.line_buffering
        or stream.write_through
        or stream is sys.stderr,
    )


def read_stdin(limit: int) -> bytes:
    """Return all of stdin, at most `limit` bytes.

    Raises:
      LoadError: it cannot be read, or is longer.
    """
    # Imported late: few commands need it.
    from tffc.support.files.inputs import remember_status
    from tffc.support.files.reading import read_all

    try:
        with contextlib.suppress(OSError, ValueError):  # what tests put there has no descriptor
            remember_status(os.fstat(sys.stdin.fileno()), "/dev/stdin")
        return read_all(sys.stdin.buffer, limit)
    except OSError as error:
        raise LoadError(
            "E850",
            f"cannot read stdin: {_reason(error)}",
            help="pipe or redirect a file to it",
        ) from None


def _reason(error: OSError) -> str:
    """Return the reason of a stream's error; the stream may have been closed before we began."""
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
