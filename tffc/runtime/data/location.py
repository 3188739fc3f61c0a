"""Opening the data set that a text names.

A location is the path of a folder of `.npz` files, an object in a module as `FILE.py:NAME`, or
`SCHEME:REST`, where the rest may end in options as `?NAME=VALUE&NAME=VALUE`.  Values are
percent-encoded where they hold `&`, `?` or `%`.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from tffc.language.types import Type
from tffc.runtime.data.csv_file import CsvFile
from tffc.runtime.data.folder import NpzClients, NpzFolder
from tffc.runtime.data.packed import PackedFolder, is_packed
from tffc.runtime.data.parquet import ParquetFiles
from tffc.runtime.data.python_function import PythonFunction
from tffc.runtime.data.read_once import ReadOnce
from tffc.runtime.data.source import CheckedSource, DataSet, Indexing, no_indexing
from tffc.runtime.data.table import TableClients
from tffc.runtime.data.tfrecord import TfRecordFiles
from tffc.support.errors import DataError
from tffc.support.near import did_you_mean

FILES = frozenset({"links"})
"""The options of data sets that read the files in a folder."""

TABLE = frozenset({"client", "columns", "empty"})
"""The options of tables."""


def _python(rest: str, progress: Indexing) -> PythonFunction:
    return PythonFunction(rest)


SCHEMES: dict[str, tuple[Callable[..., DataSet], frozenset[str]]] = {
    "npz": (NpzFolder, FILES | {"cast", "max-bytes"}),
    "tfrecord": (TfRecordFiles, FILES | TABLE | {"cast", "spec"}),
    "csv": (CsvFile, TABLE | {"delimiter", "max-bytes", "times"}),
    "parquet": (ParquetFiles, FILES | TABLE | {"cast", "max-bytes", "times"}),
    "packed": (PackedFolder, frozenset({"cast"})),
    "python": (_python, frozenset()),
}
"""The function that opens each kind of data set, and the options that it takes."""


VALUES = {"links": "'follow'", "max-bytes": "a positive number"}
"""The values that some options accept, as errors say them."""


def open_data(location: str | os.PathLike[str], progress: Indexing = no_indexing) -> DataSet:
    """Open the data set at a location; all its files are indexed.

    Raises:
      DataError: there is no such data set, or an option is unknown.
    """
    text = os.fspath(location)
    if not text:
        raise DataError(
            "E640", "the place of the clients' data is empty", help="give . for this folder"
        )
    scheme, colon, rest = text.partition(":")
    if scheme.endswith(".py") and rest and not os.path.exists(text):
        return PythonFunction(text)
    if not colon or not scheme.isalpha() or os.path.exists(text):
        opened = PackedFolder if is_packed(text) else NpzFolder
        return opened(text, progress=progress)
    if scheme not in SCHEMES:
        raise DataError(
            "E670",
            f"{text}: there is no kind of data called {scheme!r}",
            help=f"give the path of a folder with .npz files, or one of {', '.join(SCHEMES)} "
            "before the colon",
        )
    opened, options = SCHEMES[scheme]
    path, _, query = rest.partition("?")
    values: dict[str, str] = {}
    for option in filter(None, query.split("&")):
        name, value = _option(option, text, options)
        if name in values:
            raise DataError(
                "E639",
                f"{text}: the option {name!r} is given twice",
                help="leave out one of the two",
            )
        values[name] = value
    arguments = dict(_argument(name, value, text) for name, value in values.items())
    return opened(path, progress=progress, **arguments)


def _argument(name: str, value: str, location: str) -> tuple[str, Any]:
    """Return an option as the name and value of a keyword argument."""
    if name == "links" and value == "follow":
        return "follow_links", True
    if name == "max-bytes" and re.fullmatch("0*[1-9][0-9]{0,17}", value):
        return "max_bytes", int(value)
    if name in VALUES:
        raise DataError(
            "E639", f"{location}: the option {name!r} is {value!r}, expected {VALUES[name]}"
        )
    return name, value


def _option(text: str, location: str, known: frozenset[str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if name not in known or not equals:
        raise DataError(
            "E639",
            f"{location}: {text!r} is not an option",
            help=_options(name, known, bool(equals)),
        )
    return name, urllib.parse.unquote(value)


def _options(name: str, known: frozenset[str], has_value: bool) -> str:
    """Return the help for an unknown option."""
    if not known:
        return "this kind of data takes no options"
    if name in known and not has_value:
        return f"write {name}=VALUE"
    takes = f"this kind of data takes {', '.join(sorted(known))}"
    if name == "cast":
        return f"text is read as the type that the program takes; {takes}"
    near = did_you_mean(name, known)
    return takes if near is None else f"{near} {takes}"


def open_source(
    location: str | os.PathLike[str], type: Type, progress: Indexing = no_indexing
) -> CheckedSource:
    """Open the data set at a location, with clients that each hold a value of `type`.

    Values read from files stay in memory, up to the limit of `ReadOnce`.

    Raises:
      DataError: there is no such data set, or no client in it can hold such a value.
    """
    return read_once(open_data(location, progress).typed(type), type)


def read_once(source: CheckedSource, type: Type) -> CheckedSource:
    """Return the source wrapped in `ReadOnce` if it parses files, otherwise as it is."""
    return ReadOnce(source, type) if isinstance(source, NpzClients | TableClients) else source
