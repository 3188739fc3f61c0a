"""A CSV file whose rows name their client in one column.

Opening reads the file once and keeps, for each client, where its rows lie: three numbers for each
run of rows that follow one another.  Reading a client reads its rows alone.

Cells are text.  Several numbers in a cell have spaces between.  A truth value is `true` or `false`
in any case, or 1 or 0.
"""

from __future__ import annotations

import array
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from tffc.data.files import reading
from tffc.data.table import (
    TableClients,
    Wanted,
    cell_error,
    check_client_column,
    check_clients,
    no_client,
    shaped,
)
from tffc.errors import DataError
from tffc.ir.dtypes import DType
from tffc.ir.types import TensorType, Type

TRUTH = {"true": True, "1": True, "false": False, "0": False}

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Row(NamedTuple):
    """A row: the number of its first line, where it ends, and its cells."""

    line: int
    end: int
    cells: list[str]


class CsvFile:
    """The rows of a file, by client.

    Raises:
      DataError: the file can not be read, is no CSV, or has no column of clients or no row.
    """

    def __init__(
        self, path: str, client: str = "client", columns: str | None = None, delimiter: str = ","
    ) -> None:
        self.location = path
        self._arguments = (path, client, columns, delimiter)
        with reading(path), open(path, "rb") as file:
            rows = self._rows(file)
            header = next(rows, _Row(1, 0, []))
            self._header = header.cells
            check_client_column(path, client, self._header)
            self._runs = self._index(rows, header.end, client)
        check_clients(path, tuple(self._runs))
        self.clients = tuple(sorted(self._runs))
        self.columns: Mapping[str, str] = {name: "text" for name in self._header if name != client}

    def __reduce__(self) -> Any:
        return CsvFile, self._arguments

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        return self.columns

    def typed(self, type: Type) -> TableClients:
        """See `DataSet`."""
        return TableClients.of(self, type, self._arguments[2])

    def misfit(self, wanted: Wanted) -> str | None:
        """See `Table`; text can be anything."""
        return None

    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        rows = list(self._rows_of(client))
        for row in rows:
            if len(row.cells) != len(self._header):
                raise DataError(
                    "E679",
                    f"{self.location}:{row.line}: client {client}: the row has {len(row.cells)} "
                    f"cells, expected {len(self._header)}",
                )
        return [self._tensors(client, rows, each) for each in wanted]

    def _tensors(self, client: str, rows: Sequence[_Row], wanted: Wanted) -> Sequence[Any]:
        name, type = wanted
        index = self._header.index(name)
        if type.shape == ():
            whole = _elements([row.cells[index] for row in rows], type.dtype)
            if whole is not None:
                return list(whole)
        tensors = []
        for row in rows:
            tensor = _tensor(row.cells[index], type)
            if tensor is None:
                place = f"{self.location}:{row.line}"
                raise cell_error(place, client, wanted, _shown(row.cells[index]))
            tensors.append(tensor)
        return tensors

    def _index(self, rows: Iterator[_Row], start: int, name: str) -> dict[str, array.array[int]]:
        """For each client the runs of its rows: where each begins and ends, and its first line."""
        column = self._header.index(name)
        index: dict[str, array.array[int]] = {}
        last: array.array[int] | None = None
        for row in rows:
            if row.cells:
                client = row.cells[column] if column < len(row.cells) else ""
                if not client:
                    raise no_client(f"{self.location}:{row.line}", name)
                runs = index.setdefault(client, array.array("q"))
                if runs is last:
                    runs[-2] = row.end
                else:
                    runs.extend((start, row.end, row.line))
                last = runs
            start = row.end
        return index

    def _rows_of(self, client: str) -> Iterator[_Row]:
        runs = self._runs[client]
        with reading(self.location), open(self.location, "rb") as file:
            for start, end, line in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
                file.seek(start)
                for row in self._rows(io.BytesIO(file.read(end - start)), line):
                    if row.cells:
                        yield row

    def _rows(self, file: IO[bytes], first: int = 1) -> Iterator[_Row]:
        """The rows from the place of a file on, the first of them in the line of that number."""
        end = 0

        def lines() -> Iterator[str]:
            nonlocal end
            for line in file:
                content = line if end else line.removeprefix(BYTE_ORDER_MARK)
                end += len(line)
                yield content.decode()

        reader = csv.reader(lines(), delimiter=self._arguments[3], strict=True)
        line = first
        try:
            for cells in reader:
                yield _Row(line, end, cells)
                line = first + reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(
                "E687",
                f"{self.location}:{line}: this is no CSV in UTF-8: {error}",
                help="name what stands between cells with delimiter=CHARACTER if it is no comma",
            ) from error


def _tensor(cell: str, type: TensorType) -> Any:
    """The tensor that the text of a cell is, or None if it is none of the type."""
    values = _elements([cell] if type.shape == () else cell.split(), type.dtype)
    return None if values is None else shaped(values, type.shape)


def _elements(words: Sequence[str], dtype: DType) -> np.ndarray[Any, Any] | None:
    """The elements that words stand for, or None if one does not stand for any."""
    if dtype is DType.STRING:
        strings = np.empty(len(words), object)
        strings[:] = [word.encode() for word in words]
        return strings
    try:
        if dtype is DType.BOOL:
            return np.array([TRUTH[word.strip().lower()] for word in words], bool)
        read = {"float": float, "complex": complex}.get(dtype.kind, int)
        if any("_" in word for word in words):
            return None
        return _exact([read(word) for word in words], dtype)
    except (KeyError, ValueError):
        return None


def _exact(numbers: Sequence[Any], dtype: DType) -> np.ndarray[Any, Any] | None:
    """Numbers as an array, or None if one is beyond what the element type holds."""
    if dtype.is_integer:
        limits = np.iinfo(dtype.dtype)
        if numbers and not (limits.min <= min(numbers) and max(numbers) <= limits.max):
            return None
        return np.array(numbers, dtype.dtype)
    wide = np.array(numbers, np.complex128 if dtype.kind == "complex" else np.float64)
    with np.errstate(over="ignore"):
        made = wide.astype(dtype.dtype)
    return None if (np.isinf(made) & np.isfinite(wide)).any() else made


def _shown(cell: str) -> str:
    if not cell:
        return "empty"
    return repr(cell if len(cell) <= 40 else f"{cell[:40]}...")
