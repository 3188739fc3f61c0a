"""The table that `tffc run` prints: aligned columns, and what values look like in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tffc.cli.round_table import RoundTable
from tffc.engines.engine import Round
from tffc.engines.state import State
from tffc.ir import to_type


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
        "    2    0.2500         7       1.000",
    ]


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
        ((np.float32, [2]), np.array([0.5, 1], np.float32), "[0.5000 1.000]"),
        ((np.int32, [2, 2]), np.array([[1, 2], [3, 4]], np.int32), "[[1 2] [3 4]]"),
        ((np.float32, [3, 3]), np.zeros([3, 3], np.float32), "float32[3, 3]"),
        (np.bool_, np.bool_(True), "True"),
        (np.float32, np.float32("nan"), "nan"),
    ],
)
def test_values(type: Any, value: Any, text: str) -> None:
    assert shown(type, value)[1].split("  ")[-1].strip() == text


def test_a_round_without_output() -> None:
    assert shown([], ()) == ["round", "    1"]
