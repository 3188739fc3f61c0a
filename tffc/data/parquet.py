"""Parquet files whose rows name their client in one column.  Needs pyarrow.

Opening reads the column of clients and keeps, for each client, where its rows lie: four numbers for
each run of rows that follow one another.  Reading a client reads the row groups that its rows are
in, of which the last two stay in memory; so files that are sorted by client are read once a round.

A column of lists holds tensors of one dimension or more, row after row.
"""

from __future__ import annotations

import array
import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.data.files import expand, reading
from tffc.data.table import (
    TableClients,
    Wanted,
    cell_error,
    check_client_column,
    check_clients,
    no_client,
    shaped,
)
from tffc.errors import DataError, MissingExtraError
from tffc.ir.dtypes import DType
from tffc.ir.types import TensorType, Type

SUFFIXES = (".parquet",)

HELD = 2
"""How many row groups stay in memory."""


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

    def __init__(self, path: str, client: str = "client", columns: str | None = None) -> None:
        self.location = path
        self._arguments = (path, client, columns)
        self._arrow = _arrow()
        self._files = expand(path, SUFFIXES)
        self._types = self._read_types(client)
        self.columns: Mapping[str, str] = {name: str(kind) for name, kind in self._types.items()}
        self._runs = self._index(client)
        check_clients(path, tuple(self._runs))
        self.clients = tuple(sorted(self._runs))
        self._held: dict[tuple[int, int, tuple[str, ...]], Any] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return ParquetFiles, self._arguments

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        return self.columns

    def typed(self, type: Type) -> TableClients:
        """See `DataSet`."""
        return TableClients.of(self, type, self._arguments[2])

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
        rows = self._arrow.concat_tables(parts)
        return [self._tensors(client, rows.column(each[0]), each) for each in wanted]

    def _tensors(self, client: str, column: Any, wanted: Wanted) -> Sequence[Any]:
        """The cells of a column as tensors."""
        type = wanted[1]
        if type.shape == () and column.null_count == 0:
            return list(_elements(column, type.dtype))
        tensors = []
        for number, cell in enumerate(column, 1):
            tensor = self._tensor(cell, type)
            if tensor is None:
                place = f"{self.location}, row {number} of the client"
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
        schemas = [self._open(path).schema_arrow for path in self._files]
        columns = [dict(zip(schema.names, schema.types, strict=True)) for schema in schemas]
        for path, found in zip(self._files, columns, strict=True):
            check_client_column(path, client, list(found))
            if found != columns[0]:
                raise DataError(
                    "E695",
                    f"{path} has other columns than {self._files[0]}",
                    notes=tuple(
                        f"{each}: {', '.join(f'{n} {t}' for n, t in of.items())}"
                        for each, of in ((self._files[0], columns[0]), (path, found))
                    ),
                )
        return {name: kind for name, kind in columns[0].items() if name != client}

    def _index(self, column: str) -> dict[str, array.array[int]]:
        """For each client the runs of its rows: file, row group, first row in it, and how many."""
        index: dict[str, array.array[int]] = {}
        for number, path in enumerate(self._files):
            file = self._open(path)
            for group in range(file.num_row_groups):
                names = file.read_row_group(group, [column]).column(0).to_pylist()
                last: array.array[int] | None = None
                for row, name in enumerate(names):
                    if name is None or name in ("", b""):
                        raise no_client(f"{path}, row group {group}, row {row}", column)
                    client = name.decode() if isinstance(name, bytes) else str(name)
                    runs = index.setdefault(client, array.array("q"))
                    if runs is last:
                        runs[-1] += 1
                    else:
                        runs.extend((number, group, row, 1))
                    last = runs
        return index

    def _row_group(self, file: int, group: int, columns: tuple[str, ...]) -> Any:
        """Some columns of a row group, which is kept in memory until others are asked for."""
        key = (file, group, columns)
        with self._lock:
            if key not in self._held:
                while len(self._held) >= HELD:
                    del self._held[next(iter(self._held))]
                self._held[key] = self._open(self._files[file]).read_row_group(group, columns)
            return self._held[key]

    def _open(self, path: str) -> Any:
        parquet = importlib.import_module("pyarrow.parquet")
        try:
            with reading(path):
                return parquet.ParquetFile(path)
        except self._arrow.ArrowException as error:
            raise DataError("E696", f"{path} is no Parquet file, or is damaged: {error}") from error

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
