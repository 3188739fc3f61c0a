"""A folder with one `.npz` file a client.

A file's name without suffix is the client's name.  What a file holds is said in
`tffc.data.arrays`.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from tffc.data.arrays import Layout, header_text
from tffc.data.npz import read_arrays, read_headers
from tffc.errors import DataError, near_file
from tffc.ir.types import Type

SUFFIX = ".npz"

KINDS = {".csv": "csv", ".parquet": "parquet", ".tfrecord": "tfrecord"}


class NpzFolder:
    """The clients in a folder.

    Raises:
      DataError: there is no such folder, or no client in it.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        if not path.is_dir():
            found = (
                f"{path} is a file, no folder" if path.is_file() else f"there is no folder {path}"
            )
            raise DataError("E640", found, help=near_file(path, os.path.isdir) or _kind_help(path))
        files = (file for file in path.iterdir() if file.suffix == SUFFIX)
        self.clients = tuple(sorted(file.stem for file in files))
        if not self.clients:
            raise DataError(
                "E641",
                f"the folder {path} is without data: it holds no {SUFFIX} file",
                help=f"give a folder with one {SUFFIX} file for each client",
            )

    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`; of the first client."""
        headers = read_headers(self.file(self.clients[0]))
        return {name: header_text(header) for name, header in headers.items()}

    def typed(self, type: Type) -> NpzClients:
        """See `DataSet`."""
        return NpzClients(self, Layout(type))

    def file(self, client: str) -> pathlib.Path:
        """The file of a client."""
        return self.path / f"{client}{SUFFIX}"


@dataclasses.dataclass(frozen=True, slots=True)
class NpzClients:
    """The clients in a folder, each with a value of one type."""

    folder: NpzFolder
    layout: Layout

    @property
    def clients(self) -> tuple[str, ...]:
        return self.folder.clients

    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; only the headers of arrays are read."""
        path = self.folder.file(client)
        return self.layout.check(read_headers(path), str(path))

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        return self.layout.decode(read_arrays(self.folder.file(client), self.layout))


def _kind_help(path: pathlib.Path) -> str:
    kind = KINDS.get(path.suffix.lower())
    if kind is not None:
        return f"say of which kind it is: {kind}:{path}"
    return f"give a folder with one {SUFFIX} file for each client"
