"""Tables: rows with a cell in each column, each row belonging to one client.

A client's rows are the elements of every sequence in its value.  A tensor that is not in a sequence
is taken from the client's one row.  Each tensor of the type comes from the column of its name (see
`tffc.runtime.data.arrays`), or from the column that is given for it.  Several numbers in a cell are
the elements of a tensor in row-major order.
"""

from __future__ import annotations

import array
import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tffc.language.types import TensorType, Type
from tffc.runtime.data.arrays import ArrayLayout, Field
from tffc.runtime.data.cells import SKIP, Rules, Wanted
from tffc.runtime.data.files import files_size
from tffc.runtime.data.source import Origin, TypedClients
from tffc.runtime.data.wording import LOCATION, Wording
from tffc.support.errors import DataError, reader
from tffc.support.guards import is_listing
from tffc.support.near import did_you_mean, near_names

CLIENT_COLUMN = "client"
"""The column of clients unless another is named."""


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The names of all columns of a table, and which are data: `columns` has those that the user
    named, by the tensors' names, and `by` is the column of clients."""

    names: tuple[str, ...]
    columns: Mapping[str, Any] | None = None
    by: str | None = None


class Table:
    """Rows in files, grouped by client: the base of all kinds of tables.

    `chosen` are the columns for a type's tensors, if given.  `columns` are all columns with a
    description of their cells; None if that takes reading rows.
    """

    clients: tuple[str, ...]
    kind: ClassVar[str]
    """The scheme in locations of this kind of data."""

    columns: Mapping[str, str] | None
    files: Sequence[str]
    """The paths of the files."""

    drops_rows: ClassVar[bool] = False

    selection: ColumnChoice | None = None
    """How the columns were chosen of a table of the user's; None if they are all that there are."""

    def __init__(self, location: str, chosen: str | Sequence[str] | None, rules: Rules) -> None:
        self.location = location
        self.chosen = chosen.split(",") if isinstance(chosen, str) else chosen
        self.rules = rules
        self.options: dict[str, str | None] = {}

    def _hold(self, index: RowIndex) -> None:
        """Take over the index of the rows.

        Raises:
          DataError: there is no row.
        """
        self.index = index
        self.clients = index.clients()
        if not self.clients:
            raise DataError(
                "E640",
                f"{self.location} is without data: there is no row in it",
                help="write at least one row for each client, below the names of the columns",
            )

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        assert self.columns is not None
        return self.columns

    def origin(self) -> Origin:
        """See `DataSet`."""
        return Origin(self.kind, self.options, self.files)

    def typed(self, type: Type) -> TableClients:
        """See `DataSet`."""
        return TableClients.of(self, type)

    def misfit(self, name: str, type: TensorType) -> tuple[str, str] | None:
        """If no cell of a column can be a tensor of the type, return what the cells are and what to
        do."""
        return None

    def size(self) -> int | None:
        """See `ScannedData`."""
        return files_size(self.files)

    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """Return the cells of columns in the rows of a client, as tensors or `SKIP`, or without
        the rows that are to be skipped if the table `drops_rows`.

        Raises:
          DataError: the rows cannot be read, or a cell is not a tensor of its type.
        """
        raise NotImplementedError


class RowIndex:
    """The places of each client's rows, as runs of consecutive rows.

    A run is `width` numbers; the last one is its end.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._runs: dict[str, array.array[int]] = {}
        self._last: array.array[int] | None = None

    def add(self, client: str, *run: int) -> None:
        """Add a row; it extends the last run if that is of the same client."""
        runs = self._runs.setdefault(client, array.array("q"))
        if runs is self._last:
            runs[-1] = run[-1]
        else:
            runs.extend(run)
        self._last = runs

    def end_run(self) -> None:
        """Begin a new run with the next row, even if it is of the same client."""
        self._last = None

    def clients(self) -> tuple[str, ...]:
        """Return the clients that have rows, sorted."""
        return tuple(sorted(self._runs))

    def runs(self, client: str) -> Iterator[tuple[int, ...]]:
        """Return the runs of a client."""
        runs = self._runs[client]
        return zip(*(runs[at :: self._width] for at in range(self._width)), strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class TableClients(TypedClients[Table]):
    """The clients of a table, each with a value of one type."""

    layout: ArrayLayout
    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, table: Table, type: Type) -> TableClients:
        """Return the clients of a table.

        Raises:
          DataError: there is no column for a tensor, or it cannot hold such tensors, or a rule is
            about a column that is not needed or does not fit it.
        """
        layout = ArrayLayout(type)
        names = table.chosen
        if names is not None and len(names) != len(layout.fields):
            raise DataError(
                "E622",
                f"{table.location}: {len(names)} columns are given for the {len(layout.fields)} "
                f"tensors of `{type}`",
                help="name one column for each tensor, in the order of the type"
                + ("" if table.rules.words.is_python else "; a name cannot have a comma"),
            )
        if names is None:
            names = _columns(table, layout.fields)
        else:
            _check_columns(table, names)
        wanted = [(name, field.type) for name, field in zip(names, layout.fields, strict=True)]
        for name, kind in wanted:
            _check(table, name, kind)
        return cls(table, layout, tuple(table.rules.apply(table.location, wanted)))

    @reader("a table of clients", DataError)
    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; reads the client's rows."""
        columns = self._read(client)
        lengths = {
            field.sequence: len(cells)
            for field, cells in zip(self.layout.fields, columns, strict=True)
            if field.sequence is not None
        }
        return tuple(lengths.values())

    @reader("a table of clients", DataError)
    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        columns = self._read(client)
        return self.layout.assemble(
            cells[0] if field.sequence is None else cells
            for field, cells in zip(self.layout.fields, columns, strict=True)
        )

    def _read(self, client: str) -> Sequence[Sequence[Any]]:
        columns = self.data.read(client, self.wanted)
        if not self.data.drops_rows and any(column.empty is SKIP for column in self.wanted):
            columns = _without_skipped(columns)
        for column, field, cells in zip(self.wanted, self.layout.fields, columns, strict=True):
            if field.sequence is None and len(cells) != 1:
                raise DataError(
                    "E620",
                    f"{self.data.location}: client {client} has {len(cells)} rows, and "
                    f"{column.name!r} is one `{column.type}`, for which a client has one row",
                    help="let the program take a sequence, or write one row for each client",
                )
        return columns


def _columns(table: Table, fields: Sequence[Field]) -> Sequence[str]:
    """Return the column of each tensor, found by name.

    Raises:
      DataError: a tensor has no column.
    """
    known = table.columns
    if known is None:
        return [field.name for field in fields]
    names = [next((name for name in field.names() if name in known), None) for field in fields]
    if None in names:
        raise _NoColumn(table, known, fields, names).error()
    return [name for name in names if name is not None]


MOST_ENTRIES = 6
"""The most entries of `columns=` that a help writes out."""


class _NoColumn:
    """Says which tensors have no column, of columns that are known, and what to do."""

    def __init__(
        self,
        table: Table,
        known: Iterable[str],
        fields: Sequence[Field],
        names: Sequence[str | None],
    ) -> None:
        self._table, self._known = table, list(known)
        self._words, self._selection = table.rules.words, table.selection
        self._fields, self._names = fields, names
        self._whole = self._known if self._selection is None else list(self._selection.names)
        self._missing = [f for f, name in zip(fields, names, strict=True) if name is None]

    def error(self) -> DataError:
        """Return the error."""
        first = self._missing[0]
        own = next((name for name in first.names() if name in self._whole), None)
        selection = self._selection
        what = f"there is no column {first.name!r}"
        if selection is not None and own is not None and own == selection.by:
            what = f"the column {own!r} names the clients with by=, and is not among their data"
        elif own is not None:
            what = f"columns= leaves out the column {own!r}"
        elif selection is not None and selection.columns is not None:
            what = f"columns= has no column for {first.name!r}"
        others = ", ".join(repr(field.name) for field in self._missing[1:])
        return DataError(
            "E622",
            f"{self._table.location}: {what}, expected {first.type}",
            notes=(
                f"the columns are {', '.join(map(repr, self._whole)) or 'none'}",
                *([f"there is none for {others} either"] if others else []),
            ),
            help=self._help(),
        )

    def _help(self) -> str:
        likely = self._likely()
        unknown = [field for field in self._missing if not likely[field.name]]
        names = ", ".join(repr(field.name) for field in unknown)
        if self._words.is_python and self._selection is None:
            named = [(tensor, name) for tensor, name in likely.items() if name]
            advice = [f"give {name!r} the name {tensor!r}" for tensor, name in named]
            return ", and ".join([*advice, *([f"give each client {names}"] if unknown else [])])
        fitting = list(dict.fromkeys(name for f in unknown for name in self._fitting(f, likely)))
        if len(unknown) == len(fitting) == 1:
            likely[unknown[0].name] = fitting[0]
        elif len(unknown) > len(fitting):
            return f"add {names} to the table, for it has no other columns that can be taken"
        option = self._option(likely)
        among = (
            ""
            if all(likely.values())
            else ", with COLUMN one of " + (", ".join(map(repr, fitting)))
        )
        return f"say which columns to take: {option}{among}"

    def _fitting(self, field: Field, likely: Mapping[str, str]) -> list[str]:
        """Return the columns that stand for no tensor and may be one of the field's type."""
        return [
            name
            for name in self._free(likely)
            if name not in self._known or self._table.misfit(name, field.type) is None
        ]

    def _likely(self) -> dict[str, str]:
        """Return the columns that were probably meant for the tensors without one, as far as they
        are known, else an empty text."""
        likely: dict[str, str] = {}
        for field in self._missing:
            free = self._free(likely)
            own = next((name for name in field.names() if name in self._whole), None)
            near = near_names(field.name, free)
            likely[field.name] = own or next(iter(near), "")
        return likely

    def _free(self, likely: Mapping[str, str]) -> list[str]:
        """Return the columns that stand for no tensor."""
        by = None if self._selection is None else self._selection.by
        taken: set[Any] = {by, *likely.values()}
        for column in map(self._column_of, self._fields, self._names):
            taken.update(column if is_listing(column) else [column])
        return [name for name in self._whole if name not in taken]

    def _column_of(self, field: Field, name: str | None) -> Any:
        """Return the column that the user gave for a tensor; None if it has none."""
        chosen = None if self._selection is None else self._selection.columns
        return name if chosen is None or name is None else chosen.get(name, name)

    def _option(self, likely: Mapping[str, str]) -> str:
        """Return the option that takes the columns that are likely, and COLUMN for the others."""
        entries = {
            field.name: self._column_of(field, name) if name else likely[field.name]
            for field, name in zip(self._fields, self._names, strict=True)
        }
        if not self._words.is_python:
            return self._words.columns([name or "COLUMN" for name in entries.values()])
        if len(entries) > MOST_ENTRIES:
            entries = {tensor: entries[tensor] for tensor in likely}
        shown = [f"{tensor!r}: {repr(v) if v else 'COLUMN'}" for tensor, v in entries.items()]
        if len(entries) < len(self._fields):
            return f"columns={{{', '.join(shown)}, ...}} with an entry for each tensor"
        return f"columns={{{', '.join(shown)}}}"


def _check_columns(table: Table, names: Sequence[str]) -> None:
    """Check that a table has these columns.

    Raises:
      DataError: one is missing.
    """
    for name in names:
        if table.columns is not None and name not in table.columns:
            raise DataError(
                "E657",
                f"{table.location}: columns= names {name!r}, and there is no such column",
                notes=(f"the columns are {', '.join(map(repr, table.columns))}",),
                help=did_you_mean(name, table.columns) or "name columns of the table",
            )


def _without_skipped(columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return the columns without the rows in which a cell is `SKIP`."""
    skipped = [any(cell is SKIP for cell in row) for row in zip(*columns, strict=True)]
    return [
        [cell for cell, skip in zip(cells, skipped, strict=True) if not skip] for cells in columns
    ]


def _check(table: Table, name: str, type: TensorType) -> None:
    """Check what can be known of a column without reading rows."""
    if (type.shape or ()).count(None) > 1:
        raise DataError(
            "E624",
            f"{table.location}: the column {name!r} cannot hold `{type}`, for only one "
            "size may be unknown",
            help="declare all sizes of the tensor but one",
        )
    misfit = table.misfit(name, type)
    if misfit is not None:
        cells, help = misfit
        raise DataError(
            "E620",
            f"{table.location}: the column {name!r} is {cells}, expected {type}",
            help=help,
        )


def no_client(place: str, column: str, words: Wording = LOCATION) -> DataError:
    """Return the error for a row that belongs to no client."""
    return DataError(
        "E694",
        f"{place}: the row has nothing in the column of clients, {column!r}",
        help=f"write the client's name there, or name another column with {words.client()}",
    )


def check_names(location: str, names: Sequence[str]) -> None:
    """Check that column names are distinct.

    Raises:
      DataError: they are not.
    """
    for name, count in collections.Counter(names).items():
        if count > 1:
            raise DataError(
                "E623",
                f"{location}: {count} columns are called {name!r}, expected one of each name",
                help="give all but one of them other names",
            )


def check_client_column(
    location: str, column: str, known: Sequence[str], words: Wording = LOCATION
) -> None:
    """Check that the column of clients exists.

    Raises:
      DataError: it does not.
    """
    if column not in known:
        likely = known
        if column == CLIENT_COLUMN:  # the default, which the user need not have written
            likely = [name for name in known if CLIENT_COLUMN in name.lower()]
        raise DataError(
            "E657",
            f"{location}: there is no column {column!r} that says which client a row belongs to",
            notes=(f"the columns are {', '.join(map(repr, known)) or 'none'}",),
            help=_cells_apart(column, known)
            or " ".join(
                filter(None, (did_you_mean(column, likely), f"name it with {words.client()}"))
            ),
        )


def _cells_apart(column: str, known: Sequence[str]) -> str | None:
    """Return the help for a header that seems to be separated by another character than
    expected."""
    for between, option in ((";", ";"), ("\t", "%09"), ("|", "|")):
        parts = [part for name in known for part in name.split(between)]
        if len(known) == 1 and len(parts) > 1 and (column in parts or column == CLIENT_COLUMN):
            return f"the names have {between!r} between them: add delimiter={option}"
    return None
