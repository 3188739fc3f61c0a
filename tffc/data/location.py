"""Opening the data set that a text names.

A location is the path of a folder with `.npz` files, or `SCHEME:REST`, where the rest may end in
options as `?NAME=VALUE&NAME=VALUE`.  Values are percent-encoded where they hold `&`, `?` or `%`.
"""

from __future__ import annotations

import os
import pathlib
import urllib.parse
from collections.abc import Callable

from tffc.data.csv_file import CsvFile
from tffc.data.folder import NpzFolder
from tffc.data.parquet import ParquetFiles
from tffc.data.python_function import PythonFunction
from tffc.data.source import CheckedSource, DataSet
from tffc.data.tfrecord import TfRecordFiles
from tffc.errors import DataError
from tffc.ir.types import Type

SCHEMES: dict[str, tuple[Callable[..., DataSet], frozenset[str]]] = {
    "npz": (lambda rest: NpzFolder(pathlib.Path(rest)), frozenset()),
    "tfrecord": (TfRecordFiles, frozenset({"client", "spec", "columns"})),
    "csv": (CsvFile, frozenset({"client", "columns", "delimiter"})),
    "parquet": (ParquetFiles, frozenset({"client", "columns"})),
    "python": (PythonFunction, frozenset()),
}
"""What opens each kind of data set, and the options that it takes as keyword arguments."""


def open_data(location: str | os.PathLike[str]) -> DataSet:
    """The data set at a location.

    Raises:
      DataError: there is none, or an option is not known.
    """
    text = os.fspath(location)
    scheme, colon, rest = text.partition(":")
    if not colon or not scheme.isalpha() or os.path.exists(text):
        return NpzFolder(pathlib.Path(text))
    if scheme not in SCHEMES:
        raise DataError(
            "E670",
            f"{text}: there is no kind of data called {scheme!r}",
            help=f"give the path of a folder with .npz files, or one of {', '.join(SCHEMES)} "
            "before the colon",
        )
    opened, options = SCHEMES[scheme]
    path, _, query = rest.partition("?")
    given = dict(_option(each, text, options) for each in query.split("&") if each)
    return opened(path, **given)


def _option(text: str, location: str, known: frozenset[str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if name not in known or not equals:
        takes = f"takes {', '.join(sorted(known))}" if known else "takes no options"
        raise DataError(
            "E671",
            f"{location}: {text!r} is no option",
            help=f"this kind of data {takes}",
        )
    return name, urllib.parse.unquote(value)


def open_source(location: str | os.PathLike[str], type: Type) -> CheckedSource:
    """The clients of the data set at a location as holders of values of a type.

    Raises:
      DataError: there is no data set, or no client in it can hold such a value.
    """
    return open_data(location).typed(type)
