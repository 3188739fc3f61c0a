"""Metrics of any name and value: in JSON that any parser takes, in columns of their own."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from tffc.engines.engine import Round
from tffc.engines.metrics import CsvStream, Row, curves, row_of
from tffc.engines.state import State
from tffc.ir import StructType, TensorType

FLOAT = TensorType(np.float32)
NESTED = StructType.of(("loss",), (FLOAT,))


def row(names: tuple[str | None, ...], *values: Any) -> Row:
    """The row of a round whose output has elements of these names."""
    types = tuple(NESTED if isinstance(value, tuple) else FLOAT for value in values)
    finished = Round(3, ("ann", "bob"), State(None, "", 3), values, ("cy",))
    return row_of(finished, StructType.of(names, types))


def test_names_of_metrics_are_not_those_of_the_row() -> None:
    made = row(("round", "clients", "skipped", "metrics"), *map(np.float32, range(4)))
    metrics = {"round": 0.0, "clients": 1.0, "skipped": 2.0, "metrics": 3.0}
    about = {"round": 3, "clients": 2, "skipped": 1}
    assert json.loads(made.to_json()) == {**about, "metrics": metrics}
    stream = io.StringIO()
    CsvStream(stream).add(made)
    names, cells = csv.reader(stream.getvalue().splitlines())
    assert names == ["round", "clients", "skipped", *(f"metrics.{name}" for name in metrics)]
    assert cells == ["3", "2", "1", "0.0", "1.0", "2.0", "3.0"]
    assert curves([made]) == {name: [(3, value)] for name, value in metrics.items()}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("a.loss", "a"), ["a\\.loss", "a.loss"]),
        (("1", None), ["\\1", "1.loss"]),
        (("a\\", "a"), ["a\\\\", "a.loss"]),
    ],
)
def test_paths_are_told_from_names(names: tuple[str | None, ...], found: list[str]) -> None:
    made = row(names, np.float32(1), (np.float32(2),))
    assert list(made.metrics) == found
    assert list(made.metrics.values()) == [1.0, 2.0]


def test_numbers_that_are_not_finite_are_strings_in_json() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    made = row(("a", "b", "c", "d"), *map(np.float32, (np.nan, np.inf, -np.inf, 0.5)))
    read = json.loads(made.to_json(), parse_constant=refuse)
    assert read["metrics"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 0.5}
    assert curves([Row.from_json(made.to_json())]) == {"d": [(3, 0.5)]}
