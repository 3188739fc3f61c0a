"""Clients' data from Python's objects, as `tffc.data` returns it and `tffc.run` takes it."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from tffc.language.types import Type
from tffc.runtime.data.casts import Casts
from tffc.runtime.data.cells import Rules
from tffc.runtime.data.columns import Column, JoinedColumn, columns_of
from tffc.runtime.data.description import DataFigures, describe
from tffc.runtime.data.groups import ValuesInMemory
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.memory import Groups, MemoryTable, client_codes, grouped
from tffc.runtime.data.python_function import (
    ClientData,
    ListedValues,
    PythonValues,
    RenamedValues,
    is_client_data,
)
from tffc.runtime.data.read_once import ReadOnce
from tffc.runtime.data.source import CheckedSource, ClientSource, DataSet, Origin, check_all
from tffc.runtime.data.splits import among as split_clients
from tffc.runtime.data.table import ColumnChoice, check_client_column
from tffc.runtime.data.times import parse_times
from tffc.runtime.data.wording import PYTHON
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import DataError, LanguageTypeError, LanguageValueError
from tffc.support.guards import Array, is_listing, is_mapping, is_path, is_scalar, is_sequence
from tffc.support.near import did_you_mean
from tffc.support.printable import counted

Columns: TypeAlias = "Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]]"
"""Columns in the order of a type's tensors, or by the tensors' names; several together are a
vector."""


MOST_SHOWN = 10
"""The most clients that an error lists."""

ClientValues: TypeAlias = "Sequence[Any] | Mapping[Any, Any] | ClientData"

Data: TypeAlias = "ClientSource | DataSet | str | os.PathLike[str] | ClientValues"
"""Clients' data: what `clients` and the splits return, a location as for `tffc run --data`, a list
or mapping with a value for each client, a `ClientData`, or a source."""


class Clients:
    """Clients with their data, whose values are read when they take part in a round.

    It has a length, and iterates over the clients' names.  `clients["ada"]` is the data of a
    client, `clients[["ada", "bob"]]` has only those clients, and `split` holds some of them out.
    """

    def __init__(self, data: MemoryTable | PythonValues) -> None:
        self._data = data

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, sorted."""
        return self._data.clients

    def __len__(self) -> int:
        return len(self.clients)

    def __iter__(self) -> Iterator[str]:
        return iter(self.clients)

    def __contains__(self, name: object) -> bool:
        return _name(name) in self.clients

    @entry_point
    def __getitem__(self, name: Any) -> Any:
        """Return the data of a client: of a table, its rows as a dictionary of arrays, in which
        None stands for a gap that an array has no value for.  With a list or tuple of names, return
        `Clients` that are only those.

        Raises:
          DataError: there is no client of such a name.
        """
        if is_listing(name):
            return Clients(self._data.selected(self._known(name)))
        (client,) = self._known([name])
        return self._data.natural(client)

    @entry_point
    def split(self, share: float, *, seed: int = 0) -> tuple[Clients, Clients]:
        """Return a share of the clients, and the others, such as those that are held out.

        Who is among them depends on the seed, the share and the number of clients alone.  Each part
        has at least one client.

        Raises:
          DataError: there is only one client.
          LanguageValueError: the share is not between 0 and 1.
        """
        if not isinstance(cast("object", share), (int, float, np.floating)) or not 0 < share < 1:
            raise LanguageValueError(
                "E706",
                f"cannot split with the share {share!r}",
                help="give a number between 0 and 1: clients.split(0.8) returns 80 percent of the "
                "clients, and the others",
            )
        count = len(self)
        if count < 2:
            raise DataError(
                "E662",
                f"cannot split {counted(count, 'client')} into two parts",
                help="give at least two clients",
            )
        first = min(max(round(share * count), 1), count - 1)
        drawn = split_clients(count, first, seed)
        names = [
            [n for n, d in zip(self.clients, drawn, strict=True) if d == part]
            for part in (True, False)
        ]
        return self[names[0]], self[names[1]]

    def _known(self, names: Sequence[Any]) -> list[str]:
        """Return the names of clients, each once."""
        texts = list(dict.fromkeys(map(_name, names)))
        known = frozenset(self.clients)
        for text in texts:
            if text not in known:
                near = did_you_mean(str(text), self.clients)
                shown = ", ".join(map(repr, self.clients[:MOST_SHOWN]))
                more = ", ..." if len(known) > MOST_SHOWN else ""
                raise DataError(
                    "E689",
                    f"there is no client {text!r}",
                    help=near or f"the clients are {shown}{more}",
                )
        if not texts:
            raise DataError("E689", "no client is named", help="name at least one client")
        return texts

    def __repr__(self) -> str:
        return f"<{len(self)} clients: {', '.join(f'{n} {k}' for n, k in self.kinds().items())}>"

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        return self._data.kinds()

    def describe(self) -> DataFigures:
        """Return figures about the data, all of which is read; printed, they are a text."""
        return describe(self._data)

    def origin(self) -> Origin:
        """See `DataSet`; it is in no file."""
        return self._data.origin()

    def typed(self, type: Type) -> CheckedSource:
        """See `DataSet`."""
        source = self._data.typed(type)
        if isinstance(self._data, PythonValues) and self._data.is_fixed:
            return ReadOnce(source, type)
        return source


def rules_of(what: str, casts: Any, empty: Any, times: Any) -> Rules:
    """Return the rules that keywords of Python give.

    Raises:
      DataError: a value is not one of those that its keyword takes.
    """
    types = [(name, _type_name(value)) for name, value in _by_column(casts)]
    texts = [(name, _text(value)) for name, value in _by_column(empty)]
    units = [(name, str(value)) for name, value in _by_column(times)]
    return Rules(
        Casts.of(what, types, None if casts is None else str(casts), PYTHON),
        None if empty is None else str(empty),
        dict(texts),
        parse_times(what, units, PYTHON),
    )


def _by_column(value: Any) -> list[tuple[str | None, Any]]:
    if value is None:
        return []
    return [(str(n), v) for n, v in value.items()] if is_mapping(value) else [(None, value)]


def _type_name(value: Any) -> str:
    """Return the name of an element type, as text or as NumPy's or TensorFlow's object."""
    if isinstance(value, str):
        return value
    try:
        return np.dtype(value).name
    except TypeError:
        return str(value)


def _text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    return str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns of a table as they are chosen and named, and their order if it matters."""

    columns: Mapping[str, Column]
    order: Sequence[str] | None
    selection: ColumnChoice


def table_of(what: str, data: Any, by: str | None, columns: Columns | None) -> ChosenColumns:
    """Return the columns of a table.

    Raises:
      DataError: columns have the same name, other lengths, or are not there.
      LanguageTypeError: the object is not a table.
    """
    held = columns_of(data)
    if held is None:
        raise LanguageTypeError(
            "E714",
            f"a table cannot be an object of class {data.__class__.__name__!r}",
            help="give a data frame, an Arrow table, a dataset, or a mapping of names to arrays",
        )
    check_lengths(what, held)
    if by is not None:
        check_client_column(what, by, list(held), PYTHON)
    names = tuple(held)
    if columns is None:
        data_columns = {name: column for name, column in held.items() if name != by}
        return ChosenColumns(data_columns, None, ColumnChoice(names, by=by))
    if is_mapping(columns):
        named = {str(name): chosen for name, chosen in columns.items()}
        chosen_columns = {name: _chosen(what, held, chosen) for name, chosen in named.items()}
        return ChosenColumns(chosen_columns, None, ColumnChoice(names, named, by))
    chosen_columns: dict[str, Column] = {}
    order: list[str] = []
    for chosen in [columns] if isinstance(columns, str) else columns:
        name = chosen if isinstance(chosen, str) else ", ".join(map(str, chosen))
        chosen_columns[name] = _chosen(what, held, chosen)
        order.append(name)
    return ChosenColumns(chosen_columns, order, ColumnChoice(names, by=by))


def _chosen(
    what: str, held: Mapping[str, Column], chosen: Any, argument: str = "columns"
) -> Column:
    """Return the column that an argument names, or several as one."""
    names = [str(name) for name in chosen] if is_listing(chosen) else [str(chosen)]
    is_listed = argument == "columns"
    help = "name columns of the table" if is_listed else f"name one of these with {argument}=NAME"
    for name in names:
        if name not in held:
            raise DataError(
                "E657",
                f"{what}: {argument}= names {name!r}, and there is no such column",
                notes=(f"the columns are {', '.join(map(repr, held))}",),
                help=did_you_mean(name, held) or help,
            )
    if not is_listing(chosen):
        return held[names[0]]
    return JoinedColumn(tuple(names), tuple(held[name] for name in names))


def check_lengths(what: str, columns: Mapping[str, Column]) -> None:
    """Check that columns have the same number of rows.

    Raises:
      DataError: they do not.
    """
    first = next(iter(columns), "")
    for name, column in columns.items():
        if len(column) != len(columns[first]):
            raise DataError(
                "E620",
                f"{what}: the array {name!r} has {len(column)} elements and {first!r} has "
                f"{len(columns[first])}, expected the same number in all arrays of a sequence",
            )


def clients_by(data: Any, by: str, columns: Columns | None, rules: Rules) -> Clients:
    """Return the clients of a table, named in its column `by`.

    Raises:
      DataError: a row has no client, or the columns are not there.
      LanguageTypeError: the object is not a table.
    """
    what = table_name(data)
    chosen = table_of(what, data, by, columns)
    groups = grouped(what, (columns_of(data) or {})[by], by, rules)
    return Clients(MemoryTable(what, chosen.columns, groups, chosen.order, rules, chosen.selection))


def clients_split(
    data: Any, split: Array, names: Sequence[str], columns: Columns | None, rules: Rules
) -> Clients:
    """Return the clients among whom the rows of a table are split; `split` has each row's
    number."""
    what = table_name(data)
    chosen = table_of(what, data, None, columns)
    groups = Groups.of(split, names)
    return Clients(MemoryTable(what, chosen.columns, groups, chosen.order, rules, chosen.selection))


def row_count(data: Any) -> int:
    """Return the number of rows of a table.

    Raises:
      DataError: there is none, or columns have other lengths.
      LanguageTypeError: the object is not a table.
    """
    what = table_name(data)
    held = table_of(what, data, None, None).columns
    count = len(next(iter(held.values()))) if held else 0
    if not count:
        raise DataError(
            "E640",
            f"{what} is without data: there is no row in it",
            help="give a table with rows",
        )
    return count


def label_codes(data: Any, label: str) -> Array:
    """Return the number of each row's label; labels are numbered as they are sorted.

    Raises:
      DataError: there is no such column, or a row has no label.
      LanguageTypeError: the object is not a table.
    """
    what = table_name(data)
    column = _chosen(what, table_of(what, data, None, None).columns, label, "label")
    codes, labels = client_codes(column)
    if (codes < 0).any():
        raise DataError(
            "E694",
            f"{what}, row {int(np.argmax(codes < 0))}: the row has nothing in the column of "
            f"labels, {label!r}",
            help="leave out rows without a label, or give them one",
        )
    # Not as they come, which would differ between a frame and the same rows in an array.
    ranks = {name: rank for rank, name in enumerate(sorted(labels, key=_sort_key))}
    return np.array([ranks[name] for name in labels], np.int64)[codes]


def _sort_key(label: Any) -> tuple[str, Any]:
    if isinstance(label, (bool, int, float)) or (is_scalar(label) and label.dtype.kind in "biuf"):
        return "", float(cast("float", label))
    return type(label).__name__, label


def table_name(data: Any) -> str:
    """Return what errors call a table."""
    package = type(data).__module__.partition(".")[0]
    names = {"pandas": "the data frame", "pyarrow": "the Arrow table", "datasets": "the dataset"}
    return names.get(package, "the arrays" if is_mapping(data) else "the table")


def clients_of(data: Any, rules: Rules, what: str = "data") -> Clients:
    """Return the clients of a mapping or list of values, or of a `ClientData`.

    Raises:
      DataError: there are none, or two have the same name.
      LanguageTypeError: the object has no clients.
    """
    if is_client_data(data):
        return Clients(PythonValues(what, data, rules))
    if is_mapping(data):
        return Clients(PythonValues(what, _named(what, data), rules))
    if is_sequence(data) and not isinstance(data, (str, bytes)):
        return Clients(PythonValues(what, ListedValues(data), rules))
    raise LanguageTypeError(
        "E714",
        f"clients' data cannot be an object of class {data.__class__.__name__!r}",
        help=_help_for_tables(data)
        or "give a path, a list with the value of each client, a ClientData, or a source",
    )


def _help_for_tables(data: Any) -> str | None:
    """Return the help for one table in the place of clients; None if the object is not one."""
    package = type(data).__module__.partition(".")[0]
    if package == "pandas" and hasattr(data, "obj") and hasattr(data, "groups"):
        keys = getattr(data, "keys", None)
        by = repr(keys) if isinstance(keys, str) else "NAME"
        return f"give the frame and its column of clients: tffc.data.clients(frame, by={by})"
    columns = columns_of(data)
    if columns is None:
        return None
    names = ", ".join(map(repr, columns))
    return (
        "name the column that says which client a row belongs to: "
        f"tffc.data.clients(frame, by=NAME), with one of {names} for NAME; without such a column, "
        "tffc.data.split_iid(frame, 10) splits the rows among clients"
    )


def _name(name: Any) -> Any:
    """Return the name of a client as it is held: an integer as its digits."""
    return str(name) if _is_integer(name) else name


def _is_integer(name: object) -> bool:
    is_number = is_scalar(name) and name.dtype.kind in "iu"
    return is_number or (isinstance(name, int) and not isinstance(name, bool))


def _named(what: str, data: Mapping[object, object]) -> Mapping[Any, object]:
    """Return a mapping with the names of clients that are integers as decimal text."""
    if not any(map(_is_integer, data)):
        return data
    named = {str(name) if _is_integer(name) else name: name for name in data}
    if len(named) < len(data):
        texts = collections.Counter(map(str, data))
        twice = next(name for name, count in texts.items() if count > 1)
        raise DataError(
            "E689",
            f"{what} has two clients called {twice!r}, for integers count as their digits",
            help="give clients different names",
        )
    return RenamedValues(data, named)


def data_of(data: Any) -> DataSet:
    """Return the clients of a location, of what `clients` takes, or of what it returns.

    Raises:
      DataError: there are no clients.
      LanguageTypeError: the object has none.
    """
    if is_path(data):
        return open_data(data)
    if hasattr(data, "typed") and hasattr(data, "kinds"):
        return data
    return clients_of(data, rules_of("data", None, None, None))


def source_of(data: Any, type: Type) -> ClientSource:
    """Return clients' data as a source of values of a type; files are checked.

    Raises:
      DataError: it cannot be read, or does not fit.
      LanguageTypeError: the object has no clients.
    """
    if is_path(data):
        source = open_source(data, type)
        check_all(source)
        return source
    if hasattr(data, "clients") and hasattr(data, "read"):
        return data
    if is_sequence(data) and not data:
        return ValuesInMemory(type, ())
    return data_of(data).typed(type)
