"""The file of a run's metrics: one row on each line; only those of finished rounds count."""

from __future__ import annotations

import hashlib
import os
import pathlib
from typing import NamedTuple

from tffc.runtime.runs.metrics import MetricsRow
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import open_regular


class Extent(NamedTuple):
    """The written part of a file: its number of bytes, and their SHA-256."""

    bytes: int
    digest: str


class MetricsFile:
    """A file with one JSON object on each line, each written to disk when it is added."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._size = 0
        self._hash = hashlib.sha256()

    @property
    def extent(self) -> Extent:
        """The part of the file that is written."""
        return Extent(self._size, self._hash.hexdigest())

    def is_as_written(self, extent: Extent) -> bool:
        """Continue at `extent`; return whether the file still has that content.

        If the row of an unfinished round follows, whole or in part, it is removed.

        Raises:
          DataError: a line is not a row.
          OSError: the file cannot be read or truncated.
        """
        content = self._content()
        read_rows(self.path, content)
        done, more = content[: extent.bytes], content[extent.bytes :]
        self._size, self._hash = len(done), hashlib.sha256(done)
        if self.extent != extent or more.count(b"\n") > 1:
            return False
        if more:
            os.truncate(self.path, len(done))
        return True

    def rows(self) -> list[MetricsRow]:
        """Return the rows of finished rounds."""
        return read_rows(self.path, self._content()[: self._size])

    def _content(self) -> bytes:
        try:
            with open_regular(self.path) as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def add(self, row: MetricsRow) -> None:
        """Append a row; raises OSError if that fails."""
        line = row.to_json().encode()
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(line)
        self._hash.update(line)


@reader("the metrics of a run", DataError)
def read_rows(path: pathlib.Path, content: bytes) -> list[MetricsRow]:
    """Parse the rows in complete lines; errors name the file `path`.

    Raises:
      DataError: a line is not a row.
    """
    rows: list[MetricsRow] = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            rows.append(MetricsRow.from_json(line))
        except ValueError as error:
            raise DataError(
                "E938",
                f"{path}:{number}: this line is not the row of a round: {error}",
                notes=("a run writes one row a round to this file and nobody else writes to it",),
                help="put the file back as it was, or begin another run in a new folder",
            ) from None
    return rows
