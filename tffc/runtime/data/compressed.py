"""Gzip-compressed CSV files, read as if they were plain, and limits on what they decompress to.

Rows are found by their byte offsets, so the content is decompressed once into an unnamed temporary
file that the system deletes when the process ends.  The compressed file must still not change.
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

from tffc.runtime.data.files import DataFile
from tffc.runtime.data.source import Indexing, no_indexing
from tffc.support.errors import DataError

GZIP = b"\x1f\x8b"

OTHERS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""The first bytes of files compressed in other ways, and what compressed them."""

MAX_BYTES = 2**30
"""The default limit on the bytes of decompressed content.  A file so large that its compression is
by less than `USUAL_RATIO` may exceed it."""

USUAL_RATIO = 16

MAX_ROWS = 2**22
"""The default limit on lines or rows; a file with more bytes may have more.  There is a limit
because every line costs work, and line ends alone compress a thousandfold."""

PIECE = 2**20


class GzipFile:
    """A gzip-compressed file that is read as its decompressed content.

    One thread reads it at a time.  Pickled to another process, it is decompressed there again.
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
        """The path of the compressed file."""
        return self._file.path

    @contextlib.contextmanager
    def open(self, progress: Indexing = no_indexing) -> Generator[BinaryIO]:
        """Open the decompressed content, checking that the compressed file has not changed.

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
        content: Any = tempfile.TemporaryFile()  # noqa: SIM115  (it stays open, for `open`)
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
                "E627",
                f"{self.path} is damaged: {error}",
                help="compress it again with gzip; gzip -t says whether a file is whole",
            ) from error
        except BaseException:
            content.close()
            raise
        return content


def max_bytes_of(size: int, asked: int | None) -> int:
    """Return the limit on the decompressed bytes of a file of `size` bytes; `asked` is the user's
    limit."""
    return max(MAX_BYTES, USUAL_RATIO * size) if asked is None else asked


def bytes_text(asked: int | None) -> str | None:
    """Return the value of the option `max-bytes` as text."""
    return None if asked is None else str(asked)


def max_rows(file: DataFile, max_bytes: int | None) -> int:
    """Return the limit on the decompressed lines or rows of a file; each takes one byte at
    least."""
    return max_bytes or max(MAX_ROWS, file.size)


def too_long(path: str, found: str) -> DataError:
    """Return the error for a compressed file that holds more than is allowed."""
    return DataError(
        "E629",
        f"{path}: the decompressed content {found}",
        help="if it is right, allow more with max-bytes=NUMBER",
    )


def text_file(
    path: str, max_bytes: int | None, progress: Indexing = no_indexing
) -> DataFile | GzipFile:
    """Open the file at a path, as a `GzipFile` if it is compressed by gzip.

    Raises:
      DataError: it cannot be read, or is compressed in another way.
    """
    found = DataFile.of(path)
    with found.open() as file:
        head = file.read(10)
    if head.startswith(GZIP):
        made = GzipFile(found, max_bytes)
        with made.open(progress):
            return made
    for start, kind in OTHERS.items():
        # A CSV header may begin with "BZh", but not with bzip2's block marker after it (1AY&SY).
        if head.startswith(start) and (kind != "bzip2" or head[4:] == b"1AY&SY"):
            raise DataError(
                "E664",
                f"{path} is compressed by {kind}, expected text or a file of gzip",
                help="decompress it, or compress it with gzip instead",
            )
    return found
