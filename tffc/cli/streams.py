"""The three standard streams of the process, which may be closed, full, or read by nobody.

What cannot be written to stdout is data that is lost, so it ends the command; what cannot be
written to stderr is talk, and nobody is there to be told.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from tffc.cli.status_line import status_line
from tffc.errors import LoadError

READER_GONE = 128 + 13
"""The exit code of a command whose output nobody reads any more: what a shell gives for SIGPIPE."""


class OutputError(LoadError):
    """What a command prints cannot be written to stdout."""


class ReaderGone(Exception):
    """Whoever read stdout has seen enough, which ends a command without a word."""


class _Stdout(io.FileIO):
    """The file behind stdout."""

    has_failed = False

    def write(self, data: Any) -> int | None:
        """Write as a file does, until that fails once; what is written after that is dropped.

        Raises:
          ReaderGone: it is a pipe that nobody reads any more.
          OutputError: it cannot be written to for another reason.
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
                "E810",
                f"cannot write to stdout: {_reason(error)}",
                help="redirect stdout to where there is room for it",
            ) from None


class _Stderr(io.FileIO):
    """The file behind stderr."""

    def write(self, data: Any) -> int | None:
        """Write as a file does; what cannot be written is dropped."""
        try:
            with status_line.away():
                return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Replace the standard streams by ones that fail as this module says, closed ones too."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened would get the number, and be written to as stdout.
            # What is opened here takes the lowest number, and gives what was closed its error.
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _text(_Stdout(1, "wb", closefd=False), sys.stdout)
    # Of a number of its own, so that number 2 can be closed to native code and Python still heard.
    sys.stderr = _text(_Stderr(os.dup(2), "wb"), sys.stderr)


def _text(file: io.FileIO, stream: Any) -> io.TextIOWrapper:
    """Return a text stream on a file, in the encoding of another; None stands for a closed one."""
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
    """Return all of stdin, which may be so many bytes.

    Raises:
      LoadError: it cannot be read, or is more.
    """
    from tffc.files.reading import read_all  # which few commands need

    try:
        return read_all(sys.stdin.buffer, limit)
    except OSError as error:
        raise LoadError(
            "E812",
            f"cannot read stdin: {_reason(error)}",
            help="pipe or redirect a file to it",
        ) from None


def _reason(error: OSError) -> str:
    """Return the reason for an error of a stream, which may have been closed before we began."""
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
