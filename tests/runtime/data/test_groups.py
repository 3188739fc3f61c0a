"""Values of many clients, stacked by their shapes."""

from __future__ import annotations

import collections
import pathlib
import pickle
from typing import Any

import numpy as np

from tests.runtime.engines.sources import Values
from tffc.language import SequenceType, StructType, Type, to_type
from tffc.language.values.concrete import to_value
from tffc.runtime.data.groups import Grouped, ValuesInMemory, read_groups
from tffc.runtime.data.location import open_source

EXAMPLES = SequenceType(collections.OrderedDict(x=(np.float32, [2]), y=np.int32))
HELD = StructType([("examples", EXAMPLES), ("name", np.str_)])


def held(elements: int, start: int = 0) -> Any:
    """A value with so many elements."""
    numbers = range(start, start + elements)
    rows = [{"x": np.array([n, -n], np.float32), "y": n} for n in numbers]
    return to_value({"examples": rows, "name": f"c{start}"}, HELD)


def shown(found: Grouped) -> Any:
    """Groups as lists."""
    groups = [(g.positions.tolist(), [c.tolist() for c in g.columns]) for g in found.groups]
    return groups, found.others


EXPECTED = (
    [
        ([0, 2], [[[[5, -5], [6, -6]], [[1, -1], [2, -2]]], [[5, 6], [1, 2]], [b"c5", b"c1"]]),
        ([1], [[[[7, -7]]], [[7]], [b"c7"]]),
        ([3], [[[]], [[]], [b"c0"]]),
    ],
    (),
)


def test_values_in_memory() -> None:
    source = ValuesInMemory(HELD, [held(2, 1), held(2, 5), held(1, 7), held(0)])
    assert source.clients == ("0", "1", "2", "3")
    assert shown(read_groups(source, HELD, ["1", "2", "0", "3"])) == EXPECTED
    empty = read_groups(source, HELD, ["3"]).groups[0].columns
    assert [(column.dtype, column.shape) for column in empty] == [
        (np.float32, (1, 0, 2)),
        (np.int32, (1, 0)),
        (object, (1,)),
    ]


def test_any_other_source_is_read_client_by_client() -> None:
    source = Values([held(2, 1), held(2, 5), held(1, 7), held(0)])
    asked = [source.clients[number] for number in (1, 2, 0, 3)]
    assert shown(read_groups(source, HELD, asked)) == EXPECTED


def test_clients_in_their_order_are_a_view() -> None:
    source = ValuesInMemory(to_type(np.int32), [np.int32(n) for n in range(5)])
    whole = read_groups(source, to_type(np.int32), source.clients).groups[0].columns[0]
    part = read_groups(source, to_type(np.int32), ["1", "2"]).groups[0].columns[0]
    apart = read_groups(source, to_type(np.int32), ["1", "3"]).groups[0].columns[0]
    assert (part.base is whole.base, apart.tolist()) == (True, [1, 3])


def test_what_cannot_be_stacked_is_told() -> None:
    ragged = SequenceType((np.int32, [None]))
    rows = [[np.zeros(1, np.int32)], [np.zeros(1, np.int32), np.zeros(2, np.int32)]]
    source = ValuesInMemory(to_type(ragged), rows)
    assert shown(read_groups(source, ragged, ["1", "0"])) == ([([1], [[[[0]]]])], (0,))


def test_a_type_without_tensors_has_no_groups() -> None:
    nothing: Type = StructType([])
    source = ValuesInMemory(nothing, [(), ()])
    assert shown(read_groups(source, nothing, ["1", "0"])) == ([], (0, 1))


def test_nobody() -> None:
    source = ValuesInMemory(HELD, [])
    assert shown(read_groups(source, HELD, [])) == ([], ())


def test_clients_that_cannot_be_read_are_told(tmp_path: pathlib.Path) -> None:
    for name, array in (("ada", np.zeros(2, np.int32)), ("bob", np.zeros(2, np.int32))):
        np.savez(tmp_path / f"{name}.npz", array)
    (tmp_path / "eve.npz").write_bytes(b"nothing")
    type = SequenceType(np.int32)
    source = open_source(tmp_path, type)
    found = read_groups(source, type, ["eve", "ada", "bob"])
    assert shown(found) == ([([1, 2], [[[0, 0], [0, 0]]])], (0,))


def test_other_processes_get_the_values() -> None:
    source = pickle.loads(pickle.dumps(ValuesInMemory(HELD, [held(2, 1)])))
    assert shown(read_groups(source, HELD, ["0"]))[0][0][0] == [0]
