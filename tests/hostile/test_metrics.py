"""Metrics of any name and value: in JSON that any parser takes, in columns of their own."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from tffc.language import SequenceType, StructType, TensorType, to_type
from tffc.language.dtypes import DType
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.state import State
from tffc.runtime.runs.metrics import CsvStream, MetricsRow, curves, row_of

FLOAT = TensorType(np.float32)
NESTED = StructType.of(("loss",), (FLOAT,))


def row(names: tuple[str | None, ...], *values: Any) -> MetricsRow:
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
    assert curves([MetricsRow.from_json(made.to_json())]) == {"d": [(3, 0.5)]}


VALUES = [
    ((np.int64, [2]), np.array([2**62 + 1, -1]), [2**62 + 1, -1]),
    ((np.float32, [3]), np.array([0.5, np.nan, np.inf], np.float32), [0.5, "NaN", "Infinity"]),
    ((np.bool_, [1, 2]), np.array([[True, False]]), [[True, False]]),
    ((np.int32, [0]), np.zeros([0], np.int32), []),
    ((np.int32, [2, 0]), np.zeros([2, 0], np.int32), [[], []]),
    (np.complex64, np.complex64(complex(1, np.inf)), {"real": 1.0, "imag": "Infinity"}),
    ((DType.BFLOAT16, [2]), np.array([0.5, 2], DType.BFLOAT16.dtype), [0.5, 2.0]),
    (DType.BFLOAT16, DType.BFLOAT16.dtype.type(0.5), 0.5),
    (np.str_, "thé\0".encode(), "thé\0"),
    (np.str_, b"\xff", {"base64": "/w=="}),
    ((np.str_, [2]), np.array([b"a b", b"\x1b\n"], object), ["a b", "\x1b\n"]),
    (SequenceType(np.int32), [np.int32(3), np.int32(1)], [3, 1]),
    (SequenceType((np.float32, [1])), [np.array([np.nan], np.float32)], [["NaN"]]),
    (
        SequenceType([("a", np.int32), ("b", [("c", np.str_)])]),
        [(np.int32(1), (b"x",)), (np.int32(2), (b"y",))],
        [{"a": 1, "b.c": "x"}, {"a": 2, "b.c": "y"}],
    ),
]


@pytest.mark.parametrize(("type", "value", "written"), VALUES)
def test_values_of_every_kind_are_written_whole(type: Any, value: Any, written: Any) -> None:
    made = row_of(
        Round(3, ("ann",), State(None, "", 3), value), to_type(type), files=("outputs/x.npz", "")
    )
    assert json.loads(made.to_json())["metrics"] == {"output": written}
    assert MetricsRow.from_json(made.to_json()).metrics == {"output": written}


@pytest.mark.parametrize(
    ("type", "value", "cell"),
    [
        ((np.float32, [2]), np.array([0.5, np.nan], np.float32), '[0.5, "NaN"]'),
        (np.float32, np.float32(np.nan), "nan"),
        (np.str_, b"green tea, hot", "green tea, hot"),
        (np.str_, b'"tea"', '"\\"tea\\""'),
        (np.str_, b"[1]", '"[1]"'),
        (np.str_, b"\x1b[2J\n", '"\\u001b[2J\\n"'),
        (np.str_, b"\xff", '{"base64": "/w=="}'),
    ],
)
def test_cells_of_csv(type: Any, value: Any, cell: str) -> None:
    stream = io.StringIO()
    made = row_of(Round(1, ("ann",), State(None, "", 1), value), to_type(type))
    CsvStream(stream).add(made)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert list(csv.reader(lines))[1] == ["1", "1", "0", cell]


@pytest.mark.parametrize(
    ("type", "value", "short"),
    [
        ((np.float32, [None]), np.zeros([5000], np.float32), "float32[5000]"),
        ((np.float32, [None, None]), np.zeros([10**9, 0], np.float32), "float32[1000000000,0]"),
        (np.str_, b"x" * 5000, "str"),
        (SequenceType(np.int32), [np.int32(1)] * 5000, "int32*"),
    ],
)
def test_what_is_long_is_in_the_file_of_the_outputs(type: Any, value: Any, short: str) -> None:
    finished = Round(3, ("ann",), State(None, "", 3), value)
    made = row_of(finished, to_type(type), files=("outputs/round-3.npz", ""))
    assert made.metrics == {"output": {"type": short, "file": "outputs/round-3.npz"}}
    assert curves([made]) == {}
    if np.size(value):
        (whole,) = row_of(finished, to_type(type)).metrics.values()
        assert len(whole) == 5000
