"""Clients' data from Python's objects: `tffc.data`.

    clients             of a table with a column that names each row's client, or of a value each
    split_iid, split_dirichlet, split_shards    clients among whom one table is split
    describe            figures about clients' data

What these return can be given to `tffc.run`, `tffc.verify` and `describe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tffc.api.boundary import public
from tffc.runtime.data import splits
from tffc.runtime.data.clients import Clients as Clients
from tffc.runtime.data.clients import (
    Columns,
    Data,
    clients_by,
    clients_of,
    clients_split,
    data_of,
    label_codes,
    row_count,
    rules_of,
    table_name,
)
from tffc.runtime.data.description import DataFigures
from tffc.runtime.data.description import describe as figures_of
from tffc.support.errors import DataError, LanguageValueError

PerColumn: TypeAlias = "Any | Mapping[str, Any]"
"""A value for all columns, or one for each named column."""


@public
def clients(
    data: Any,
    by: str | None = None,
    *,
    columns: Columns | None = None,
    cast: PerColumn | None = None,
    empty: PerColumn | None = None,
    times: PerColumn | None = None,
) -> Clients:
    """Return clients whose data is in Python's objects.

    With `by`, `data` is a table: a pandas frame, an Arrow table or what exports one, a dataset of
    Hugging Face, or a mapping of names to arrays.  The column `by` names the client of each row;
    integers become decimal text.  Without `by`, `data` is a mapping from clients' names to values,
    a list of values, or a `ClientData` of `tff.simulation.datasets`.

    `columns` names the columns of a table in the order of the tensors in the program's type, or
    maps the tensors' names to columns; several columns in a list are one vector.  `cast`, `empty`
    and `times` are as in a location of `tffc run --data`, for all columns or by column: the type
    that numbers may be rounded to, what stands for a missing value or "skip", and the unit in
    which times are read, such as "days" or "seconds since 2020-01-01".

    Values are read and converted when a client takes part in a round.

    Raises:
      DataError: the table has no such column, or a row without a client.
      LanguageTypeError: the object has no clients.
    """
    what = table_name(data) if by is not None else "data"
    rules = rules_of(what, cast, empty, times)
    if by is not None:
        return clients_by(data, by, columns, rules)
    if columns is not None:
        raise LanguageValueError(
            "E706",
            "columns are chosen of one table with the rows of all clients",
            help="name the column of clients with by=NAME",
        )
    return clients_of(data, rules)


@public
def split_iid(
    data: Any,
    clients: int,
    *,
    seed: int = 0,
    columns: Columns | None = None,
    cast: PerColumn | None = None,
    empty: PerColumn | None = None,
    times: PerColumn | None = None,
) -> Clients:
    """Return clients among whom the rows of a table are split at random, as evenly as possible.

    Tables and options are those of `clients`.  The split depends only on the numbers of rows and
    clients and the seed, on every machine.

    Raises:
      DataError: the table has fewer rows than there are clients.
      LanguageTypeError: the object is not a table.
      LanguageValueError: the number of clients is not positive.
    """
    rows = _rows_for(data, clients)
    rules = rules_of(table_name(data), cast, empty, times)
    split = splits.iid(rows, clients, seed)
    return clients_split(data, split, splits.names_of(clients), columns, rules)


@public
def split_dirichlet(
    data: Any,
    clients: int,
    *,
    label: str,
    alpha: float,
    seed: int = 0,
    least_rows: int = 1,
    columns: Columns | None = None,
    cast: PerColumn | None = None,
    empty: PerColumn | None = None,
    times: PerColumn | None = None,
) -> Clients:
    """Return clients among whom the rows of each label are split with proportions from a Dirichlet
    distribution.

    The smaller `alpha`, the fewer labels a client has; with a large one, the split is nearly
    independent of labels.  A split that leaves a client fewer than `least_rows` rows is drawn
    again; with 0, clients without rows are left out.  Tables and options are those of `clients`.

    Raises:
      DataError: the table has fewer rows than there are clients, a row has no label, or no split
        gives each client enough rows.
      LanguageTypeError: the object is not a table.
      LanguageValueError: the number of clients or `alpha` is not positive.
    """
    _rows_for(data, clients)
    if not 0 < alpha < float("inf"):
        raise LanguageValueError(
            "E706", f"cannot split with alpha={alpha!r}", help="give a positive number"
        )
    rules = rules_of(table_name(data), cast, empty, times)
    split = splits.dirichlet(label_codes(data, label), clients, alpha, seed, least_rows)
    return clients_split(data, split, splits.names_of(clients), columns, rules)


@public
def split_shards(
    data: Any,
    clients: int,
    *,
    label: str,
    shards: int = 2,
    seed: int = 0,
    columns: Columns | None = None,
    cast: PerColumn | None = None,
    empty: PerColumn | None = None,
    times: PerColumn | None = None,
) -> Clients:
    """Return clients that each have some shards of a table's rows, sorted by label.

    This is the split of McMahan et al. 2017: most clients have only as many labels as `shards`.
    Tables and options are those of `clients`.

    Raises:
      DataError: the table has fewer rows than there are shards, or a row has no label.
      LanguageTypeError: the object is not a table.
      LanguageValueError: the number of clients or of shards is not positive.
    """
    _rows_for(data, clients, shards)
    rules = rules_of(table_name(data), cast, empty, times)
    split = splits.shards(label_codes(data, label), clients, shards, seed)
    return clients_split(data, split, splits.names_of(clients), columns, rules)


def _rows_for(data: Any, clients: int, each: int = 1) -> int:
    """Return the number of rows of a table that is split into a number of parts for each client."""
    for number, thing in ((clients, "clients"), (each, "shards")):
        if type(number) is not int or number < 1:
            raise LanguageValueError(
                "E706", f"cannot split among {number!r} {thing}", help="give a positive number"
            )
    rows = row_count(data)
    if rows < clients * each:
        parts = f"{clients} clients" if each == 1 else f"{clients * each} shards"
        raise DataError(
            "E662", f"cannot split {rows} rows among {parts}", help="split among fewer clients"
        )
    return rows


@public
def describe(data: Data) -> DataFigures:
    """Return figures about clients' data: rows, types, gaps, ranges, categories, sizes of clients.

    All of it is read, once.  Printed, the figures are a text.

    Raises:
      DataError: the data cannot be read.
      LanguageTypeError: the object has no clients.
    """
    opened = data_of(data)
    return opened.describe() if isinstance(opened, Clients) else figures_of(opened)
