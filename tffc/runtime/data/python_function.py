"""Clients that a Python function or object of the user's returns.

A function takes no argument and returns a mapping from clients' names to values, or to functions of
no argument that return the value whenever it is needed.  A value is any Python object that can be
converted to the program's type: numbers, arrays, containers, and a list or `tf.data.Dataset` for a
sequence.

A `ClientData` of `tff.simulation.datasets`, given itself or returned by a function, has a dataset
for each client.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol, TypeGuard, TypeVar, cast

from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, Type
from tffc.language.values.concrete import flatten
from tffc.language.values.misfits import describe
from tffc.runtime.data.cells import NO_RULES, Rules
from tffc.runtime.data.columns import Cells, Column, array_column, columns_of, equal_lengths
from tffc.runtime.data.natural import NaturalValues, dataset_help
from tffc.runtime.data.source import Origin, TypedClients
from tffc.runtime.user_code.modules import find_attribute, import_source, split_target
from tffc.runtime.user_code.own_modules import namespace
from tffc.runtime.user_code.source import is_defect, keep_users_frames, original_words
from tffc.support.errors import DataError, LanguageTypeError
from tffc.support.guards import Array, is_mapping
from tffc.support.near import did_you_mean

T = TypeVar("T")


class PythonValues:
    """The clients of a mapping or of a `ClientData`; `what` names it in messages.

    Raises:
      DataError: there are no clients, or the name of one is not a string.
    """

    def __init__(self, what: str, values: Any, rules: Rules = NO_RULES) -> None:
        self.target = what
        self.rules = rules
        is_data = _call(lambda: is_client_data(values), f"the clients of {what}")
        clients = _ClientDatasets(values) if is_data else values
        names = _call(lambda: _names(clients), f"the clients of {what}")
        if not names:
            raise DataError(
                "E689",
                f"{what} gives {_described(values, what)}, "
                "expected a mapping with a value for each client",
            )
        for client in names:
            if not isinstance(client, str):
                raise DataError(
                    "E689",
                    f"{what} gives a client {_described(client, what)}, "
                    "expected names that are strings",
                )
            if not _can_be_encoded(client):
                raise DataError(
                    "E689",
                    f"{what} gives a client {client!r}, which cannot be written in UTF-8",
                    help="give clients names without halves of surrogate pairs",
                )
        self.clients = tuple(sorted(names))
        self._values = clients
        self._is_client_data = is_data

    def selected(self, clients: Sequence[str]) -> PythonValues:
        """Return only some of the clients."""
        values = RenamedValues(self._values, {client: client for client in sorted(clients)})
        chosen = PythonValues(self.target, values, self.rules)
        chosen._is_client_data = self._is_client_data
        return chosen

    def natural(self, client: str) -> Any:
        """Return the object of a client."""
        return self.value(client)

    @property
    def is_fixed(self) -> bool:
        """Whether reading a client again gives the same: not where it is a dataset or a
        function."""
        values: Any = self._values
        while isinstance(values, RenamedValues):
            values = values.values_by_name
        if not isinstance(values, (dict, ListedValues)):
            return False
        values = cast("Mapping[str, Any]", values)
        return not any(
            callable(value) or hasattr(value, "as_numpy_iterator") for value in values.values()
        )

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`; describes the value of the first client."""
        client = self.clients[0]
        return {client: _described(self.value(client), f"the data of client {client}")}

    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`; values that are neither tables nor arrays are left out."""
        for client in self.clients:
            for name, column in self._columns(client).items():
                yield name, column.take(slice(0, len(column)))

    def row_counts(self) -> Array | None:
        """See `ScannedData`."""
        lengths = ([(len(c),) for c in self._columns(n).values()] for n in self.clients)
        return equal_lengths(lengths)

    def _columns(self, client: str) -> dict[str, Column]:
        value = self.value(client)
        return _call(lambda: _parts(value), f"the data of client {client} of {self.target}")

    def size(self) -> int | None:
        """See `ScannedData`; it is not known."""
        return None

    def origin(self) -> Origin:
        """See `DataSet`; it is in no file."""
        return Origin("python", {}, [])

    def typed(self, type: Type) -> PythonClients:
        """See `DataSet`."""
        return PythonClients(self, NaturalValues(type, self.target, self.rules))

    def help_to_prepare(self, help: str | None) -> str | None:
        """Return the help for a value that does not fit, which a `ClientData` can change."""
        if not self._is_client_data:
            return help
        prepare = "data.preprocess(f) does so, where f prepares the dataset of each client"
        return f"{help}; {prepare}" if help else prepare

    def value(self, client: str) -> Any:
        """Return the value of a client.

        Raises:
          DataError: making it raised an exception, which is the cause of the error.
        """
        what = f"the data of client {client} of {self.target}"
        value = _call(lambda: self._values[client], what)
        return _call(value, what) if callable(value) else value


class PythonFunction(PythonValues):
    """The clients of the function or `ClientData` at `target`, written `MODULE:NAME`.

    Raises:
      DataError: there is no such object, or it does not return clients.
      LoadError: the module cannot be imported.
    """

    def __init__(self, target: str) -> None:
        source, name = split_target(target)
        module = import_source(source)
        value = _call(lambda: _attribute(module, name), target) if name else None
        what, values = target, value
        if not _call(lambda: is_client_data(value), target):
            if not callable(value):
                raise DataError(
                    "E439",
                    f"there is no function {target}",
                    help=did_you_mean(name or "", _functions(module))
                    or "name a function of a module, as in python:clients.py:all_clients",
                )
            what, values = f"{target}()", _call(value, f"{target}()")
        super().__init__(what, values)
        self.target = target
        self._origin = Origin("python", {"function": name}, [module.__file__ or source])

    def __reduce__(self) -> Any:
        # The values may be anything; another process calls the function itself.
        return PythonFunction, (self.target,)

    def origin(self) -> Origin:
        """See `DataSet`; the file is that of the module."""
        return self._origin


class ClientData(Protocol):
    """What tffc uses of a `ClientData` of `tff.simulation.datasets`."""

    @property
    def client_ids(self) -> Sequence[str]:
        """The names of the clients."""
        ...

    def create_tf_dataset_for_client(self, client_id: str) -> Any:
        """Return the dataset of a client."""
        ...


def is_client_data(source: Any) -> TypeGuard[ClientData]:
    """Return whether an object is a `ClientData` of `tff.simulation.datasets`."""
    return not isinstance(source, type) and all(
        hasattr(source, name) for name in ("client_ids", "create_tf_dataset_for_client")
    )


class ListedValues(Mapping[str, Any]):
    """The values of a list by their positions, as text of the same width."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        self._width = len(str(len(values)))

    def __getitem__(self, client: str) -> Any:
        return self._values[int(client)]

    def __iter__(self) -> Iterator[str]:
        return (str(number).zfill(self._width) for number in range(len(self._values)))

    def __len__(self) -> int:
        return len(self._values)


class RenamedValues(Mapping[Any, Any]):
    """The values of a mapping under other names."""

    def __init__(self, values: Mapping[Any, Any], names: Mapping[Any, Any]) -> None:
        self.values_by_name = values
        self._names = names

    def __getitem__(self, client: Any) -> Any:
        return self.values_by_name[self._names[client]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _ClientDatasets(Mapping[str, Any]):
    """The datasets of a `ClientData`, each made on demand."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __getitem__(self, client: str) -> Any:
        return self._data.create_tf_dataset_for_client(client)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data.client_ids)

    def __len__(self) -> int:
        return len(self._data.client_ids)


@dataclasses.dataclass(frozen=True, slots=True)
class PythonClients(TypedClients[PythonValues]):
    """The clients of Python objects, each with a value of one type."""

    values: NaturalValues

    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; makes the value."""
        parts = flatten(self.read(client), self.values.type)
        kinds = leaves(self.values.type)
        return tuple(
            len(part)
            for part, kind in zip(parts, kinds, strict=True)
            if isinstance(kind, SequenceType)
        )

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        value = self.data.value(client)
        try:
            return self.values.read(value, client)
        except DataError:
            raise
        except LanguageTypeError as error:
            raise DataError(
                "E620",
                f"{self.data.target}: {error.message}",
                notes=error.notes,
                help=self.data.help_to_prepare(dataset_help(value, self.values.type) or error.help),
            ) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # An object of the user's raised this while its elements were read.
            if is_defect(error):
                raise
            raise _raised(f"the data of client {client} of {self.data.target}", error) from error


def _parts(value: Any) -> dict[str, Column]:
    """Return the columns of a client's value; none if it is not a table or an array."""
    columns = columns_of(value)
    if columns is None:
        column = array_column(value)
        columns = {} if column is None else {"0": column}
    return columns


def _names(values: object) -> list[Any]:
    """Return the clients that a function returned, each once; none if it did not return a
    mapping."""
    return list(dict.fromkeys(values)) if is_mapping(values) else []


def _can_be_encoded(name: str) -> bool:
    """Return whether a name can be a file's name, and can be sent to workers."""
    try:
        name.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _attribute(module: ModuleType, name: str) -> Any:
    """Return an attribute of a module, or of a class or object in it by a dotted name; None if
    missing."""
    try:
        return find_attribute(module, name)
    except AttributeError:
        return None


def _functions(module: ModuleType) -> list[str]:
    """Return the public names of the callables in a module."""
    names = (item for item in namespace(module).items() if type(item[0]) is str)
    return [name for name, value in names if not name.startswith("_") and callable(value)]


def _call(function: Callable[[], T], what: str) -> T:
    """Call a function of the user's; any exception that it raises becomes an error about the
    data."""
    try:
        return function()
    except (DataError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _raised(what, error) from error


def _described(value: Any, what: str) -> str:
    """Return what an object is, for an error; `what` makes it."""
    return _call(lambda: describe(value), what)


def _raised(what: str, error: BaseException) -> DataError:
    """Return the error for an exception in the user's code."""
    if isinstance(error, SystemExit):
        return DataError(
            "E692",
            f"making {what} called sys.exit, which does not end a run",
            help="return what there is, or raise an exception that says what is wrong",
        )
    keep_users_frames(error)
    name, words = original_words(error)
    said = f": {words}" if words else ""
    return DataError("E692", f"making {what} raised {name}{said}")
