"""A folder with one `.npz` file for each client.

The client's name is the file's name without suffix.  `tffc.runtime.data.arrays` says what a file
holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout, Header, headers_text
from tffc.runtime.data.casts import Casts
from tffc.runtime.data.cells import check_named
from tffc.runtime.data.columns import Cells, cells_of_array, equal_lengths
from tffc.runtime.data.compressed import bytes_text
from tffc.runtime.data.files import files_size, reading
from tffc.runtime.data.npz import ArrayPlace, NpzFile, open_npz, read_places
from tffc.runtime.data.source import Indexing, Origin, TypedClients, no_indexing
from tffc.support.errors import DataError, reader
from tffc.support.files.inputs import remember_status
from tffc.support.files.reading import Identity
from tffc.support.guards import Array
from tffc.support.near import near_file

SUFFIX = ".npz"

REMEMBERED = 2**16
"""For how many clients the places of arrays in their files are remembered, at less than a kilobyte
each."""

KINDS = {".csv": "csv", ".parquet": "parquet", ".tfrecord": "tfrecord"}


class NpzFolder:
    """The clients in a folder.

    A client's file may be a link to another file in the folder, and to anywhere where links are
    followed.  The arrays of one client take at most `max_bytes` of memory, if that is given.

    Raises:
      DataError: the folder does not exist, cannot be read, or holds no client.
    """

    @reader("a folder of .npz files", DataError)
    def __init__(
        self,
        path: str | os.PathLike[str],
        cast: str | None = None,
        *,
        max_bytes: int | None = None,
        follow_links: bool = False,
        progress: Indexing = no_indexing,
    ) -> None:
        self.path = path = pathlib.Path(path)
        self.max_bytes = max_bytes
        self.casts = Casts.parse(str(path), cast)
        self._follow_links = follow_links
        if not os.path.isdir(path):
            problem = (
                f"{path} is a file, not a folder"
                if os.path.isfile(path)
                else f"there is no folder {path}"
            )
            raise DataError(
                "E640", problem, help=near_file(path, os.path.isdir) or _kind_help(path)
            )
        with reading(str(path)):
            names = [name for name in os.listdir(path) if name.endswith(SUFFIX)]
        # A name that is the suffix alone is that of a hidden file without suffix.
        self._identities: dict[str, Identity | None] = {}
        for number, name in enumerate(names):
            if name != SUFFIX:
                self._identities[name.removesuffix(SUFFIX)] = _identity(path, name)
            progress(number + 1, len(names), "files")
        self.clients = tuple(sorted(self._identities))
        if not self.clients:
            raise DataError(
                "E640",
                f"the folder {path} is without data: it holds no {SUFFIX} file",
                help=f"give a folder with one {SUFFIX} file for each client",
            )

    def __getstate__(self) -> dict[str, object]:
        identities = self._identities.items()
        elsewhere = {client: known and known.elsewhere() for client, known in identities}
        return {**self.__dict__, "_identities": elsewhere}

    @reader("a folder of .npz files", DataError)
    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`; the headers of all files are read."""
        headers: dict[str, set[Header]] = {}
        for client in self.clients:
            with self.open(client) as file:
                for name, header in file.headers().items():
                    headers.setdefault(name, set()).add(header)
        return {name: headers_text(of_name) for name, of_name in headers.items()}

    @reader("a folder of .npz files", DataError)
    def tensors(self, client: str) -> dict[str, tuple[DType, Array]]:
        """Return all arrays of a client in their form in memory, by name, with their element types.

        Raises:
          DataError: the file cannot be read, or holds something other than tensors.
        """
        with self.open(client) as file:
            fields = file.fields()
            arrays = file.read_fields(list(fields.values()), self.max_bytes)
        pairs = zip(fields.items(), arrays, strict=True)
        return {
            name: (field.type.element_type, np.asarray(array, field.type.element_type.dtype))
            for (name, field), array in sorted(pairs, key=lambda pair: pair[0][0])
        }

    @reader("a folder of .npz files", DataError)
    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`."""
        for client in self.clients:
            for name, (_, array) in self.tensors(client).items():
                yield name, cells_of_array(array)

    def row_counts(self) -> Array | None:
        """See `ScannedData`; known if the first dimensions of all arrays of a client agree."""
        return equal_lengths(map(self.shapes, self.clients))

    def shapes(self, client: str) -> list[tuple[int, ...]]:
        """Return the shapes of a client's arrays."""
        with self.open(client) as file:
            return [shape for _, shape in file.headers().values()]

    def size(self) -> int | None:
        """See `ScannedData`."""
        return files_size(self.origin().files)

    def origin(self) -> Origin:
        """See `DataSet`."""
        options = {"cast": self.casts.text, "max-bytes": bytes_text(self.max_bytes)}
        return Origin("npz", options, [str(self.file(client)) for client in self.clients])

    def typed(self, type: Type) -> NpzClients:
        """See `DataSet`."""
        layout = ArrayLayout(type, self.casts)
        known = [name for field in layout.fields for name in field.names()]
        check_named(str(self.path), "cast", self.casts.named(), known)
        return NpzClients(self, layout)

    def file(self, client: str) -> pathlib.Path:
        """Return the file of a client."""
        return self.path / f"{client}{SUFFIX}"

    def open(self, client: str) -> contextlib.AbstractContextManager[NpzFile]:
        """Open the file of a client, checking that it is unchanged since the folder was opened.

        Raises:
          DataError: it cannot be read, is not an `.npz` file, has changed, or is a link to
            elsewhere.
        """
        path = self.file(client)
        return open_npz(path, self._identities[client], self._within(path))

    def read_places(self, client: str, places: Sequence[ArrayPlace]) -> dict[str, Array] | None:
        """Return arrays of a client, by name, from known places in its file.

        Returns None where the file's identity is unknown, so that the places may be those of
        another file.

        Raises:
          DataError: as `open` does.
        """
        identity = self._identities[client]
        if identity is None or not identity.is_here:
            return None
        path = self.file(client)
        return read_places(path, places, identity, self._within(path))

    def _within(self, path: pathlib.Path) -> pathlib.Path | None:
        return None if self._follow_links or not os.path.islink(path) else self.path


def _identity(folder: pathlib.Path, name: str) -> Identity | None:
    """Return the identity of a file, or None if it cannot be found, which is reported when it is
    read."""
    path = os.path.join(folder, name)
    try:
        status = os.stat(path)
    except OSError:
        return None
    remember_status(status, path)
    return Identity.of(status)


@dataclasses.dataclass(frozen=True, slots=True)
class NpzClients(TypedClients[NpzFolder]):
    """The clients in a folder, each with a value of one type."""

    layout: ArrayLayout
    _places: dict[str, tuple[ArrayPlace, ...] | None] = dataclasses.field(
        default_factory=dict[str, "tuple[ArrayPlace, ...] | None"], repr=False, compare=False
    )

    def __reduce__(self) -> Any:
        return NpzClients, (self.data, self.layout)

    @reader("a folder of .npz files", DataError)
    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; reads the headers, and the arrays that need a conversion that may
        fail."""
        with self.data.open(client) as file:
            headers, lengths = file.check(self.layout, self.data.max_bytes)
            self._remember(client, file, headers)
        if not self.layout.is_kept(headers):
            self.read(client)
        return lengths

    @reader("a folder of .npz files", DataError)
    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        places = self._places.get(client)
        arrays = None if places is None else self.data.read_places(client, places)
        if arrays is None:
            with self.data.open(client) as file:
                headers, _ = file.check(self.layout, self.data.max_bytes)
                arrays = file.read(self.layout, headers)
                self._remember(client, file, headers)
        return self.layout.decode(arrays, str(self.data.file(client)))

    def _remember(self, client: str, file: NpzFile, headers: Mapping[str, Header]) -> None:
        """Remember where in its file a client's arrays are, after they were checked."""
        if client not in self._places and len(self._places) < REMEMBERED:
            self._places[client] = file.places(self.layout, headers)


def _kind_help(path: pathlib.Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    kind = KINDS.get(pathlib.PurePath(name).suffix)
    if kind is not None:
        return f"say of which kind it is: {kind}:{path}"
    return f"give a folder with one {SUFFIX} file for each client"
