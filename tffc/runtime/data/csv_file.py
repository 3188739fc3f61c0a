"""A CSV file with one column that names the client of each row.

Opening reads the file once and keeps, for each client, where its rows lie: three numbers for each
run of consecutive rows.  Reading a client reads its rows alone.

Cells are text.  Several numbers in a cell are separated by spaces.  A truth value is `true` or
`false` in any case, or 1 or 0.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from tffc.language.dtypes import DType
from tffc.runtime.data.cells import (
    Rules,
    Wanted,
    cell_error,
    cells_of,
    empty_error,
    is_empty,
    shaped,
)
from tffc.runtime.data.columns import Cells
from tffc.runtime.data.compressed import bytes_text, text_file
from tffc.runtime.data.files import changed
from tffc.runtime.data.source import OFTEN, Indexing, no_indexing
from tffc.runtime.data.table import (
    CLIENT_COLUMN,
    RowIndex,
    Table,
    check_client_column,
    check_names,
    no_client,
)
from tffc.runtime.data.times import is_time, times_help
from tffc.support.errors import DataError, reader
from tffc.support.guards import Array

RESERVED = frozenset('"\r\n\0')
"""Characters that cannot be delimiters."""

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)

MISSING = frozenset({"na", "n/a", "#n/a", "<na>", "none", "null", "missing", "-", "?"})
"""The words that other programs write for a missing number, in lower case."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

PART = 4096
"""The rows that are described at once."""

LONGEST_LINE = 2**26
"""The limit on the bytes of a line: a file that is not text may have no line end at all."""


_Row = tuple[int, list[str]]
"""The line number where a row begins, and its cells."""


class CsvFile(Table):
    """The rows of a CSV file, by client.

    A gzip-compressed file is decompressed, to at most `max_bytes` if that is given.

    Raises:
      DataError: the file cannot be read, is not CSV, is compressed in another way or to more bytes
        than are allowed, has two columns of one name, has no column of clients or no row, or the
        delimiter is not one character.
    """

    kind = "csv"

    @reader("a CSV file", DataError)
    def __init__(
        self,
        path: str,
        client: str = CLIENT_COLUMN,
        columns: str | None = None,
        delimiter: str = ",",
        empty: str | None = None,
        times: str | None = None,
        *,
        max_bytes: int | None = None,
        progress: Indexing = no_indexing,
    ) -> None:
        super().__init__(path, columns, Rules.parse(path, None, empty, times))
        self.options = {"client": client, "columns": columns, "delimiter": delimiter}
        self.options |= {"empty": empty, "times": times, "max-bytes": bytes_text(max_bytes)}
        self._delimiter = delimiter
        if len(delimiter) != 1 or delimiter in RESERVED:
            raise DataError(
                "E639",
                f"{path}: the delimiter is {delimiter!r}, expected one character that is neither a "
                "quotation mark nor the end of a line",
                help="write delimiter=CHARACTER, with %09 for a tab and %26 for an ampersand",
            )
        self._file = text_file(path, max_bytes, progress)
        self.files = [self._file.path]
        with self._file.open() as file:
            lines = _Lines(file, progress)
            rows = self._rows(lines)
            nothing: _Row = (1, [])
            _, self._header = next(rows, nothing)
            # Where all lines end in a delimiter there is an unnamed last column; some files have
            # several.
            named = [name for name in self._header if name]
            check_names(path, named)
            check_client_column(path, client, named)
            self._client = self._header.index(client)
            self._hold(self._index_of(rows, lines))
        self.columns = {name: "text" for name in named if name != client}

    @reader("a CSV file", DataError)
    def row_counts(self) -> Array:
        """See `ScannedData`; reads the file."""
        numbers = {client: number for number, client in enumerate(self.clients)}
        counts = np.zeros(len(numbers), np.int64)
        for rows in self._parts():
            for cells in rows:
                counts[numbers[cells[self._client]]] += 1
        return counts

    @reader("a CSV file", DataError)
    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`."""
        for rows in self._parts():
            for index, name in enumerate(self._header):
                if name and index != self._client:
                    texts = [cells[index] if index < len(cells) else "" for cells in rows]
                    values: Array = np.array(texts, object)
                    yield name, Cells(values, np.array([not text.strip() for text in texts]))

    def _parts(self) -> Iterator[list[list[str]]]:
        """Yield the rows, many at a time."""
        with self._file.open() as file:
            rows = (cells for _, cells in self._rows(_Lines(file, no_indexing)) if cells)
            next(rows, None)
            while part := list(itertools.islice(rows, PART)):
                yield part

    @reader("a CSV file", DataError)
    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        rows = list(self._rows_of(client))
        for line, cells in rows:
            if len(cells) != len(self._header):
                raise DataError(
                    "E687",
                    f"{self.location}:{line}: client {client}: the row has {len(cells)} cells, "
                    f"expected {len(self._header)}",
                    help="put quotation marks around a cell that contains the delimiter, or name "
                    "another delimiter with delimiter=CHARACTER",
                )
            if cells[self._client] != client:
                raise changed(self.location)
        return [self._tensors(client, rows, column) for column in wanted]

    def _tensors(self, client: str, rows: Sequence[_Row], wanted: Wanted) -> Sequence[Any]:
        index, type = self._header.index(wanted.name), wanted.type
        if type.shape == () and (type.element_type is not DType.STRING or wanted.empty is None):
            whole = cells_of([cells[index] for _, cells in rows], wanted)
            if whole is not None:
                return list(whole)
        return [
            self._tensor(f"{self.location}:{line}", client, cells[index], wanted)
            for line, cells in rows
        ]

    def _tensor(self, place: str, client: str, cell: str, wanted: Wanted) -> Any:
        """Convert the text of a cell; an empty cell becomes its replacement."""
        empty = is_empty(cell, wanted.type.element_type)
        if empty and wanted.empty is not None:
            return wanted.empty
        tensor = _tensor(cell, wanted)
        if tensor is None and empty:
            raise empty_error(place, client, wanted, "empty")
        if tensor is None:
            raise cell_error(place, client, wanted, _shown(cell), _misread(cell, wanted))
        return tensor

    def _index_of(self, rows: Iterator[_Row], lines: _Lines) -> RowIndex:
        """Return the runs of each client's rows: start offset, first line number, end offset."""
        column = self._client
        index = RowIndex(3)
        start = lines.end
        for line, cells in rows:
            if cells:
                client = cells[column] if column < len(cells) else ""
                if not client:
                    raise no_client(f"{self.location}:{line}", self._header[column])
                index.add(client, start, line, lines.end)
            start = lines.end
        return index

    def _rows_of(self, client: str) -> Iterator[_Row]:
        with self._file.open() as file:
            for start, line, end in self.index.runs(client):
                file.seek(start)
                content = file.read(end - start).decode(errors="replace")
                for row in self._rows(io.StringIO(content, newline="\n"), line):
                    if row[1]:
                        yield row

    def _rows(self, lines: Iterable[str], first: int = 1) -> Iterator[_Row]:
        """Parse lines into rows; `first` is the number of the first line."""
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        line = first
        try:
            for cells in reader:
                yield line, cells
                line = first + reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(
                "E687",
                f"{self.location}:{line}: this is not CSV in UTF-8: {error}",
                help=_advice(error),
            ) from error


def _advice(error: csv.Error | UnicodeDecodeError) -> str:
    """Return the help for a file that is not CSV."""
    if isinstance(error, UnicodeDecodeError):
        return "save the file in UTF-8"
    text = str(error)
    return next((advice for part, advice in ADVICE.items() if part in text), OTHERWISE)


ADVICE = {
    "unexpected end of data": "close the quotation mark that is open at the end of the file",
    "field larger than": "keep what is so large in a file of another kind, such as .npz or Parquet",
    "new-line character": "end lines with a line feed, and put quotation marks around a cell with "
    "a carriage return in it",
    "a line has more than": "end each row with a line feed",
}
"""The help for an error of Python's CSV reader, by a part of its message."""

OTHERWISE = "name the character between cells with delimiter=CHARACTER if it is not a comma"


class _Lines:
    """The lines of a file, and the offset where the last line taken ends."""

    def __init__(self, file: BinaryIO, progress: Indexing) -> None:
        self.end = 0
        self._file = file
        self._progress = progress

    def __iter__(self) -> Iterator[str]:
        total = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        lines = iter(functools.partial(self._file.readline, LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, 1):
            if number % OFTEN == 0:
                self._progress(self.end, total, "bytes")
            if len(line) > LONGEST_LINE:
                raise csv.Error(f"a line has more than {LONGEST_LINE} bytes")
            content = line if self.end else line.removeprefix(BYTE_ORDER_MARK)
            self.end += len(line)
            yield content.decode()


def _tensor(cell: str, wanted: Wanted) -> Any:
    """Return the tensor written in a cell, or None if it is not of the type."""
    shape = wanted.type.shape
    values = cells_of([cell] if shape == () else cell.split(), wanted)
    return None if values is None else shaped(values, shape)


def _misread(cell: str, wanted: Wanted) -> str | None:
    """Return the help for a cell with a decimal comma, or with a word for a missing value."""
    if wanted.type.element_type is DType.STRING:
        return None
    if is_time(cell):
        if wanted.time is None:
            return times_help(wanted.name, wanted.words)
        return "let the program take int64 or float64, or read times in another unit"
    if DECIMAL_COMMA.fullmatch(cell.strip()):
        return "write numbers with a point, as in 1.5, in the place of the comma"
    if cell.strip().lower() in MISSING:
        return (
            f"a value that is missing is an empty cell: write nothing there, and say what stands "
            f"for it with empty={wanted.name}:VALUE, or empty={wanted.name}:skip"
        )
    return None


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:40]}...")
