"""Parquet files whose rows name their client in one column.  Needs pyarrow.

Opening reads the column of clients and keeps, for each client, where its rows lie: four numbers for
each run of rows that follow one another.  Reading a client reads the row groups that its rows are
in, of which the last two stay in memory; so files that are sorted by client are read once a round.

A column of lists holds tensors of one dimension or more, row after row.
"""

from __future__ import annotations

import array
import contextlib
import importlib
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.data.files import DataFile, changed, expand
from tffc.data.source import Origin
from tffc.data.table import (
    TableClients,
    Wanted,
    cell_error,
    check_client_column,
    check_clients,
    check_names,
    no_client,
    shaped,
)
from tffc.errors import DataError, MissingExtraError
from tffc.ir.dtypes import DType
from tffc.ir.types import TensorType, Type

SUFFIXES = (".parquet",)

HELD = 2
"""How many row groups stay in memory."""

MAX_BYTES = 2**30
"""How much memory a row group may take unless asked otherwise; more where the file itself is so
large that it is compressed by less than `USUAL_RATIO`."""

USUAL_RATIO = 16

VALUE_SIZE = 16
"""What a cell takes beside its own bytes, which may be none where all cells are alike."""


def _arrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(
            "E680", "reading Parquet needs pyarrow", help="pip install 'tffc[parquet]'"
        ) from error


class ParquetFiles:
    """The rows of files, by client.

    Raises:
      DataError: there is no file, one is no Parquet or has other columns than the first, or there
        is no column of clients or no row.
      MissingExtraError: pyarrow is not installed.
    """

    def __init__(
        self,
        path: str,
        client: str = "client",
        columns: str | None = None,
        *,
        max_bytes: int | None = None,
        follow_links: bool = False,
    ) -> None:
        self.location = path
        self._client = client
        self._columns = columns
        self._max_bytes = max_bytes
        self._arrow = _arrow()
        found = expand(path, SUFFIXES, follow_links=follow_links)
        self._files = [DataFile.of(each) for each in found]
        self._types = self._read_types(client)
        self.columns: Mapping[str, str] = {name: str(kind) for name, kind in self._types.items()}
        self._digests: dict[tuple[int, int], int] = {}
        self._runs = self._index()
        check_clients(path, tuple(self._runs))
        self.clients = tuple(sorted(self._runs))
        self._held: dict[tuple[int, int, tuple[str, ...]], Any] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrow": None, "_held": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _arrow=_arrow(), _lock=threading.Lock())

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        return self.columns

    def origin(self) -> Origin:
        """See `DataSet`."""
        options = {"client": self._client, "columns": self._columns}
        if self._max_bytes is not None:
            options["max-bytes"] = str(self._max_bytes)
        return Origin("parquet", options, [file.path for file in self._files])

    def typed(self, type: Type) -> TableClients:
        """See `DataSet`."""
        return TableClients.of(self, type, self._columns)

    def misfit(self, wanted: Wanted) -> str | None:
        """See `Table`."""
        name, type = wanted
        kind = self._types[name]
        element = kind if type.shape == () else self._element(kind)
        if element is None or not self._is_of(element, type.dtype):
            return str(kind)
        return None

    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        names = tuple(sorted({name for name, _ in wanted}))
        runs = self._runs[client]
        parts = [
            self._row_group(file, group, names).slice(start, count)
            for file, group, start, count in zip(
                runs[::4], runs[1::4], runs[2::4], runs[3::4], strict=True
            )
        ]
        rows = parts[0]
        if len(parts) > 1:
            with self._library(self.location):
                rows = self._arrow.concat_tables(parts)
        return [self._tensors(client, rows.column(each[0]), each) for each in wanted]

    def _tensors(self, client: str, column: Any, wanted: Wanted) -> Sequence[Any]:
        """The cells of a column as tensors."""
        name, type = wanted
        with self._library(self.location, client, name):
            if type.shape == () and column.null_count == 0:
                return list(_elements(column, type.dtype))
            cells = list(column)
        tensors = []
        for number, cell in enumerate(cells, 1):
            place = f"{self.location}, row {number} of the client"
            with self._library(place, client, name):
                tensor = self._tensor(cell, type)
            if tensor is None:
                raise cell_error(place, client, wanted, _found(cell))
            tensors.append(tensor)
        return tensors

    def _tensor(self, cell: Any, type: TensorType) -> Any:
        """The tensor in a cell, or None if it is null or has another number of elements."""
        if not cell.is_valid:
            return None
        values = self._arrow.array([cell], cell.type) if type.shape == () else cell.values
        return None if values.null_count else shaped(_elements(values, type.dtype), type.shape)

    def _read_types(self, client: str) -> dict[str, Any]:
        """The columns of all files but that of clients, with their types."""
        columns = []
        for file in self._files:
            with self._open(file) as opened, self._library(file.path):
                schema = opened.schema_arrow
                names, types = list(schema.names), list(schema.types)
            check_names(file.path, names)
            check_client_column(file.path, client, names)
            columns.append(dict(zip(names, types, strict=True)))
        for file, found in zip(self._files, columns, strict=True):
            if found != columns[0]:
                first = self._files[0].path
                raise DataError(
                    "E695",
                    f"{file.path} has other columns than {first}",
                    notes=tuple(
                        f"{each}: {', '.join(f'{n} {t}' for n, t in of.items())}"
                        for each, of in ((first, columns[0]), (file.path, found))
                    ),
                )
        return {name: kind for name, kind in columns[0].items() if name != client}

    def _index(self) -> dict[str, array.array[int]]:
        """For each client the runs of its rows: file, row group, first row in it, and how many."""
        index: dict[str, array.array[int]] = {}
        for number, file in enumerate(self._files):
            with self._open(file) as opened:
                for group in range(opened.num_row_groups):
                    names = self._names_of(file, self._read(opened, file, group, ()))
                    self._digests[number, group] = _digest(names)
                    self._add_runs(index, names, number, group)
        return index

    def _names_of(self, file: DataFile, rows: Any) -> list[Any]:
        """What names the client of each row."""
        with self._library(file.path):
            return rows.column(self._client).to_pylist()

    def _add_runs(
        self, index: dict[str, array.array[int]], names: Sequence[Any], number: int, group: int
    ) -> None:
        """Adds the runs of a row group."""
        last: array.array[int] | None = None
        for row, name in enumerate(names):
            client = "" if name is None else _text(name)
            if not client:
                place = f"{self._files[number].path}, row group {group}, row {row}"
                raise no_client(place, self._client)
            runs = index.setdefault(client, array.array("q"))
            if runs is last:
                runs[-1] += 1
            else:
                runs.extend((number, group, row, 1))
            last = runs

    def _row_group(self, number: int, group: int, columns: tuple[str, ...]) -> Any:
        """Some columns of a row group, which is kept in memory until others are asked for."""
        key = (number, group, columns)
        with self._lock:
            if key not in self._held:
                while len(self._held) >= HELD:
                    del self._held[next(iter(self._held))]
                file = self._files[number]
                with self._open(file) as opened:
                    rows = self._read(opened, file, group, columns)
                if _digest(self._names_of(file, rows)) != self._digests[number, group]:
                    raise changed(file.path)
                self._held[key] = rows.select(list(columns))
            return self._held[key]

    def _read(self, opened: Any, file: DataFile, group: int, columns: Sequence[str]) -> Any:
        """Some columns of a row group and that of clients, if they take no more than is allowed."""
        names = list(dict.fromkeys((self._client, *columns)))
        with self._library(file.path):
            # Not what is said of single columns: Arrow ends the process where that is damaged.
            about = opened.metadata.row_group(group)
            claimed = max(about.total_byte_size, 0)
            claimed += max(about.num_rows, 0) * len(names) * VALUE_SIZE
        limit = self._max_bytes or max(MAX_BYTES, USUAL_RATIO * file.size)
        if claimed > limit:
            raise DataError(
                "E634",
                f"{file.path}: row group {group} takes {claimed} bytes, expected no more than "
                f"{limit}",
                help="write smaller row groups, or allow more with max-bytes=NUMBER",
            )
        with self._library(file.path):
            return opened.read_row_group(group, names)

    @contextlib.contextmanager
    def _open(self, file: DataFile) -> Iterator[Any]:
        parquet = importlib.import_module("pyarrow.parquet")
        with file.open() as content:
            with self._library(file.path):
                opened = parquet.ParquetFile(content)
            yield opened

    @contextlib.contextmanager
    def _library(self, place: str, client: str = "", column: str = "") -> Iterator[None]:
        """Turns what Arrow raises, which may be anything, into an error about a file.

        A `with` has calls of it alone, so that a defect of our own is not taken for damage.
        """
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            of = f"client {client}: the column {column!r}: " if client else ""
            said = f"{of}{str(error) or type(error).__name__}"
            raise DataError("E696", f"{place} is no Parquet file, or is damaged: {said}") from error

    def _element(self, kind: Any) -> Any:
        """The type of the elements of a type of lists; None if it is none."""
        types = self._arrow.types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return kind.value_type if is_list else None

    def _is_of(self, kind: Any, dtype: DType) -> bool:
        types = self._arrow.types
        if dtype is DType.STRING:
            if types.is_dictionary(kind):
                kind = kind.value_type
            tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
            return any(test(kind) for test in tests)
        if dtype is DType.BFLOAT16 or dtype.kind == "complex":
            return False
        return kind == self._arrow.from_numpy_dtype(dtype.dtype)


def _text(name: Any) -> str:
    """The client that a value of the column of clients names."""
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else str(name)


def _digest(names: Sequence[Any]) -> int:
    """What tells the clients of some rows from others."""
    try:
        text = "\0".join(names)
    except TypeError:
        text = repr(names)
    return zlib.crc32(text.encode())


def _elements(values: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Values of Arrow without nulls as an array."""
    if dtype is not DType.STRING:
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype.dtype)
    items = values.to_pylist()
    strings = np.empty(len(items), object)
    strings[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return strings


def _found(cell: Any) -> str:
    """What a cell that is no tensor is, in words."""
    if not cell.is_valid:
        return "null"
    return "a list with null in it" if cell.values.null_count else f"a list of {len(cell.values)}"
