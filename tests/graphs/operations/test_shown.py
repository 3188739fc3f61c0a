"""The table of operations that show what they compute with."""

from __future__ import annotations

import pytest

from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import read_table
from tffc.graphs.operations.shown import TABLE, Showing, showing, shows


def test_the_table_has_operations_of_tensorflow_only() -> None:
    assert [op for op in read_table(TABLE) if op_table.find(op) is None] == []


def test_no_operation_is_listed_twice() -> None:
    lines = TABLE.read_text().splitlines()
    words = [w for line in lines if not line.startswith(("#", "[")) for w in line.split()]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("PrintV2", Showing.PRINTS),
        ("Assert", Showing.CHECKS),
        ("CheckNumerics", Showing.CHECKS),
        ("GatherV2", Showing.MAY_TELL),
        ("StringToNumber", Showing.MAY_TELL),
        ("SparseSoftmaxCrossEntropyWithLogits", Showing.MAY_TELL),
        ("InitializeTableV2", Showing.MAY_TELL),
        ("AddV2", None),
        ("NoSuchOperation", Showing.UNKNOWN),
    ],
)
def test_how_an_operation_shows(op: str, expected: Showing | None) -> None:
    assert showing(op) is expected


def test_what_is_there_to_show_or_unknown_shows() -> None:
    assert [op for op in ("PrintV2", "Assert", "NoSuchOperation") if not shows(op)] == []
    assert [op for op in ("AddV2", "GatherV2", "XlaCallModule") if shows(op)] == []
