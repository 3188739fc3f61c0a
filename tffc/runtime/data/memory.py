"""A table in memory whose rows belong to clients: sorted by client once, and read by client.

Of a client, the rows are taken from the columns that the program needs when the client is read, and
converted all at once.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.shapes import shape_is_assignable
from tffc.language.types import TensorType
from tffc.runtime.data.casts import converted, is_convertible, lost, string_array
from tffc.runtime.data.cells import (
    SKIP,
    Rules,
    Wanted,
    cell_error,
    empty_error,
    in_units,
    lost_error,
)
from tffc.runtime.data.columns import (
    ArrayColumn,
    ArrowColumn,
    Cells,
    Column,
    Rows,
    SeriesColumn,
    with_inner_gaps,
)
from tffc.runtime.data.source import Origin
from tffc.runtime.data.table import ColumnChoice, Table, no_client
from tffc.runtime.data.times import durations_help, is_times, times_help
from tffc.support.errors import DataError
from tffc.support.guards import Array, ElementType, is_array, is_listing

PART = 2**16
"""The rows of a column that are described at once."""

LONGEST = 40
"""The most characters of a cell that an error shows."""


class MemoryTable(Table):
    """The rows of a table in memory, by client; `what` names the table in errors.

    `order` has the numbers of all rows, those of each client beside one another, and `starts` where
    each client's begin, and the end.  Without `order`, rows are in that order already.
    """

    kind = "python"
    files = ()
    drops_rows = True

    def __init__(
        self,
        what: str,
        columns: Mapping[str, Column],
        groups: Groups,
        chosen: Sequence[str] | None,
        rules: Rules,
        selection: ColumnChoice | None = None,
    ) -> None:
        super().__init__(what, chosen, rules)
        self.selection = selection
        self.held = columns
        self.columns = ColumnKinds(columns)
        self.groups = groups
        self.clients = groups.clients
        self._numbers = {client: number for number, client in enumerate(groups.clients)}

    def origin(self) -> Origin:
        """See `DataSet`; it is in no file."""
        return Origin(self.kind, {}, [])

    def selected(self, clients: Sequence[str]) -> MemoryTable:
        """Return the table with only the rows of some clients."""
        groups = self.groups.some([self._numbers[client] for client in sorted(clients)])
        chosen = self.chosen
        return MemoryTable(self.location, self.held, groups, chosen, self.rules, self.selection)

    def natural(self, client: str) -> dict[str, Array]:
        """Return the rows of a client as arrays, with None for gaps where NaN or NaT is none."""
        rows = self.rows_of(client)
        return {name: _with_none(column.take(rows)) for name, column in self.held.items()}

    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`."""
        for name, column in self.held.items():
            for part in self._parts(len(column)):
                yield name, column.take(part)

    def _parts(self, count: int) -> Iterator[Rows]:
        """Yield the rows of all clients, a part at a time; `count` is that of the whole table."""
        rows = self.groups.all_rows(count)
        total = count if rows is None else len(rows)
        for start in range(0, total, PART):
            part = slice(start, min(start + PART, total))
            yield part if rows is None else rows[part]

    def row_counts(self) -> Array:
        """See `ScannedData`."""
        return self.groups.counts()

    def size(self) -> int | None:
        """See `ScannedData`."""
        whole = sum(column.nbytes for column in self.held.values())
        count = len(next(iter(self.held.values()), ()))
        rows = self.groups.all_rows(count)
        return whole if rows is None or not count else whole * len(rows) // count

    def rows_of(self, client: str) -> Rows:
        """Return the rows of a client."""
        return self.groups.rows(self._numbers[client])

    def misfit(self, name: str, type: TensorType) -> tuple[str, str] | None:
        """See `Table`."""
        column, dtype = self.held[name], type.element_type
        cell_type = column.cell_type
        if cell_type is None or is_of(cell_type, dtype):
            return None
        if is_times(cell_type) and dtype.is_numeric:
            if self.rules.time_of(name) is not None:
                return None
            return column.kind, times_help(name, self.rules.words)
        if cell_type.kind == "m":
            return column.kind, durations_help(name)
        return column.kind, "take another column with columns=, or convert this one"

    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        rows = self.rows_of(client)
        taken = [self._taken(column, rows) for column in wanted]
        skipped = [
            cells.gaps
            for cells, column in zip(taken, wanted, strict=True)
            if column.empty is SKIP and cells.gaps is not None
        ]
        if skipped:
            stays = ~np.logical_or.reduce(skipped)
            taken = [_some(cells, stays) for cells in taken]
            rows = self.groups.numbers(self._numbers[client])[stays]
        for cells, column in zip(taken, wanted, strict=True):
            if cells.gaps is not None and column.empty is None:
                place = self._place(rows, int(np.argmax(cells.gaps)))
                raise self._missing(place, client, column, wanted)
        return [
            self._tensors(client, rows, cells, column)
            for cells, column in zip(taken, wanted, strict=True)
        ]

    def _taken(self, wanted: Wanted, rows: Rows) -> Cells:
        """Return the cells of a column; in a frame, an option for missing values is also for arrays
        with NaN in them."""
        column = self.held[wanted.name]
        cells = column.take(rows)
        if wanted.empty is not None and isinstance(column, ArrayColumn) and column.has_gaps:
            return with_inner_gaps(cells)
        return cells

    def _missing(
        self, place: str, client: str, column: Wanted, wanted: Sequence[Wanted]
    ) -> DataError:
        """Return the error for a column with a missing cell, which also counts those of the whole
        table that nothing stands for, in rows that are not left out."""
        gaps = {each.name: self._gaps(each) for each in wanted}
        stays: Array = np.ones(len(gaps[column.name]), bool)
        for each in wanted:
            if each.empty is SKIP:
                stays &= ~gaps[each.name]
        counts = {each: int((gaps[each.name] & stays).sum()) for each in wanted}
        open = [each for each in wanted if each.empty is None and counts[each]]
        shown = ", ".join(f"{each.name!r} in {counts[each]}" for each in open)
        note = f"of all {len(stays)} rows, cells are missing of {shown}"
        others = [each for each in open if each.name != column.name]
        return empty_error(place, client, column, "missing", (note,), others)

    def _gaps(self, wanted: Wanted) -> Array:
        """Return for the rows of all clients whether a column has nothing there."""
        parts = self._parts(len(self.held[wanted.name]))
        taken = [self._taken(wanted, part) for part in parts]
        gaps = [
            np.zeros(len(cells.values), bool) if cells.gaps is None else cells.gaps
            for cells in taken
        ]
        return np.concatenate([np.zeros(0, bool), *gaps])

    def _tensors(self, client: str, rows: Rows, cells: Cells, wanted: Wanted) -> Sequence[Any]:
        gaps = cells.gaps
        if gaps is None:
            return cast("Sequence[Any]", self._converted(client, rows, cells, wanted))
        known = self._numbers_of(rows, len(gaps))[~gaps]
        values = self._converted(client, known, _some(cells, ~gaps), wanted)
        if isinstance(values, list):
            rest = iter(values)
            return [wanted.empty if gap else next(rest) for gap in gaps]
        whole: Array = np.empty((len(gaps), *values.shape[1:]), values.dtype)
        whole[~gaps], whole[gaps] = values, wanted.empty
        return cast("Sequence[Any]", whole)

    def _converted(
        self, client: str, rows: Rows, cells: Cells, wanted: Wanted
    ) -> Array | list[Any]:
        """Return cells without gaps as tensors: as one array if they are of one shape."""
        dtype, values = wanted.type.element_type, cells.values
        if values.dtype.kind == "O" and dtype is not DType.STRING:
            values, is_python = _plain(values, with_times=wanted.time is not None)
            cells = Cells(values, is_python=cells.is_python or is_python)
        if values.dtype.kind == "O" or values.dtype.kind in "SU":
            return self._one_by_one(client, rows, values, wanted)
        if not len(values):
            shape = [size or 0 for size in wanted.type.shape or ()]
            return np.empty((0, *shape), dtype.dtype)
        values = in_units(values, wanted)
        rounded = wanted.rounded or (cells.is_python and values.dtype.kind in "fc")
        numbers = converted(values, dtype, rounded)
        if numbers is None:
            raise self._misfit_of(client, rows, values, wanted, rounded=rounded)
        shape = wanted.type.shape
        if shape is not None and not shape_is_assignable(shape, numbers.shape[1:]):
            sizes = [size for size in shape if size is not None]
            is_flat = numbers.ndim == 2 and len(sizes) == len(shape)
            if not is_flat or math.prod(sizes) != numbers.shape[1]:
                content = f"of shape {list(numbers.shape[1:])}" if numbers.ndim > 1 else "a number"
                raise cell_error(self._place(rows, 0), client, wanted, content)
            return numbers.reshape(len(numbers), *sizes)
        return numbers

    def _one_by_one(
        self, client: str, rows: Rows, values: Array, wanted: Wanted
    ) -> Array | list[Any]:
        """Return strings, or cells of several shapes, as tensors."""
        if wanted.type.element_type is DType.STRING:
            return self._strings(client, rows, values, wanted)
        tensors: list[Any] = []
        for number, value in enumerate(values):
            row = self._numbers_of(rows, len(values))[number : number + 1]
            if not is_array(value) or value.dtype.kind not in "biufcMV":
                raise self._no_number(client, rows, number, value, wanted)
            tensors.append(self._converted(client, row, Cells(value[np.newaxis]), wanted)[0])
        return tensors

    def _strings(self, client: str, rows: Rows, values: Array, wanted: Wanted) -> Array:
        items = values.ravel().tolist()
        for number, item in enumerate(items):
            if not isinstance(item, (str, bytes)):
                each = max(len(items) // max(len(values), 1), 1)
                raise self._no_number(client, rows, number // each, item, wanted)
        try:
            strings = string_array(items).reshape(values.shape)
        except UnicodeEncodeError as error:
            raise DataError(
                "E628",
                f"{self.location}: client {client}: the column {wanted.name!r} has a string that "
                f"is not Unicode text: {error}",
                help="correct the text, or give bytes",
            ) from error
        if wanted.type.shape is not None and not shape_is_assignable(
            wanted.type.shape, strings.shape[1:]
        ):
            content = f"of shape {list(strings.shape[1:])}"
            raise cell_error(self._place(rows, 0), client, wanted, content)
        return strings

    def _misfit_of(
        self, client: str, rows: Rows, values: Array, wanted: Wanted, *, rounded: bool
    ) -> DataError:
        """Return the error for cells of which one cannot be converted."""
        dtype = wanted.type.element_type
        if not is_convertible(values.dtype, dtype):
            help = times_help(wanted.name, wanted.words) if is_times(values.dtype) else None
            value = values.reshape(len(values), -1)[0, 0] if values.size else values.dtype
            return cell_error(self._place(rows, 0), client, wanted, str(value), help)
        at = int(np.argmax(lost(values, dtype, rounded).reshape(len(values), -1).any(axis=1)))
        place = self._place(rows, at)
        if rounded:
            number = values[at : at + 1][lost(values[at : at + 1], dtype, rounded)][0]
            return cell_error(place, client, wanted, str(number))
        return lost_error(place, client, wanted, values[at : at + 1])

    def _no_number(
        self, client: str, rows: Rows, number: int, value: Any, wanted: Wanted
    ) -> DataError:
        text = repr(value)
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        help = None
        if wanted.type.element_type.is_numeric:
            if isinstance(value, datetime.date):
                help = times_help(wanted.name, wanted.words)
            elif isinstance(value, datetime.timedelta):
                help = durations_help(wanted.name)
            elif isinstance(value, str):
                help = text_help(wanted.name, value)
        return cell_error(self._place(rows, number), client, wanted, shown, help)

    def _place(self, rows: Rows, number: int) -> str:
        row = (rows.start or 0) + number if isinstance(rows, slice) else int(rows[number])
        return f"{self.location}, row {row}"

    def _numbers_of(self, rows: Rows, count: int) -> Array:
        return (
            np.arange(rows.start or 0, (rows.start or 0) + count)
            if isinstance(rows, slice)
            else rows
        )


class ColumnKinds(Mapping[str, str]):
    """The kinds of columns by their names, in words that are found only when they are needed."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> str:
        return self._columns[name].kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Groups:
    """The rows of each client of a table.

    `clients` are sorted, and `order` and `starts` are as `MemoryTable` says.
    """

    def __init__(self, clients: tuple[str, ...], order: Array | None, starts: Array) -> None:
        self.clients = clients
        self.order = order
        self.starts = starts

    @classmethod
    def of(cls, codes: Array, names: Sequence[str]) -> Groups:
        """Return the groups of rows, of each of which the code is the number of its client's
        name."""
        distinct = sorted(set(names))
        ranks = {name: rank for rank, name in enumerate(distinct)}
        kind = np.uint16 if len(distinct) < 2**16 else np.int64
        rank_of = np.array([ranks[name] for name in names], kind)
        ranked = rank_of[codes]
        order = None
        if len(ranked) and (ranked[1:] < ranked[:-1]).any():
            order = np.argsort(ranked, kind="stable")
        counts = np.bincount(ranked, minlength=len(distinct))
        held = np.flatnonzero(counts)
        clients = tuple(distinct[rank] for rank in held.tolist())
        return cls(clients, order, np.concatenate([[0], np.cumsum(counts[held])]))

    @classmethod
    def one(cls, client: str, rows: int) -> Groups:
        """Return the groups of a table whose rows all belong to one client."""
        return cls((client,), None, np.array([0, rows]))

    def rows(self, number: int) -> Rows:
        """Return the rows of the client of a number."""
        start, end = self.starts[number : number + 2].tolist()
        return slice(start, end) if self.order is None else self.order[start:end]

    def numbers(self, number: int) -> Array:
        """Return the numbers of the rows of the client of a number."""
        start, end = self.starts[number : number + 2].tolist()
        return (
            np.arange(start, end, dtype=np.int64) if self.order is None else self.order[start:end]
        )

    def all_rows(self, count: int) -> Array | None:
        """Return the numbers of the rows of all clients of a table of so many rows; None if they
        are all of it."""
        if self.starts[-1] == count or self.order is None:
            return None
        return self.order[: self.starts[-1]]

    def some(self, numbers: Sequence[int]) -> Groups:
        """Return the groups of the clients of some numbers, in their order."""
        rows = [self.numbers(number) for number in numbers]
        ends = np.cumsum([0, *map(len, rows)])
        clients = tuple(self.clients[number] for number in numbers)
        return Groups(clients, np.concatenate(rows), ends)

    def counts(self) -> Array:
        """Return the number of rows of each client."""
        return np.diff(self.starts)


def is_of(stored: ElementType, dtype: DType) -> bool:
    """Return whether cells of a NumPy type can be elements of `dtype`."""
    if dtype is DType.STRING:
        return stored.kind in "SU"
    return is_convertible(stored, dtype) or stored == dtype.dtype


def text_help(name: str, text: str) -> str:
    """Return the help for a column of text that is to be numbers."""
    try:
        float(text)
    except ValueError:
        return (
            f"text is not read as numbers: number the values of {name!r} in the table, as "
            "Series.astype('category').cat.codes of pandas does"
        )
    return f"text is not read as numbers: convert {name!r} in the table, as pandas.to_numeric does"


def client_codes(column: Column) -> tuple[Array, list[Any]]:
    """Return for each row the number of its client, -1 if it has none, and the clients' names."""
    codes: Array
    names: list[Any]
    if isinstance(column, SeriesColumn):
        codes, names = column.series.factorize()
        return np.asarray(codes), list(names)
    if isinstance(column, ArrowColumn):
        encoded = column.column
        if not hasattr(encoded.type, "index_type"):
            encoded = encoded.dictionary_encode()
        encoded = encoded.unify_dictionaries() if encoded.num_chunks else encoded
        names = encoded.chunk(0).dictionary.to_pylist() if encoded.num_chunks else []
        parts = [np.asarray(part.indices.fill_null(-1)) for part in encoded.chunks]
        return np.concatenate(parts or [np.empty(0, np.int64)]).astype(np.int64), names
    assert isinstance(column, ArrayColumn)
    values = column.values
    gaps = column.take(slice(0, len(values))).gaps
    if values.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in values], np.int64)
        names = list(numbers)
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        names = list(distinct)
    codes = codes.reshape(-1)
    return (codes, names) if gaps is None else (np.where(gaps, -1, codes), names)


def grouped(what: str, column: Column, by: str, rules: Rules) -> Groups:
    """Return the groups of a table's rows by a column of clients.

    Raises:
      DataError: a row has nothing in that column, or there is no row.
    """
    codes, names = client_codes(column)
    texts = [
        name.decode(errors="surrogateescape") if isinstance(name, bytes) else str(name)
        for name in names
    ]
    without = codes < 0
    for number, text in enumerate(texts):
        if not text:
            without |= codes == number
    if without.any():
        raise no_client(f"{what}, row {int(np.argmax(without))}", by, rules.words)
    if not len(codes):
        raise DataError(
            "E640",
            f"{what} is without data: there is no row in it",
            help="give at least one row for each client",
        )
    return Groups.of(codes, texts)


def _with_none(cells: Cells) -> Array:
    """Return cells as an array in which no gap has another value."""
    if cells.gaps is None or cells.values.dtype.kind in "fM":
        return cells.values
    values = cells.values.astype(object)
    values[cells.gaps] = None
    return values


def _some(cells: Cells, chosen: Array) -> Cells:
    """Return the cells where `chosen` is true, as ones without gaps unless there are some."""
    gaps = None if cells.gaps is None else cells.gaps[chosen]
    return Cells(
        cells.values[chosen], gaps if gaps is not None and gaps.any() else None, cells.is_python
    )


def _plain(values: Array, *, with_times: bool) -> tuple[Array, bool]:
    """Return objects as numbers or times if they are, and whether they are Python's; arrays of one
    shape are stacked."""
    items = values.tolist()
    if with_times and items and all(isinstance(item, datetime.date) for item in items):
        return np.array([_in_utc(item) for item in items]), True
    if items and all(map(is_array, items)) and values.ndim == 1:
        arrays: list[Array] = items
        same = {(each.shape, each.dtype) for each in arrays}
        if len(same) == 1 and arrays[0].dtype.kind != "O":
            return np.stack(arrays), False
        return values, False
    try:
        numbers = np.array(items)
    except ValueError:
        numbers = values
    if numbers.dtype.kind not in "biufc" or not items:
        arrays = [np.array(item) if is_listing(item) else item for item in items]
        return _objects_of(arrays), True
    has_own_type = any(isinstance(item, np.generic) for item in items)
    return numbers, not has_own_type


def _in_utc(day: datetime.date) -> np.datetime64:
    """Return a date or time of Python, one with a time zone in UTC, in its own resolution."""
    offset = day.utcoffset() if isinstance(day, datetime.datetime) else None
    local = day.replace(tzinfo=None) if isinstance(day, datetime.datetime) else day
    # Times of pandas are ones of Python with nanoseconds.
    exact = getattr(local, "to_datetime64", None)
    time = np.datetime64(local, "us") if exact is None else exact()
    # Python has no times before the year 1 or after 9999, not even in UTC.
    return time - np.timedelta64(offset or datetime.timedelta(), "us")


def _objects_of(items: Sequence[Any]) -> Array:
    array: Array = np.empty(len(items), object)
    for index, item in enumerate(items):
        array[index] = item
    return array
