"""What rounds measure: the numbers of the server output, as rows for people and programs."""

from __future__ import annotations

import csv
import importlib
import json
import pathlib
import sys
from collections.abc import Iterable
from typing import IO, Any, Protocol

import numpy as np

from tffc.backends import atomic
from tffc.engines.engine import Round
from tffc.errors import ExecutionError
from tffc.execution.values import flatten
from tffc.ir.types import StructType, Type
from tffc.printable import printable

Row = dict[str, Any]


def named_outputs(output: Any, type: Type) -> list[tuple[str, Any]]:
    """The tensors and sequences of a server output, with the paths to them."""
    return list(zip(_paths(type), flatten(output, type), strict=True))


def _paths(type: Type) -> list[str]:
    found: list[str] = []
    stack: list[tuple[str, Type]] = [("", type)]
    while stack:
        path, part = stack.pop()
        if not isinstance(part, StructType):
            found.append(path)
            continue
        names = [str(i) if name is None else name for i, name in enumerate(part.names)]
        paths = [f"{path}.{name}" if path else name for name in names]
        stack.extend(reversed(list(zip(paths, part, strict=True))))
    return found


def row_of(finished: Round, type: Type) -> Row:
    """A round as numbers by name: `round`, `clients`, and every number that the server puts out."""
    row: Row = {"round": finished.number, "clients": len(finished.clients)}
    if finished.skipped:
        row["skipped"] = len(finished.skipped)
    for name, value in named_outputs(finished.output, type):
        array = np.asarray(value)
        if array.shape == () and array.dtype.kind in "biuf":
            row[name or "output"] = array.item()
    return row


class Log(Protocol):
    """Takes one row for each round."""

    def add(self, row: Row) -> None: ...


class JsonLines:
    """A file with one JSON object a line, each written at once."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def keep(self, rounds: int) -> None:
        """Drops the lines of rounds after `rounds`, and one that was cut off."""
        if self.path.exists():
            rows = [row for row in self.rows() if row["round"] <= rounds]
            lines = (json.dumps(row) + "\n" for row in rows)
            atomic.write_file(self.path, "".join(lines).encode())

    def rows(self) -> list[Row]:
        """The whole lines of the file, if there is one."""
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def add(self, row: Row) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


class JsonStream:
    """Rows as JSON objects on stdout."""

    def add(self, row: Row) -> None:
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


class CsvStream:
    """Rows as comma-separated values on stdout, below a line with the names."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._writer: Any = None
        self._stream = stream or sys.stdout

    def add(self, row: Row) -> None:
        row = {"skipped": 0, **row}
        if self._writer is None:
            self._writer = csv.DictWriter(self._stream, list(row), lineterminator="\n")
            self._writer.writerow({name: printable(name) for name in row})
        self._writer.writerow(row)
        self._stream.flush()


class TensorBoard:
    """Rows as scalars that TensorBoard shows, written by its own writer.

    Raises:
      ExecutionError: TensorBoard is not installed.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        from tffc.execution.tensorflow import load_tensorflow

        try:
            importlib.import_module("tensorboard")
        except ModuleNotFoundError:
            raise ExecutionError(
                "E924",
                "TensorBoard is not installed, and its log is written by it",
                help="pip install tensorboard",
            ) from None
        self._tf = load_tensorflow()
        self._writer = self._tf.summary.create_file_writer(str(folder))

    def add(self, row: Row) -> None:
        with self._writer.as_default(step=row["round"]):
            for name, value in row.items():
                if name != "round":
                    self._tf.summary.scalar(name, value)
        self._writer.flush()


def curves(rows: Iterable[Row]) -> dict[str, list[tuple[int, float]]]:
    """The points of each metric over the rounds."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("round", "clients", "skipped") and np.isfinite(value):
                found.setdefault(name, []).append((row["round"], float(value)))
    return found
