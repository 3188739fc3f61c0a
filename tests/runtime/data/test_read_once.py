"""Clients of files are read once, as far as there is room for their values."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.read_once import OVERHEAD, ReadOnce
from tffc.runtime.data.source import Origin
from tffc.support.errors import DataError

ROWS = tff.SequenceType(tff.TensorType(np.int64, [2]))
WORDS = tff.SequenceType(np.str_)


class Counting:
    """The clients of a folder, and how often each was read."""

    def __init__(self, folder: pathlib.Path, type: Any) -> None:
        self.source = open_data(folder).typed(type)
        self.reads: list[str] = []

    @property
    def clients(self) -> tuple[str, ...]:
        return self.source.clients

    def origin(self) -> Origin:
        return self.source.origin()

    def check(self, client: str) -> tuple[int, ...]:
        return self.source.check(client)

    def read(self, client: str) -> Any:
        self.reads.append(client)
        return self.source.read(client)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    for number in range(4):
        np.savez(tmp_path / f"{number}.npz", np.full((10, 2), number))
    return tmp_path


def test_a_client_is_read_once(folder: pathlib.Path) -> None:
    counting = Counting(folder, ROWS)
    source = ReadOnce(counting, ROWS)
    for _ in range(2):
        assert [np.sum(source.read(client)) for client in source.clients] == [0, 20, 40, 60]
    assert counting.reads == list(source.clients)


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_clients_for_which_there_is_no_room_are_read_again(folder: pathlib.Path, kept: int) -> None:
    counting = Counting(folder, ROWS)
    source = ReadOnce(counting, ROWS, kept * (OVERHEAD + 160) + 100)
    for client in source.clients * 2:
        source.read(client)
    assert counting.reads == [*source.clients, *source.clients[kept:]]


def test_strings_count(tmp_path: pathlib.Path) -> None:
    for number in range(2):
        np.savez(tmp_path / f"{number}.npz", np.array(["a" * 1000]))
    counting = Counting(tmp_path, WORDS)
    source = ReadOnce(counting, WORDS, 2000)
    for client in source.clients * 2:
        assert list(source.read(client)) == [b"a" * 1000]
    assert counting.reads == ["0", "1", "1"]


def test_what_cannot_be_read_is_tried_again(folder: pathlib.Path) -> None:
    (folder / "1.npz").write_bytes(b"no zip")
    counting = Counting(folder, ROWS)
    source = ReadOnce(counting, ROWS)
    for _ in range(2):
        with pytest.raises(DataError, match=r"1\.npz"):
            source.read("1")
    assert counting.reads == ["1", "1"]


def test_other_processes_read_for_themselves(folder: pathlib.Path) -> None:
    source = open_source(folder, ROWS)
    assert isinstance(source, ReadOnce)
    empty = len(pickle.dumps(source))
    source.read("3")
    sent = pickle.dumps(source)
    assert len(sent) == empty
    assert np.sum(pickle.loads(sent).read("3")) == 60


@pytest.mark.parametrize("location", ["packed", "python"])
def test_what_is_in_memory_already_is_not_kept(folder: pathlib.Path, location: str) -> None:
    from tffc.runtime.data.packing import write_pack

    write_pack(open_data(folder), None, folder / "packed")
    (folder / "own.py").write_text("def data():\n    return {'a': [[1, 2]]}\n")
    named = {"packed": f"{folder}/packed", "python": f"{folder}/own.py:data"}[location]
    assert not isinstance(open_source(named, ROWS), ReadOnce)
