"""Parquet files with one column that names the client of each row.  Needs pyarrow.

Opening reads the column of clients and keeps, for each client, where its rows lie: four numbers for
each run of consecutive rows.  Reading a client reads the row groups that hold its rows, and the
last two groups stay in memory; so files that are sorted by client are read once a round.

A column of lists holds tensors of one or more dimensions, row after row.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
import threading
import zlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.shapes import Shape
from tffc.language.types import TensorType
from tffc.runtime.data.arrow import load_arrow
from tffc.runtime.data.casts import converted, string_array
from tffc.runtime.data.cells import (
    SKIP,
    Rules,
    Wanted,
    cell_error,
    empty_error,
    in_units,
    lost_error,
    shaped,
)
from tffc.runtime.data.columns import ArrowColumn, Cells
from tffc.runtime.data.compressed import bytes_text, max_bytes_of, max_rows, too_long
from tffc.runtime.data.files import DataFile, changed, expand
from tffc.runtime.data.source import Indexing, no_indexing
from tffc.runtime.data.table import (
    CLIENT_COLUMN,
    RowIndex,
    Table,
    check_client_column,
    check_names,
    no_client,
)
from tffc.runtime.data.times import times_help
from tffc.support.errors import DataError, reader
from tffc.support.guards import Array

SUFFIXES = (".parquet",)

HELD = 2
"""The number of row groups that stay in memory."""

INDEX = re.compile(r"__index_level_\d+__")
"""The columns that pandas adds for row labels, which are not data."""

VALUE_SIZE = 16
"""The memory that a cell takes besides its content: a file may encode many equal cells in no
bytes."""


def _arrow() -> Any:
    load_arrow("reading Parquet", "pyarrow.parquet")
    return load_arrow("reading Parquet")


class ParquetFiles(Table):
    """The rows of Parquet files, by client.

    Raises:
      DataError: there is no file, one is not a Parquet file or has other columns than the first, or
        there is no column of clients or no row.
      MissingExtraError: pyarrow is not installed.
    """

    kind = "parquet"

    @reader("Parquet files", DataError)
    def __init__(
        self,
        path: str,
        client: str = CLIENT_COLUMN,
        columns: str | None = None,
        cast: str | None = None,
        empty: str | None = None,
        times: str | None = None,
        *,
        max_bytes: int | None = None,
        progress: Indexing = no_indexing,
        follow_links: bool = False,
    ) -> None:
        super().__init__(path, columns, Rules.parse(path, cast, empty, times))
        self.options = {"client": client, "columns": columns, "cast": cast, "empty": empty}
        self.options["times"] = times
        self.options["max-bytes"] = bytes_text(max_bytes)
        self._client = client
        self._max_bytes = max_bytes
        self._arrow = _arrow()
        self.files = expand(path, SUFFIXES, follow_links=follow_links)
        self._files = [DataFile.of(file) for file in self.files]
        self._types = self._read_types(client)
        self.columns = {name: str(kind) for name, kind in self._types.items()}
        self._digests: dict[tuple[int, int], int] = {}
        self._verified: set[tuple[int, int]] = set()
        self._hold(self._index_of(progress))
        self._held: dict[tuple[int, int, tuple[str, ...]], Any] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrow": None, "_held": {}, "_lock": None, "_verified": set()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _arrow=_arrow(), _lock=threading.Lock())

    def misfit(self, name: str, type: TensorType) -> tuple[str, str] | None:
        """See `Table`."""
        kind, element = self._types[name], self._types[name]
        depth = 0
        while (inner := self._element(element)) is not None:
            element, depth = inner, depth + 1
        scalar = type.shape == ()
        fits = depth == 0 if scalar else depth > 0 and depth in (1, len(type.shape or ()))
        if self._arrow.types.is_null(kind) or (fits and self._is_of(element, type.element_type)):
            return None
        if fits and self._holds_times(element) and type.element_type.is_numeric:
            unit = self.rules.time_of(name)
            return None if unit else (str(kind), times_help(name, self.rules.words))
        what = f"as {type}" if scalar else f"as lists of {type.element_type}"
        return str(kind), f"name another column with columns=, or write this one {what}"

    def row_counts(self) -> Array:
        """See `ScannedData`."""
        counts = (sum(end - start for *_, start, end in self.index.runs(c)) for c in self.clients)
        return np.fromiter(counts, np.int64)

    @reader("Parquet files", DataError)
    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`."""
        for name in self._types:
            for file in self._files:
                with self._open(file) as opened:
                    for group in range(opened.num_row_groups):
                        column = self._read(opened, file, group, (name,)).column(name)
                        with _library(file.path, column=name):
                            cells = ArrowColumn(column).take(slice(0, len(column)))
                        yield name, cells

    @reader("Parquet files", DataError)
    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        names = tuple(sorted({column.name for column in wanted}))
        parts = [
            self._row_group(file, group, names).slice(start, end - start)
            for file, group, start, end in self.index.runs(client)
        ]
        rows = parts[0]
        if len(parts) > 1:
            with _library(self.location):
                rows = self._arrow.concat_tables(parts)
        return [self._tensors(client, rows.column(column.name), column) for column in wanted]

    def _tensors(self, client: str, column: Any, wanted: Wanted) -> Sequence[Any]:
        """Return the cells of a column as tensors."""
        scalar = wanted.type.shape == ()
        whole = (self._scalars if scalar else self._lists)(client, column, wanted)
        if whole is not None:
            return whole
        with _library(self.location, client, wanted.name):
            cells = list(column)
        return [
            self._tensor(f"{self.location}, row {number} of the client", client, cell, wanted)
            for number, cell in enumerate(cells, 1)
        ]

    def _scalars(self, client: str, column: Any, wanted: Wanted) -> list[Any] | None:
        """Return the cells of a column, converted all at once, or None if that fails."""
        if column.null_count and wanted.empty is None:
            return None
        with _library(self.location, client, wanted.name):
            nulls = column.is_null().to_pylist() if column.null_count else ()
            values = self._decoded(column.drop_null() if nulls else column)
            whole = _elements(values, wanted)
        if whole is None or not nulls:
            return None if whole is None else list(whole)
        rest = iter(whole)
        return [wanted.empty if null else next(rest) for null in nulls]

    def _lists(self, client: str, column: Any, wanted: Wanted) -> list[Any] | None:
        """Return the lists of a column, converted all at once, or None if their lengths differ."""
        shape = [size for size in wanted.type.shape or () if size is not None]
        if wanted.type.shape is None or len(shape) < len(wanted.type.shape):
            return None
        sizes = [math.prod(shape)]
        element = self._element(column.type)
        if element is not None and self._element(element) is not None:
            sizes = shape
        compute = importlib.import_module("pyarrow.compute")
        values = column
        with _library(self.location, client, wanted.name):
            for size in sizes:
                if values.null_count or self._element(values.type) is None:
                    return None
                if (compute.list_value_length(values).to_numpy() != size).any():
                    return None
                values = compute.list_flatten(values)
            elements = None if values.null_count else _elements(self._decoded(values), wanted)
        return None if elements is None else list(elements.reshape([len(column), *shape]))

    def _tensor(self, place: str, client: str, cell: Any, wanted: Wanted) -> Any:
        """Return the tensor in a cell, or its replacement if the cell is null."""
        if not cell.is_valid:
            if wanted.empty is None:
                raise empty_error(place, client, wanted, "null")
            return wanted.empty
        with _library(place, client, wanted.name):
            scalar = wanted.type.shape == ()
            values, sizes = self._values(self._alone(cell) if scalar else cell.values)
            values = self._filled(values, wanted)
            elements = None if values.null_count or sizes is None else _elements(values, wanted)
        if values.null_count:
            if wanted.empty is SKIP:
                return SKIP
            raise empty_error(place, client, wanted, "a list with null in it")
        if sizes is None:
            raise cell_error(place, client, wanted, "a list with lists of several lengths in it")
        if elements is None:
            with _library(place, client, wanted.name):
                stored = values.to_numpy(zero_copy_only=False)
            raise lost_error(place, client, wanted, in_units(stored, wanted))
        shape = wanted.type.shape
        tensor = shaped(elements, shape) if len(sizes) == 1 else _nested(elements, sizes, shape)
        if tensor is None:
            lengths = f"a list of {' times '.join(map(str, sizes))}"
            raise cell_error(place, client, wanted, lengths)
        return tensor

    def _alone(self, cell: Any) -> Any:
        """Return a cell as an Arrow array of one element."""
        types = self._arrow.types
        kind = cell.type.value_type if types.is_dictionary(cell.type) else cell.type
        return self._arrow.array([cell.as_py()], kind)

    def _values(self, values: Any) -> tuple[Any, list[int] | None]:
        """Return the innermost values of lists, and the length of the lists at each depth, None if
        they differ."""
        sizes: list[int] | None = [len(values)]
        while self._element(values.type) is not None:
            lengths = {len(item) if item.is_valid else 0 for item in values}
            inner = values.flatten()
            if values.null_count or len(lengths) > 1:
                sizes = None
            elif sizes is not None:
                sizes.append(lengths.pop() if lengths else 0)
            values = inner
        return self._decoded(values), sizes

    def _filled(self, values: Any, wanted: Wanted) -> Any:
        """Return the values of a list with nulls replaced."""
        if not values.null_count or wanted.empty is None or wanted.empty is SKIP:
            return values
        fill = np.asarray(wanted.empty).ravel()[:1]
        return values.fill_null(fill.tolist()[0]) if fill.size else values

    def _decoded(self, values: Any) -> Any:
        """Return values with dictionary encoding undone."""
        if self._arrow.types.is_dictionary(values.type):
            return values.cast(values.type.value_type)
        return values

    def _read_types(self, client: str) -> dict[str, Any]:
        """Return the types of all columns but that of clients, checked to be the same in all
        files."""
        columns: list[dict[str, Any]] = []
        for file in self._files:
            with self._open(file) as opened, _library(file.path):
                schema = opened.schema_arrow
                names, types = list(schema.names), list(schema.types)
            check_names(file.path, names)
            check_client_column(file.path, client, names)
            held = dict(zip(names, types, strict=True))
            columns.append({n: held[n] for n in held if n == client or not INDEX.fullmatch(n)})
        for file, of_file in zip(self._files, columns, strict=True):
            if of_file != columns[0]:
                first = self._files[0].path
                raise DataError(
                    "E613",
                    f"{file.path} has other columns than {first}",
                    notes=tuple(
                        f"{path}: {', '.join(f'{n} {t}' for n, t in of.items())}"
                        for path, of in ((first, columns[0]), (file.path, of_file))
                    ),
                    help="write all files with the same columns and types, or read them apart",
                )
        return {name: kind for name, kind in columns[0].items() if name != client}

    def _index_of(self, progress: Indexing) -> RowIndex:
        """Return the runs of each client's rows: file, row group, first row in it, and end row."""
        index = RowIndex(4)
        before, total = 0, sum(file.size for file in self._files)
        for number, file in enumerate(self._files):
            most, rows = max_rows(file, self._max_bytes), 0
            with self._open(file) as opened:
                groups = opened.num_row_groups
                for group in range(groups):
                    with _library(file.path):
                        rows += max(opened.metadata.row_group(group).num_rows, 0)
                    if rows > most:
                        raise too_long(file.path, f"has more than {most} rows")
                    read = self._read(opened, file, group, (self._client,))
                    self._digests[number, group] = self._digest(file, read)
                    with _library(file.path):
                        names = read.column(self._client).to_pylist()
                    index.end_run()
                    for row, name in enumerate(names):
                        client = "" if name is None else _text(name)
                        if not client:
                            place = f"{file.path}, row group {group}, row {row}"
                            raise no_client(place, self._client)
                        index.add(client, number, group, row, row + 1)
                    progress(before + file.size * (group + 1) // groups, total, "bytes")
            before += file.size
        return index

    def _digest(self, file: DataFile, rows: Any) -> int:
        """Return a checksum of the client names of some rows."""
        digest = 0
        with _library(file.path):
            for part in self._decoded(rows.column(self._client)).chunks:
                for buffer in filter(None, part.buffers()):
                    digest = zlib.crc32(buffer, digest)
        return digest

    def _row_group(self, number: int, group: int, columns: tuple[str, ...]) -> Any:
        """Return some columns of a row group; the last `HELD` results stay in memory.

        Its rows must belong to the same clients as when the file was opened.  That is checked once
        if the file's whole identity is known, and otherwise at each reading.
        """
        key = (number, group, columns)
        with self._lock:
            if key not in self._held:
                while len(self._held) >= HELD:
                    del self._held[next(iter(self._held))]
                file = self._files[number]
                is_verified = (number, group) in self._verified and file.identity.is_here
                names = columns if is_verified else (*columns, self._client)
                with self._open(file) as opened:
                    rows = self._read(opened, file, group, names)
                if not is_verified and self._digest(file, rows) != self._digests[number, group]:
                    raise changed(file.path)
                self._verified.add((number, group))
                self._held[key] = rows.select(list(columns))
            return self._held[key]

    def _read(self, opened: Any, file: DataFile, group: int, columns: Sequence[str]) -> Any:
        """Return some columns of a row group, if they and that of clients take no more memory than
        allowed."""
        names = list(dict.fromkeys((self._client, *columns)))
        with _library(file.path):
            # The metadata of single columns is not used: Arrow aborts the process where that is
            # damaged.
            about = opened.metadata.row_group(group)
            claimed = max(about.total_byte_size, 0)
            claimed += max(about.num_rows, 0) * len(names) * VALUE_SIZE
        limit = max_bytes_of(file.size, self._max_bytes)
        if claimed > limit:
            raise DataError(
                "E629",
                f"{file.path}: row group {group} takes {claimed} bytes, expected no more than "
                f"{limit}",
                help="write smaller row groups, or allow more with max-bytes=NUMBER",
            )
        with _library(file.path):
            return opened.read_row_group(group, list(dict.fromkeys(columns)))

    @contextlib.contextmanager
    def _open(self, file: DataFile) -> Generator[Any]:
        parquet = importlib.import_module("pyarrow.parquet")
        with file.open() as content:
            with _library(file.path):
                opened = parquet.ParquetFile(content)
            yield opened

    def _element(self, kind: Any) -> Any:
        """Return the element type of a list type, or None if it is not a list type."""
        types = self._arrow.types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return kind.value_type if is_list else None

    def _holds_times(self, kind: Any) -> bool:
        """Return whether values of an Arrow type are times or dates."""
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return types.is_timestamp(kind) or types.is_date(kind)

    def _is_of(self, kind: Any, dtype: DType) -> bool:
        """Return whether values of an Arrow type can be elements of `dtype`, one by one."""
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_null(kind):
            return True
        if dtype is DType.STRING:
            tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
            return any(test(kind) for test in tests)
        return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


@contextlib.contextmanager
def _library(place: str, client: str = "", column: str = "") -> Generator[None]:
    """Turn any exception of Arrow into an error about a file.

    Use it around calls of Arrow only, so that no bug of ours is reported as damage.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        of = f"client {client}: the column {column!r}: " if client else ""
        raise DataError(
            "E627",
            f"{place} is not a Parquet file, or is damaged: "
            f"{of}{str(error) or type(error).__name__}",
            help="write it again, for example with to_parquet of pandas",
        ) from error


def _text(name: Any) -> str:
    """Return the client's name in a cell of the column of clients."""
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else str(name)


def _elements(values: Any, wanted: Wanted) -> Array | None:
    """Return Arrow values without nulls as an array, or None if one does not fit."""
    dtype = wanted.type.element_type
    if dtype is not DType.STRING:
        stored = values.to_numpy(zero_copy_only=False)
        if not len(stored):
            return np.empty(0, dtype.dtype)
        return converted(in_units(stored, wanted), dtype, wanted.rounded)
    return string_array(values.to_pylist())


def _nested(elements: Array, sizes: Sequence[int], shape: Shape) -> Any:
    """Return the tensor held by nested lists of these lengths, or None if it does not fit the
    shape."""
    if shape is None:
        return elements.reshape(sizes)
    if len(sizes) != len(shape):
        return None
    if not elements.size:
        # Below an empty list there is no list whose length could be known.
        sizes = [
            size if wanted is None else wanted for size, wanted in zip(sizes, shape, strict=True)
        ]
    if math.prod(sizes) != elements.size:
        return None
    if any(wanted not in (None, size) for size, wanted in zip(sizes, shape, strict=True)):
        return None
    return elements.reshape(sizes)
