"""CSV files that are compressed by gzip, read as if they were not; and how much may be compressed.

Rows are found by where they begin, so the content is written to a temporary file once, which has
no name and ends with the process.  The compressed file has to stay what it was all the same.
"""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import threading
import weakref
import zlib
from collections.abc import Generator
from typing import Any, BinaryIO

from tffc.data.files import DataFile
from tffc.data.source import Indexing, no_indexing
from tffc.errors import DataError

GZIP = b"\x1f\x8b"

OTHERS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""How compressed files of other kinds begin."""

MAX_BYTES = 2**30
"""How long the content may be unless asked otherwise; longer where the file itself is so large that
it is compressed by less than `USUAL_RATIO`."""

USUAL_RATIO = 16

MAX_ROWS = 2**22
"""How many lines or rows the content may have unless asked otherwise; more where the file has more
bytes.  Each is looked at, and what is nothing but ends of lines is compressed a thousandfold."""

PIECE = 2**20


class GzipFile:
    """A file of which the decompressed content is read.

    It is read by one thread at a time.  Another process decompresses it again.
    """

    def __init__(self, file: DataFile, max_bytes: int | None) -> None:
        self._file = file
        self._limit = max_bytes_of(file.size, max_bytes)
        self._most_lines = max_rows(file, max_bytes)
        self._content: BinaryIO | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_content": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def path(self) -> str:
        """Where the compressed file is."""
        return self._file.path

    @contextlib.contextmanager
    def open(self, progress: Indexing = no_indexing) -> Generator[BinaryIO]:
        """Open the content to be read, while the compressed file has to be as it was.

        Raises:
          DataError: the file cannot be read, changes or has changed, is damaged, or its content has
            more bytes or lines than are allowed.
        """
        with self._file.open() as file, self._lock:
            if self._content is None:
                self._content = self._decompressed(file, progress)
                weakref.finalize(self, self._content.close)
            self._content.seek(0)
            yield self._content

    def _decompressed(self, file: BinaryIO, progress: Indexing) -> BinaryIO:
        content: Any = tempfile.TemporaryFile()  # noqa: SIM115
        lines = 0
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                while piece := stream.read(PIECE):
                    lines += piece.count(b"\n")
                    if content.tell() + len(piece) > self._limit:
                        raise too_long(self.path, f"takes more than {self._limit} bytes")
                    if lines > self._most_lines:
                        raise too_long(self.path, f"has more than {self._most_lines} lines")
                    content.write(piece)
                    progress(file.tell(), self._file.size, "bytes")
            content.flush()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            content.close()
            raise DataError(
                "E665",
                f"{self.path} is damaged: {error}",
                help="compress it again with gzip; gzip -t says whether a file is whole",
            ) from error
        except BaseException:
            content.close()
            raise
        return content


def max_bytes_of(size: int, asked: int | None) -> int:
    """Return how many bytes what a file of a size compresses may take."""
    return max(MAX_BYTES, USUAL_RATIO * size) if asked is None else asked


def bytes_text(asked: int | None) -> str | None:
    """Return the option `max-bytes` as it was written."""
    return None if asked is None else str(asked)


def max_rows(file: DataFile, max_bytes: int | None) -> int:
    """Return how many lines or rows what a file compresses may have; each takes a byte at least."""
    return max_bytes or max(MAX_ROWS, file.size)


def too_long(path: str, found: str) -> DataError:
    """Return the error about a file in which more is compressed than is allowed."""
    return DataError(
        "E636",
        f"{path}: the decompressed content {found}",
        help="if it is right, allow more with max-bytes=NUMBER",
    )


def text_file(
    path: str, max_bytes: int | None, progress: Indexing = no_indexing
) -> DataFile | GzipFile:
    """Return the file at a path, which is decompressed if gzip compressed it.

    Raises:
      DataError: it cannot be read, or is compressed otherwise.
    """
    found = DataFile.of(path)
    with found.open() as file:
        head = file.read(10)
    if head.startswith(GZIP):
        made = GzipFile(found, max_bytes)
        with made.open(progress):
            return made
    for start, kind in OTHERS.items():
        # A table may begin with these letters, but not with the number of a block.
        if head.startswith(start) and (kind != "bzip2" or head[4:] == b"1AY&SY"):
            raise DataError(
                "E664",
                f"{path} is compressed by {kind}, expected text or a file of gzip",
                help="decompress it, or compress it with gzip instead",
            )
    return found
