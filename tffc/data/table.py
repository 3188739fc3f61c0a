"""Tables: rows with a cell in each column, and the client that each row belongs to.

A client's rows are the elements of every sequence in its value.  A tensor in no sequence is taken
from the one row that the client then has.  Each tensor of the type comes from the column of its
name, as `tffc.data.arrays` names arrays, or from the column that is given for it.  Several numbers
in a cell are the elements of a tensor, row after row.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tffc.data.arrays import Field, Layout
from tffc.data.source import Origin
from tffc.errors import DataError, did_you_mean
from tffc.ir.types import Shape, TensorType, Type

Wanted = tuple[str, TensorType]
"""A column, and the type of the tensors that its cells are."""


class Table(Protocol):
    """Rows in files."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, sorted; each has a row, unless it has a file of its own."""
        ...

    @property
    def location(self) -> str:
        """What the table is called in messages."""
        ...

    @property
    def columns(self) -> Mapping[str, str] | None:
        """The columns and what is known of their cells, in words; None if only rows tell."""
        ...

    def origin(self) -> Origin:
        """Return where the rows come from."""
        ...

    def misfit(self, wanted: Wanted) -> str | None:
        """What all cells of a column are if they can not be tensors of the type."""
        ...

    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """The cells of columns in the rows of a client, as tensors.

        Raises:
          DataError: the rows can not be read, or a cell is no tensor of its type.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class TableClients:
    """The clients of a table, each with a value of one type."""

    table: Table
    layout: Layout
    wanted: tuple[Wanted, ...]

    @classmethod
    def of(cls, table: Table, type: Type, columns: str | None) -> TableClients:
        """The clients of a table; `columns` are those of the type's tensors, with commas between.

        Raises:
          DataError: there is no column for a tensor, or it can not hold such tensors.
        """
        layout = Layout(type)
        names = None if columns is None else columns.split(",")
        if names is not None and len(names) != len(layout.fields):
            raise DataError(
                "E676",
                f"{table.location}: {len(names)} columns are given for the {len(layout.fields)} "
                f"tensors of `{type}`",
            )
        wanted: list[Wanted] = []
        for index, field in enumerate(layout.fields):
            name = _column(table, field) if names is None else names[index]
            _check(table, name, field)
            wanted.append((name, field.type))
        return cls(table, layout, tuple(wanted))

    @property
    def clients(self) -> tuple[str, ...]:
        return self.table.clients

    def origin(self) -> Origin:
        """See `CheckedSource`."""
        return self.table.origin()

    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; the client's rows are read."""
        columns = self._read(client)
        lengths = {
            field.sequence: len(cells)
            for field, cells in zip(self.layout.fields, columns, strict=True)
            if field.sequence is not None
        }
        return tuple(lengths.values())

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        columns = self._read(client)
        return self.layout.assemble(
            cells[0] if field.sequence is None else cells
            for field, cells in zip(self.layout.fields, columns, strict=True)
        )

    def _read(self, client: str) -> Sequence[Sequence[Any]]:
        columns = self.table.read(client, self.wanted)
        for (name, type), field, cells in zip(
            self.wanted, self.layout.fields, columns, strict=True
        ):
            if field.sequence is None and len(cells) != 1:
                raise DataError(
                    "E678",
                    f"{self.table.location}: client {client} has {len(cells)} rows, and {name!r} "
                    f"is one `{type}`, for which a client has one row",
                )
        return columns


def _column(table: Table, field: Field) -> str:
    """The column of a tensor by its name."""
    known = table.columns
    return next((name for name in field.names() if known and name in known), field.name)


def _check(table: Table, name: str, field: Field) -> None:
    """Checks what can be known of a column without reading rows."""
    if (field.type.shape or ()).count(None) > 1:
        raise DataError(
            "E693",
            f"{table.location}: the column {name!r} can not hold `{field.type}`, for only one "
            "size may be unknown",
        )
    if table.columns is not None and name not in table.columns:
        raise DataError(
            "E675",
            f"{table.location}: there is no column {name!r}, expected {field.type}",
            notes=(f"the columns are {', '.join(map(repr, table.columns))}",),
            help=_with_nearest(
                "name the columns in the order of the tensors, with columns=A,B",
                name,
                table.columns,
            ),
        )
    found = table.misfit((name, field.type))
    if found is not None:
        raise DataError(
            "E682",
            f"{table.location}: the column {name!r} is {found}, expected {field.type}",
        )


def shaped(values: np.ndarray[Any, Any], shape: Shape) -> Any:
    """The tensor of a shape with these elements, or None where their number is another.

    At most one size of the shape is unknown.
    """
    if shape is None:
        return values
    known = math.prod(size for size in shape if size is not None)
    if None not in shape:
        # NumPy's stubs do not know that an array is given.
        return values.reshape(shape)[()] if values.size == known else None  # pyright: ignore
    if known == 0 or values.size % known:
        return None
    return values.reshape([-1 if size is None else size for size in shape])


def cell_error(place: str, client: str, wanted: Wanted, found: str) -> DataError:
    """The error about a cell that is no tensor of its type; `place` says in which row."""
    name, type = wanted
    return DataError(
        "E677", f"{place}: client {client}: the cell of {name!r} is {found}, expected {type}"
    )


def no_client(place: str, column: str) -> DataError:
    """The error about a row that belongs to no client."""
    return DataError("E694", f"{place}: the row has nothing in the column of clients, {column!r}")


def check_names(location: str, names: Sequence[str]) -> None:
    """Checks that no two columns have one name.

    Raises:
      DataError: some have.
    """
    for name, count in collections.Counter(names).items():
        if count > 1:
            raise DataError(
                "E633",
                f"{location}: {count} columns are called {name!r}, expected one of each name",
            )


def check_client_column(location: str, column: str, known: Sequence[str]) -> None:
    """Checks that there is a column of clients.

    Raises:
      DataError: there is none of that name.
    """
    if column not in known:
        raise DataError(
            "E672",
            f"{location}: there is no column {column!r} that says which client a row belongs to",
            notes=(f"the columns are {', '.join(map(repr, known)) or 'none'}",),
            help=_with_nearest("name it with client=NAME", column, known),
        )


def _with_nearest(help: str, name: str, known: Iterable[str]) -> str:
    """The help, and the name that was probably meant before it."""
    near = did_you_mean(name, known)
    return help if near is None else f"{near} {help}"


def check_clients(location: str, clients: Sequence[str]) -> None:
    """Checks that a table is not empty.

    Raises:
      DataError: it is.
    """
    if not clients:
        raise DataError("E674", f"{location} is without data: there is no row in it")
