"""Clients' data: a folder with one `.npz` file a client.

A file's name without suffix is the client's name, and clients are taken in the order of their
names.  What a file holds is said in `tffc.backends.arrays`.
"""

from __future__ import annotations

import pathlib
from typing import Any

from tffc.backends.arrays import Layout
from tffc.backends.npz import read_arrays, read_headers
from tffc.errors import DataError
from tffc.ir.types import Type

SUFFIX = ".npz"


class ClientFolder:
    """The clients in a folder, each with a value of one type.

    Raises:
      DataError: there is no such folder, or no client in it.
    """

    def __init__(self, path: pathlib.Path, type: Type) -> None:
        self.path = path
        self.layout = Layout(type)
        if not path.is_dir():
            raise DataError(
                "E640",
                f"there is no folder {path}",
                help=f"give a folder with one {SUFFIX} file for each client",
            )
        files = (file for file in path.iterdir() if file.suffix == SUFFIX)
        self.clients = tuple(sorted(file.stem for file in files))
        if not self.clients:
            raise DataError(
                "E641",
                f"the folder {path} is without data: it holds no {SUFFIX} file",
                help=f"give a folder with one {SUFFIX} file for each client",
            )

    def check(self) -> None:
        """Checks every client's file without reading its arrays.

        Raises:
          DataError: a file is no `.npz` file or does not hold a value of the type.
        """
        for client in self.clients:
            path = self._file(client)
            self.layout.check(read_headers(path), str(path))

    def read(self, client: str) -> Any:
        """The value that a client holds.

        Raises:
          DataError: its file is no `.npz` file or does not hold a value of the type.
        """
        return self.layout.decode(read_arrays(self._file(client), self.layout))

    def _file(self, client: str) -> pathlib.Path:
        return self.path / f"{client}{SUFFIX}"
