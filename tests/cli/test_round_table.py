"""The table that `tffc run` prints: aligned columns, and the format of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tffc.cli.round_table import RoundTable
from tffc.language import SequenceType, to_type
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.state import State


def shown(type: Any, *outputs: Any, last: int | None = None) -> list[str]:
    table = RoundTable(last or len(outputs), to_type(type))
    rounds = (Round(n, ("ada",), State((), "", n), each) for n, each in enumerate(outputs, 1))
    return [line for each in rounds for line in table.lines(each)]


def test_columns_are_aligned_below_their_names() -> None:
    type = [("loss", np.float32), ("examples", np.int32), ("model", [("bias", np.float32)])]
    assert shown(
        type,
        (np.float32(2.5), np.int32(120), (np.float32(-0.000012344),)),
        (np.float32(0.25), np.int32(7), (np.float32(1),)),
    ) == [
        "round      loss  examples  model.bias",
        "    1     2.500       120  -1.234e-05",
        "    2    0.2500         7   1.000e+00",
    ]


def test_numbers_in_a_column_are_written_alike() -> None:
    numbers = [0.0, 871.44, 8714.4, 10840.2, 0.00012345, 9999999.0]
    *fixed, _ = (line.split()[1] for line in shown(np.float32, *map(np.float32, [*numbers, 0]))[1:])
    assert fixed == ["0.000", "871.4", "8714", "10840", "0.0001234", "9999999"]
    numbers = [1e7, 5.0, 0.0, float("nan")]
    texts = [line.split()[1] for line in shown(np.float32, *map(np.float32, numbers))[1:]]
    assert texts == ["1.000e+07", "5.000e+00", "0.000e+00", "nan"]
    array = np.array([1.0, 1e-9], np.float32)
    assert shown((np.float32, [2]), array)[1].split("  ")[-1] == "[1.000e+00, 1.000e-09]"


def test_a_column_gets_wider_for_a_value_that_needs_it() -> None:
    assert shown([("n", np.int32)], (np.int32(1),), (np.int32(1000),), (np.int32(2),)) == [
        "round  n",
        "    1  1",
        "    2  1000",
        "    3     2",
    ]


def test_numbers_of_many_rounds() -> None:
    lines = shown(np.int32, np.int32(1), last=1_000_000)
    assert lines == ["  round  output", "      1       1"]


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        ((np.float32, [2]), np.array([0.5, 1], np.float32), "[0.5000, 1.000]"),
        ((np.int32, [2, 2]), np.array([[1, 2], [3, 4]], np.int32), "[[1, 2], [3, 4]]"),
        ((np.float32, [5, 4]), np.zeros([5, 4], np.float32), "float32[5,4]"),
        ((np.int32, [11]), np.arange(11, dtype=np.int32), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
        ((np.int32, [1000]), np.zeros([1000], np.int32), "int32[1000]"),
        ((np.int32, [10**9, 0]), np.zeros([10**9, 0], np.int32), "int32[1000000000,0]"),
        ((np.int32, [0]), np.zeros([0], np.int32), "[]"),
        (np.bool_, np.bool_(True), "True"),
        (np.float32, np.float32("nan"), "nan"),
        (np.complex64, np.complex64(1 - 2j), "1.000-2.000j"),
        (np.str_, b"tea", "tea"),
        (np.str_, b"green tea", '"green tea"'),
        (np.str_, b"", '""'),
        (np.str_, b'say "tea"', '"say \\"tea\\""'),
        (np.str_, "thé".encode(), "thé"),
        (np.str_, b"\xff\0", "\\xff\\x00"),
        (np.str_, b"\x1b[2Jtea", '"\\x1b[2Jtea"'),
        (np.str_, b"x" * 100, "x" * 80 + "..."),
        ((np.str_, [2]), np.array([b"the", b"cat"], object), "[the, cat]"),
        ((np.str_, [2]), np.array([b"x" * 50] * 2, object), "str[2]"),
        (SequenceType(np.int32), [np.int32(3), np.int32(1)], "[3, 1]"),
        (SequenceType(np.int32), [np.int32(1)] * 1000, "1000 elements"),
        (SequenceType([("a", np.int32), ("b", np.str_)]), [(np.int32(3), b"x")], "[<a=3, b=x>]"),
    ],
)
def test_values(type: Any, value: Any, text: str) -> None:
    name, line = shown(type, value)
    assert (name.split(), line) == (["round", "output"], "    1  " + text.rjust(len(name) - 7))


def test_columns_that_are_too_long_are_known() -> None:
    type = to_type([("few", (np.int32, [2])), ("many", (np.int32, [20])), ("a\nb", np.str_)])
    table = RoundTable(1, type)
    output = (np.zeros([2], np.int32), np.zeros([20], np.int32), b"long " * 50)
    list(table.lines(Round(1, ("ada",), State((), "", 1), output)))
    assert list(table.shortened) == ["many", "a\\nb"]


def test_columns_that_the_terminal_has_no_room_for() -> None:
    table = RoundTable(2, to_type([("loss", np.float32), ("count", np.int32), ("n", np.int32)]))
    table.room = 24
    state = State((), "", 1)
    output = (np.float32(0.5), np.int32(3), np.int32(4))
    lines = list(table.lines(Round(1, ("ada",), state, output)))
    assert lines == ["round      loss  count", "    1    0.5000      3"]
    assert [*table.shortened] == ["n"]
    bad = list(table.lines(Round(2, ("ada",), state, output, skipped=("eve",))))
    assert bad == ["    2  (1 client left out)"]
    assert [*table.shortened] == ["n", "loss", "count"]


def test_a_value_that_the_terminal_has_no_room_for() -> None:
    table = RoundTable(2, to_type([("counts", (np.int32, [9])), ("n", np.int32)]))
    table.room = 24
    output = (np.arange(9, dtype=np.int32), np.int32(4))
    assert list(table.lines(Round(1, ("ada",), State((), "", 1), output))) == [
        "round             counts",
        "    1  [0, 1, 2, 3, 4, …",
    ]
    assert [*table.shortened] == ["counts", "n"]


def test_a_round_without_output() -> None:
    assert shown([], ()) == ["round", "    1"]
