"""What rounds measure: the numbers of the server output, as rows for people and programs.

What a row says of its round, and the metrics, whose names are the user's, have namespaces of their
own:

    {"round": 3, "clients": 20, "skipped": 0, "metrics": {"loss": 0.25, "model.bias": "NaN"}}

JSON has no numbers that are not finite, so these are the strings `NaN`, `Infinity` and `-Infinity`.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import json
import math
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any, Protocol

import numpy as np

from tffc.engines.engine import Round
from tffc.engines.state import is_count
from tffc.errors import ExecutionError
from tffc.execution.values import flatten
from tffc.ir.types import StructType, Type
from tffc.printable import printable

PREFIX = "metrics."
"""What stands before the name of a metric where it is in one namespace with others."""

ABOUT = ("round", "clients", "skipped")
"""What a row says of its round."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A round as numbers: which one, how many clients took part and were left out, its metrics."""

    round: int
    clients: int
    skipped: int
    metrics: Mapping[str, Any]

    def to_json(self) -> str:
        """Return the row as one line of JSON."""
        metrics = {name: _finite(value) for name, value in self.metrics.items()}
        about = {name: getattr(self, name) for name in ABOUT}
        return json.dumps({**about, "metrics": metrics}, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, line: str | bytes) -> Row:
        """Return the row that a line of JSON is.

        Raises:
          ValueError: it is none.
        """
        try:
            found = json.loads(line, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(found, dict) or list(found) != [*ABOUT, "metrics"]:
            raise ValueError(f"it is not an object with {', '.join(ABOUT)} and metrics")
        for name in ABOUT:
            if not is_count(found[name]):
                raise ValueError(f"its {name!r} is not a count")
        if not isinstance(found["metrics"], dict):
            raise ValueError("its 'metrics' are not an object")
        return cls(**found)


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def named_outputs(output: Any, type: Type) -> list[tuple[str, Any]]:
    """Return the tensors and sequences of a server output, with the paths to them."""
    return list(zip(_paths(type), flatten(output, type), strict=True))


def _paths(type: Type) -> list[str]:
    found: list[str] = []
    stack: list[tuple[str, Type]] = [("", type)]
    while stack:
        path, part = stack.pop()
        if not isinstance(part, StructType):
            found.append(path)
            continue
        steps = [str(i) if name is None else _step(name) for i, name in enumerate(part.names)]
        paths = [f"{path}.{step}" if path else step for step in steps]
        stack.extend(reversed(list(zip(paths, part, strict=True))))
    return found


def _step(name: str) -> str:
    """Return an element's name, so that it is neither taken for a path nor for a position."""
    step = name.replace("\\", "\\\\").replace(".", "\\.")
    return f"\\{step}" if step.isdecimal() else step


def row_of(finished: Round, type: Type) -> Row:
    """Return a round as numbers, and every number that the server puts out as a metric."""
    metrics: dict[str, Any] = {}
    for name, value in named_outputs(finished.output, type):
        array = np.asarray(value)
        if array.shape == () and array.dtype.kind in "biuf":
            metrics[name or "output"] = array.item()
    return Row(finished.number, len(finished.clients), len(finished.skipped), metrics)


class Log(Protocol):
    """Takes one row for each round."""

    def add(self, row: Row) -> None: ...


class JsonStream:
    """Rows as JSON objects on stdout."""

    def add(self, row: Row) -> None:
        sys.stdout.write(row.to_json())
        sys.stdout.flush()


class CsvStream:
    """Rows as comma-separated values on stdout, below a line with the names.

    The names of metrics begin with `metrics.`, those of the other columns do not.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._writer: Any = None
        self._stream = stream or sys.stdout

    def add(self, row: Row) -> None:
        about = {name: getattr(row, name) for name in ABOUT}
        cells = {**about, **{PREFIX + name: value for name, value in row.metrics.items()}}
        if self._writer is None:
            self._writer = csv.DictWriter(self._stream, list(cells), lineterminator="\n")
            self._writer.writerow({name: printable(name) for name in cells})
        self._writer.writerow(cells)
        self._stream.flush()


class TensorBoard:
    """Rows as scalars that TensorBoard shows, written by its own writer.

    The tags of metrics begin with `metrics/`, those of the others with `round/`.

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
        with self._writer.as_default(step=row.round):
            self._tf.summary.scalar("round/clients", row.clients)
            self._tf.summary.scalar("round/skipped", row.skipped)
            for name, value in row.metrics.items():
                self._tf.summary.scalar(f"metrics/{name}", value)
        self._writer.flush()


def curves(rows: Iterable[Row]) -> dict[str, list[tuple[int, float]]]:
    """Return the points of each metric over the rounds, of those that are finite numbers."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, value in row.metrics.items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                found.setdefault(name, []).append((row.round, float(value)))
    return found
