"""The results of rounds (the whole server output) as rows for other programs.

The user names the metrics, so they have a namespace of their own:

    {"round": 3, "clients": 20, "skipped": 0, "metrics": {"loss": 0.25, "counts": [3, 1, 4]}}

A simulated round also has its `"simulated"` seconds, and a buffered one the `"ages"` of its
contributions and how many were `"dropped"`.  The same holds for the result of an
evaluation: `"evaluation": {"loss": 0.5}`, or null after a round without one.

Values are written as `tffc.runtime.data.json_values` describes.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from tffc.language.type_parts import leaves
from tffc.language.types import TensorType, Type
from tffc.language.values.concrete import flatten
from tffc.runtime.data.arrays import extent
from tffc.runtime.data.json_values import cell, finite, paths, to_json
from tffc.runtime.engines.rounds import Round
from tffc.support.files.strict_json import is_count, is_object, read_json
from tffc.support.guards import is_dict, is_list
from tffc.support.printable import json_text, printable

PREFIX = "metrics."
"""The prefix of metrics' names where they share a namespace with other names."""

EVALUATION = "evaluation."
"""The prefix of the names of an evaluation's results there."""

ABOUT = ("round", "clients", "skipped")
"""The fields of a row about its round."""

TIMING: Mapping[str, Callable[[Any], bool]] = {
    "simulated": lambda value: isinstance(value, float) and 0 <= value < math.inf,
    "ages": lambda value: is_list(value) and all(map(is_count, value)),
    "dropped": is_count,
}
"""The fields of a row about simulated time and contributions, with their checks."""

LONGEST = 4096
"""The most elements and bytes of strings that a value may have to be written to a run's metrics."""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricsRow:
    """A round: its number, how many clients took part and were left out, and its metrics.

    `simulated`, `ages` and `dropped` are those of `Round` and `Contributions`, or None.  A metric
    is a Python number, or the JSON of another value.  `evaluation` has the results of an
    evaluation by name; after a round without one, they are None.  It is empty if the run has no
    evaluations.
    """

    round: int
    clients: int
    skipped: int
    metrics: Mapping[str, Any]
    evaluation: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    simulated: float | None = None
    ages: Sequence[int] | None = None
    dropped: int | None = None

    @property
    def timing(self) -> dict[str, Any]:
        """What is known of time and contributions, by name."""
        fields = ((name, getattr(self, name)) for name in TIMING)
        return {name: value for name, value in fields if value is not None}

    def to_json(self) -> str:
        """Return the row as one line of JSON."""
        row = {name: getattr(self, name) for name in ABOUT}
        row["metrics"] = _finite(self.metrics)
        row |= self.timing
        if self.evaluation:
            known = {name: value for name, value in self.evaluation.items() if value is not None}
            row["evaluation"] = _finite(known) or None
        return json_text(row, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, line: str | bytes) -> MetricsRow:
        """Parse a line of JSON.

        Raises:
          ValueError: it is not a row.
        """
        row = read_json(line)
        if not is_object(row) or list(row)[:4] != [*ABOUT, "metrics"]:
            raise ValueError(f"it is not an object with {', '.join(ABOUT)} and metrics")
        if list(row)[-1:] == ["evaluation"] and row["evaluation"] is None:
            row["evaluation"] = {}
        for name in ABOUT:
            if not is_count(row[name]):
                raise ValueError(f"its {name!r} is not a count")
        for name, is_right in TIMING.items():
            if name in row and not is_right(row[name]):
                raise ValueError(f"its {name!r} is not right")
        for name in row.keys() - {*ABOUT, *TIMING}:
            if name not in ("metrics", "evaluation"):
                raise ValueError(f"it has a {name!r}")
            if not is_object(row[name]):
                raise ValueError(f"its {name!r} is not an object")
        return cls(**row)


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with strings for the numbers that JSON lacks."""
    return {
        name: finite(value) if isinstance(value, float) else value for name, value in values.items()
    }


class OutputTensor(NamedTuple):
    """A tensor or a sequence of a server output, and its path."""

    name: str
    type: Type
    value: Any


def named_outputs(output: Any, type: Type) -> list[OutputTensor]:
    """Return the tensors and sequences of a server output, with their paths."""
    parts = zip(paths(type), leaves(type), flatten(output, type), strict=True)
    return [OutputTensor(*part) for part in parts]


def row_of(
    finished: Round,
    type: Type,
    evaluation: Type | None = None,
    files: tuple[str, str] | tuple[None, None] = (None, None),
) -> MetricsRow:
    """Return a round as a row, with the whole server output.

    `evaluation` is the type of evaluations' results, if there are any.  If `files` names the files
    that also hold the output and the evaluation, a long value is replaced by its type and the name
    of its file.
    """
    file, evaluation_file = files
    measured: dict[str, Any] = {}
    if evaluation is not None and finished.evaluation is None:
        measured = {name or "output": None for name in paths(evaluation)}
    elif evaluation is not None:
        measured = _metrics(finished.evaluation, evaluation, evaluation_file)
    metrics = _metrics(finished.output, type, file)
    merged = finished.contributions
    return MetricsRow(
        finished.number,
        len(finished.clients),
        len(finished.skipped),
        metrics,
        measured,
        finished.simulated,
        None if merged is None else list(merged.ages),
        None if merged is None else merged.dropped,
    )


def _metrics(output: Any, type: Type, file: str | None) -> dict[str, Any]:
    return {
        name or "output": _metric(value, part, file)
        for name, part, value in named_outputs(output, type)
    }


def _metric(value: Any, type: Type, file: str | None) -> Any:
    if isinstance(type, TensorType):
        if type.element_type.is_floating and np.ndim(value) == 0:
            return float(value)
        type = TensorType(type.element_type, np.shape(value))
        # Check the size before converting the value, because it may be a whole model.
        if file is not None and extent(np.shape(value)) > LONGEST:
            return _place(type, file)
    written = to_json(value, type)
    return _place(type, file) if file is not None and _is_long(written) else written


def _place(type: Type, file: str) -> dict[str, str]:
    return {"type": str(type), "file": file}


def _is_long(written: object) -> bool:
    """Return whether a JSON value has more elements and bytes of strings than `LONGEST`."""
    left = LONGEST
    stack = [written]
    while stack and left >= 0:
        part = stack.pop()
        if isinstance(part, str):
            left -= len(part.encode())
        elif is_dict(part) or is_list(part):
            left -= len(part)
            stack.extend(part.values() if is_dict(part) else part)
    return left < 0


class Log(Protocol):
    """Receives a row for each round."""

    def add(self, row: MetricsRow) -> None: ...


class JsonStream:
    """Rows as JSON objects on stdout."""

    def add(self, row: MetricsRow) -> None:
        sys.stdout.write(row.to_json())
        sys.stdout.flush()


class CsvStream:
    """Rows as comma-separated values on stdout, below a header line.

    The names of metrics begin with `metrics.`, those of evaluations with `evaluation.`.  Numbers
    and strings are written unchanged, everything else as JSON, as are strings that begin like JSON
    or have unprintable characters.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._writer: Any = None
        self._stream = stream or sys.stdout

    def add(self, row: MetricsRow) -> None:
        about = {name: getattr(row, name) for name in ABOUT}
        about |= {name: cell(value) for name, value in row.timing.items()}
        metrics = {PREFIX + name: cell(value) for name, value in row.metrics.items()}
        evaluation = {EVALUATION + name: cell(value) for name, value in row.evaluation.items()}
        cells = {**about, **metrics, **evaluation}
        if self._writer is None:
            self._writer = csv.DictWriter(self._stream, list(cells), lineterminator="\n")
            self._writer.writerow({name: printable(name) for name in cells})
        self._writer.writerow(cells)
        self._stream.flush()


def curves(rows: Iterable[MetricsRow]) -> dict[str, list[tuple[int, float]]]:
    """Return the points of each metric over the rounds; values that are not finite numbers are left
    out."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        evaluation = {EVALUATION + name: value for name, value in row.evaluation.items()}
        for name, value in {**row.metrics, **evaluation}.items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                points.setdefault(name, []).append((row.round, float(value)))
    return points
