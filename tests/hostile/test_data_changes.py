"""Data that changes while it is used: a client never gets what belongs to another."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.records import write_records
from tests.refusals import refusal
from tffc.language import SequenceType, TensorType
from tffc.runtime.data.location import open_source
from tffc.support.errors import DataError

READINGS = SequenceType(TensorType(np.float32))
ROWS = [("ada", 1.0), ("bob", 100.0)]
Write = Callable[[list[tuple[str, float]]], None]


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_csv(rows: list[tuple[str, float]]) -> None:
    lines = [f"{name},{value:05}\n" for name, value in rows]
    pathlib.Path("d.csv").write_text("client,degrees\n" + "".join(lines))


def write_parquet(rows: list[tuple[str, float]]) -> None:
    names, values = zip(*rows, strict=True)
    table = pa.table({"client": names, "degrees": pa.array(values, pa.float32())})
    pq.write_table(table, "d.parquet", row_group_size=1)


def write_tfrecord(rows: list[tuple[str, float]]) -> None:
    write_records("d.tfrecord", [{"client": name, "degrees": value} for name, value in rows])


def write_npz(rows: list[tuple[str, float]]) -> None:
    pathlib.Path("d").mkdir(exist_ok=True)
    for name, value in rows:
        np.savez(f"d/{name}.npz", np.array([value], np.float32))


SOURCES: dict[str, tuple[Write, str, str]] = {
    "csv": (write_csv, "csv:d.csv?columns=degrees", "d.csv"),
    "parquet": (write_parquet, "parquet:d.parquet?columns=degrees", "d.parquet"),
    "tfrecord": (
        write_tfrecord,
        "tfrecord:d.tfrecord?client=client&columns=degrees",
        "d.tfrecord",
    ),
    "npz": (write_npz, "npz:d", "d/ada.npz"),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another process"])
def test_a_file_that_changed_is_refused(kind: str, elsewhere: bool) -> None:
    write, location, file = SOURCES[kind]
    write(ROWS)
    source = open_source(location, READINGS)
    if elsewhere:
        source = pickle.loads(pickle.dumps(source))
    os.utime(file, ns=(0, 0))
    assert refusal(DataError, source.read, "ada") == (
        f"{file} has changed since it was opened [E630]\n"
        "  help: start again, and leave the data alone until the end"
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "tfrecord"])
def test_rows_that_belong_to_others_are_refused(kind: str, move: Callable[[], None]) -> None:
    """Nothing but the rows tells: another machine compares size and time alone."""
    write, location, file = SOURCES[kind]
    write(ROWS)
    os.utime(file, ns=(0, 0))
    source = pickle.loads(pickle.dumps(open_source(location, READINGS)))
    move()
    before = os.path.getsize(file)
    write(ROWS[::-1])
    os.utime(file, ns=(0, 0))
    assert os.path.getsize(file) == before
    with pytest.raises(DataError, match="E630"):
        source.read("ada")


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another process"])
def test_values_that_changed_are_refused_whatever_the_times_say(kind: str, elsewhere: bool) -> None:
    write, location, file = SOURCES[kind]
    write(ROWS)
    before = os.stat(file)
    source = open_source(location, READINGS)
    if elsewhere:
        source = pickle.loads(pickle.dumps(source))
    content = pathlib.Path(file).read_bytes()
    with open(file, "r+b") as changed:
        changed.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.path.getsize(file) == before.st_size
    with pytest.raises(DataError, match="E630"):
        source.read("ada")


@pytest.mark.parametrize("kind", SOURCES)
def test_a_file_that_was_replaced_is_refused(kind: str) -> None:
    write, location, file = SOURCES[kind]
    write(ROWS)
    os.utime(file, ns=(0, 0))
    source = open_source(location, READINGS)
    os.rename(file, "old")
    write(ROWS)
    os.utime(file, ns=(0, 0))
    with pytest.raises(DataError, match="E630"):
        source.read("ada")


def test_a_file_that_changes_while_it_is_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(ROWS)
    source = open_source("csv:d.csv?columns=degrees", READINGS)

    class Late:
        """Stands for text of which a part is written while it is parsed."""

        def __init__(self, content: str, newline: str) -> None:
            self._lines = [content]
            os.utime("d.csv", ns=(0, 0))

        def __iter__(self) -> Iterator[str]:
            return iter(self._lines)

    monkeypatch.setattr(io, "StringIO", Late)
    with pytest.raises(DataError, match="E630"):
        source.read("ada")
