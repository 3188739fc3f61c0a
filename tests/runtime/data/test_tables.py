"""Clients in tables: CSV, Parquet and TFRecord files give the values that were put in."""

from __future__ import annotations

import collections
import csv
import json
import pathlib
import pickle
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.records import example, framed, write_records
from tffc.language import DType, SequenceType, StructType, TensorType, Type
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError, MissingExtraError

VISITS = SequenceType(
    collections.OrderedDict(
        place=TensorType(np.str_), minutes=TensorType(np.int32), at=TensorType(np.float32, [2])
    )
)

ROWS = [
    {"client": "bob", "place": "park", "minutes": 30, "at": [1.5, 2.0], "note": "a, b"},
    {"client": "ada", "place": "café\nbar", "minutes": -5, "at": [0.0, 0.1], "note": ""},
    {"client": "bob", "place": "home", "minutes": 0, "at": [3.0, 4.0], "note": '"'},
    {"client": "bob", "place": "home", "minutes": 7, "at": [3.0, 5.0], "note": ""},
]

Row = dict[str, Any]
Write = Callable[[Sequence[Row]], str]


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_csv(rows: Sequence[Row]) -> str:
    with open("visits.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(
                [" ".join(map(str, v)) if isinstance(v, list) else v for v in row.values()]
            )
    return "csv:visits.csv"


def write_parquet(rows: Sequence[Row]) -> str:
    fields = {"client": pa.string(), "place": pa.string(), "minutes": pa.int32()}
    schema = pa.schema({**fields, "at": pa.list_(pa.float32()), "note": pa.string()})
    pq.write_table(pa.Table.from_pylist(list(rows), schema), "visits.parquet", row_group_size=2)
    return "parquet:visits.parquet"


def write_tfrecord(rows: Sequence[Row]) -> str:
    write_records("visits.tfrecord", rows)
    return "tfrecord:visits.tfrecord?client=client"


WRITERS = (write_csv, write_parquet, write_tfrecord)


def plain(value: Any) -> Any:
    """A value with arrays as lists."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def refusal(location: str, type: Type = VISITS) -> str:
    with pytest.raises(DataError) as caught:
        check_all(open_source(location, type))
    return str(caught.value)


@pytest.mark.parametrize("write", WRITERS)
def test_rows_are_the_elements_of_a_sequence(write: Write) -> None:
    source = open_source(write(ROWS), VISITS)
    assert source.clients == ("ada", "bob")
    assert plain(source.read("ada")) == [
        ["café\nbar".encode(), -5, [0.0, pytest.approx(0.1)]],
    ]
    bob = source.read("bob")
    assert plain(bob) == [
        [b"park", 30, [1.5, 2.0]],
        [b"home", 0, [3.0, 4.0]],
        [b"home", 7, [3.0, 5.0]],
    ]
    assert (bob[0][1].dtype, bob[0][2].dtype) == (np.int32, np.float32)
    assert [source.check(client) for client in source.clients] == [(1,), (3,)]


@pytest.mark.parametrize("write", WRITERS)
def test_another_process_opens_the_files_itself(write: Write) -> None:
    source = open_source(write(ROWS), VISITS)
    other = pickle.loads(pickle.dumps(source))
    assert plain(other.read("bob")) == plain(source.read("bob"))


@pytest.mark.parametrize("write", WRITERS)
def test_threads_read_at_once(write: Write) -> None:
    rows = [{**row, "client": f"{n:02}"} for n in range(20) for row in ROWS]
    source = open_source(write(rows), VISITS)
    expected = {client: plain(source.read(client)) for client in source.clients}
    found: dict[str, Any] = {}

    def read(clients: Sequence[str]) -> None:
        found.update({client: plain(source.read(client)) for client in clients})

    threads = [threading.Thread(target=read, args=[source.clients[n::4]]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


@pytest.mark.parametrize("write", WRITERS)
def test_a_client_with_one_row_holds_plain_tensors(write: Write) -> None:
    location = write([ROWS[1], {**ROWS[0], "client": "eve"}])
    kind = StructType([("minutes", np.int32), ("at", TensorType(np.float32, [None]))])
    assert plain(open_source(location, kind).read("eve")) == [30, [1.5, 2.0]]


@pytest.mark.parametrize("write", WRITERS)
def test_a_client_with_several_rows_holds_no_plain_tensors(write: Write) -> None:
    location = write(ROWS)
    file = location.partition(":")[2].partition("?")[0]
    assert refusal(location, StructType([("minutes", np.int32)])) == (
        f"{file}: client bob has 3 rows, and 'minutes' is one `int32`, for which a client has one "
        "row [E620]\n"
        "  help: let the program take a sequence, or write one row for each client"
    )


@pytest.mark.parametrize("write", WRITERS)
def test_columns_may_be_named(write: Write) -> None:
    location = write(ROWS)
    option = ("&" if "?" in location else "?") + "columns=minutes"
    source = open_source(location + option, SequenceType(np.int32))
    assert source.read("bob") == [30, 0, 7]
    pair = StructType([np.int32, np.int32])
    assert refusal(location + option, SequenceType(pair)).endswith(
        ": 1 columns are given for the 2 tensors of `<int32,int32>*` [E622]\n"
        "  help: name one column for each tensor, in the order of the type; a name cannot have a "
        "comma"
    )


@pytest.mark.parametrize("write", WRITERS)
def test_only_one_size_may_be_unknown(write: Write) -> None:
    location = write(ROWS)
    kind = SequenceType({"at": TensorType(np.float32, [None, None])})
    assert refusal(location, kind).endswith(
        ": the column 'at' cannot hold `float32[?,?]`, for only one size may be unknown [E624]"
        "\n  help: declare all sizes of the tensor but one"
    )


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_missing_column_is_refused(write: Write) -> None:
    location = write([{"client": "ada", "place": "x", "minutes": 1, "at": [1.0], "note": ""}])
    file = location.partition(":")[2]
    start = (
        f"{file}: there is no column 'age', expected str [E622]\n"
        "  note: the columns are 'place', 'minutes', 'at', 'note'\n"
        "  help: say which columns to take: columns="
    )
    taken = {"minutes": np.int32, "age": np.str_}
    others = "'place', 'at', 'note'" if write is write_csv else "'place', 'note'"
    assert refusal(location, SequenceType(taken)) == (
        f"{start}minutes,COLUMN, with COLUMN one of {others}"
    )
    taken = {"place": np.str_, "at": TensorType(np.float32, [1]), "minutes": np.int32}
    assert refusal(location, SequenceType({**taken, "age": np.str_})) == (
        f"{start}place,at,minutes,note"
    )


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_named_column_that_is_missing_is_refused(write: Write) -> None:
    row = {"client": "ada", "place": "x", "minutes": 1, "at": [1.0], "note": ""}
    location = write([row])
    file = location.partition(":")[2]
    for name, help in (("minuets", "did you mean 'minutes'?"), ("x", "name columns of the table")):
        assert refusal(f"{location}?columns={name}", SequenceType({"age": np.int32})) == (
            f"{file}: columns= names {name!r}, and there is no such column [E657]\n"
            "  note: the columns are 'place', 'minutes', 'at', 'note'\n"
            f"  help: {help}"
        )


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_missing_column_of_clients_is_refused(write: Write) -> None:
    location = write(ROWS)
    file = location.partition(":")[2]
    assert refusal(f"{location}?client=user") == (
        f"{file}: there is no column 'user' that says which client a row belongs to [E657]\n"
        "  note: the columns are 'client', 'place', 'minutes', 'at', 'note'\n"
        "  help: name it with client=NAME"
    )


def test_the_usual_column_of_clients_is_like_few_others(tmp_path: pathlib.Path) -> None:
    """Nobody wrote that name, so what happens to be spelt much like it was not meant."""
    for header, help in (
        ("person,length", "name it with client=NAME"),
        ("Client_ID,length", "did you mean 'Client_ID'? name it with client=NAME"),
    ):
        (tmp_path / "x.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(DataError) as caught:
            open_data(f"csv:{tmp_path}/x.csv")
        assert (caught.value.code, caught.value.help) == ("E657", help)


def test_another_character_between_the_names_is_seen(tmp_path: pathlib.Path) -> None:
    for between, option in ((";", ";"), ("\t", "%09"), ("|", "|")):
        (tmp_path / "x.csv").write_text(f"user{between}length\nada{between}2\n")
        for client in ("client=user", ""):
            with pytest.raises(DataError) as caught:
                open_data(f"csv:{tmp_path}/x.csv?{client}")
            assert caught.value.code == "E657"
            assert caught.value.help == (
                f"the names have {between!r} between them: add delimiter={option}"
            )
        location = f"csv:{tmp_path}/x.csv?client=user&delimiter={option}"
        assert open_data(location).clients == ("ada",)


def test_numbers_that_other_programs_write_otherwise(tmp_path: pathlib.Path) -> None:
    comma = "write numbers with a point, as in 1.5, in the place of the comma"
    missing = (
        "a value that is missing is an empty cell: write nothing there, and say what stands for it "
        "with empty=length:VALUE, or empty=length:skip"
    )
    for cell, help in (("1,5", comma), ("-2,25e3", comma), ("NA", missing), (" null", missing)):
        (tmp_path / "x.csv").write_text(f"client;length\nada;{cell}\n")
        source = open_source(
            f"csv:{tmp_path}/x.csv?delimiter=;", SequenceType({"length": np.float32})
        )
        with pytest.raises(DataError) as caught:
            source.check("ada")
        assert (caught.value.code, caught.value.help) == ("E677", help)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_column_of_nearly_that_name_is_suggested(write: Write) -> None:
    location = write(ROWS)
    with pytest.raises(DataError) as caught:
        open_data(f"{location}?client=clint")
    assert caught.value.help == "did you mean 'client'? name it with client=NAME"
    with pytest.raises(DataError) as caught:
        open_source(location, SequenceType({"minute": np.int32}))
    assert caught.value.help == "say which columns to take: columns=minutes"


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (write_csv, "visits.csv:3"),
        (write_parquet, "visits.parquet, row group 0, row 1"),
        (write_tfrecord, "visits.tfrecord, record 2"),
    ],
)
def test_a_row_without_client_is_refused(write: Write, place: str) -> None:
    assert refusal(write([ROWS[0], {**ROWS[1], "client": ""}])) == (
        f"{place}: the row has nothing in the column of clients, 'client' [E694]\n"
        "  help: write the client's name there, or name another column with client=NAME"
    )


@pytest.mark.parametrize(
    ("write", "place", "found"),
    [
        (write_csv, "visits.csv:6", "'1.0 2.0 3.0'"),
        (write_parquet, "visits.parquet, row 3 of the client", "a list of 3"),
        (write_tfrecord, "visits.tfrecord, record 3", "float32[3]"),
    ],
)
def test_a_cell_of_another_shape_is_refused(write: Write, place: str, found: str) -> None:
    location = write([*ROWS[:3], {**ROWS[3], "at": [1.0, 2.0, 3.0]}])
    assert refusal(location) == (
        f"{place}: client bob: the cell of 'at' is {found}, expected float32[2] [E677]"
    )


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("csv:no.csv", "cannot read no.csv: No such file or directory [E626]"),
        ("csv:", "cannot read the empty path: No such file or directory [E626]"),
        ("tfrecord:no.tfrecord", "no.tfrecord: there is no file [E640]"),
        ("tfrecord:.", ".: there is no file that ends in .tfrecord or .tfrecords [E640]"),
        ("parquet:no-*", "no-*: there is no file [E640]"),
    ],
)
def test_missing_files_are_refused(location: str, text: str) -> None:
    assert refusal(location) == text


# CSV.


def csv_of(text: str) -> str:
    pathlib.Path("visits.csv").write_bytes(text.encode())
    return "csv:visits.csv"


@pytest.mark.parametrize(
    ("type", "cell", "value"),
    [
        (np.bool_, "True", True),
        (np.bool_, "0", False),
        (np.uint8, "255", 255),
        (np.int64, "-9223372036854775808", -(2**63)),
        (np.uint64, "18446744073709551615", 2**64 - 1),
        (np.float64, "0.1", 0.1),
        (np.float32, "-inf", -np.inf),
        (DType.BFLOAT16, "1.5", 1.5),
        (np.complex64, "1+2j", 1 + 2j),
        (np.str_, " x ", b" x "),
        (TensorType(np.int32, [2, 2]), "1 2  3 4", [[1, 2], [3, 4]]),
        (TensorType(np.int32, [None]), "", []),
        (TensorType(np.int32, [None, 2]), "1 2 3 4", [[1, 2], [3, 4]]),
        (TensorType(np.int32, None), "1 2", [1, 2]),
    ],
)
def test_what_cells_of_text_are(type: Any, cell: str, value: Any) -> None:
    location = csv_of(f"client,x\nada,{cell}\n")
    assert plain(open_source(location, SequenceType([("x", type)])).read("ada")) == [[value]]


@pytest.mark.parametrize(
    ("type", "cell", "found"),
    [
        (np.int32, "1.5", "'1.5'"),
        (np.uint8, "256", "'256'"),
        (np.uint8, "-1", "'-1'"),
        (np.int32, "1_0", "'1_0'"),
        (np.float32, "x" * 50, f"'{'x' * 40}...'"),
        (np.float32, "1e300", "'1e300'"),
        (np.bool_, "yes", "'yes'"),
    ],
)
def test_what_cells_of_text_are_not(type: Any, cell: str, found: str) -> None:
    location = csv_of(f"client,x\nada,{cell}\n")
    assert refusal(location, SequenceType([("x", type)])) == (
        f"visits.csv:2: client ada: the cell of 'x' is {found}, expected {TensorType(type)} [E677]"
    )


def test_a_row_with_too_few_cells_is_its_clients() -> None:
    location = csv_of("client,x\nada,1\n\nbob\n")
    source = open_source(location, SequenceType([("x", np.int32)]))
    assert source.read("ada") == [(1,)]
    with pytest.raises(DataError) as caught:
        source.read("bob")
    assert str(caught.value) == (
        "visits.csv:4: client bob: the row has 1 cells, expected 2 [E687]\n"
        "  help: put quotation marks around a cell that contains the delimiter, or name "
        "another delimiter with delimiter=CHARACTER"
    )


def test_a_file_that_is_no_csv_is_refused() -> None:
    assert refusal(csv_of('client,x\nada,"1\n')) == (
        "visits.csv:2: this is not CSV in UTF-8: unexpected end of data [E687]\n"
        "  help: close the quotation mark that is open at the end of the file"
    )


def test_a_file_of_a_spreadsheet() -> None:
    location = csv_of("\ufeffclient;x\r\nada;1\r\n") + "?delimiter=;"
    assert open_source(location, SequenceType([("x", np.int32)])).read("ada") == [(1,)]


def test_an_empty_table_is_refused() -> None:
    assert refusal(csv_of("client,x\n")) == (
        "visits.csv is without data: there is no row in it [E640]\n"
        "  help: write at least one row for each client, below the names of the columns"
    )


# Parquet.


def test_a_column_of_another_type_is_refused_before_rows_are_read() -> None:
    location = write_parquet(ROWS)
    assert refusal(location, SequenceType({"minutes": np.str_})) == (
        "visits.parquet: the column 'minutes' is int32, expected str [E620]\n"
        "  help: name another column with columns=, or write this one as str"
    )
    assert refusal(location, SequenceType({"at": np.float32})) == (
        "visits.parquet: the column 'at' is list<element: float>, expected float32 [E620]\n"
        "  help: name another column with columns=, or write this one as float32"
    )


@pytest.mark.parametrize("column", ["minutes", "at"])
def test_null_is_refused(column: str) -> None:
    wanted = dict(VISITS.element.items())  # pyright: ignore  # the element is a struct
    assert refusal(write_parquet([*ROWS, {**ROWS[1], column: None}])) == (
        f"visits.parquet, row 2 of the client: client ada: the cell of {column!r} is null, "
        f"expected {wanted[column]} [E677]\n"
        f"  help: say what stands for such cells with empty={column}:VALUE, or leave such rows out "
        f"with empty={column}:skip"
    )
    assert "a list with null in it" in refusal(write_parquet([{**ROWS[1], "at": [1.0, None]}]))


def test_columns_of_other_kinds() -> None:
    table = pa.table(
        {
            "client": pa.array([7, 7]),
            "s": pa.array(["a", "b"]).dictionary_encode(),
            "b": pa.array([b"\0", b""]),
            "t": pa.array([True, False]),
            "h": pa.array(np.array([1.5, 2], np.float16)),
            "f": pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)),
        }
    )
    pq.write_table(table, "x.parquet")
    names = {"s": np.str_, "b": np.str_, "t": np.bool_, "h": np.float16}
    kind = SequenceType({**names, "f": TensorType(np.uint8, [2, 1])})
    source = open_source("parquet:x.parquet", kind)
    assert source.clients == ("7",)
    assert plain(source.read("7")) == [
        [b"a", b"\0", True, 1.5, [[1], [2]]],
        [b"b", b"", False, 2.0, [[3], [4]]],
    ]


def test_parquet_may_be_many_files() -> None:
    for number, rows in enumerate((ROWS[:2], ROWS[2:])):
        write_parquet(rows)
        pathlib.Path("visits.parquet").rename(f"part-{number}.parquet")
    source = open_source("parquet:part-*.parquet", VISITS)
    assert [row[1] for row in source.read("bob")] == [30, 0, 7]
    pq.write_table(pa.table({"client": ["eve"], "place": [1]}), "part-2.parquet")
    assert refusal("parquet:.").splitlines()[0] == (
        "./part-2.parquet has other columns than ./part-0.parquet [E613]"
    )


def test_a_file_that_is_no_parquet_is_refused() -> None:
    pathlib.Path("visits.parquet").write_text("client,x\n" * 10)
    assert refusal("parquet:visits.parquet").startswith(
        "visits.parquet is not a Parquet file, or is damaged: Parquet magic bytes not found"
    )
    with pytest.raises(DataError, match="E627"):
        open_data("parquet:visits.parquet")


def test_parquet_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    location = write_parquet(ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError) as caught:
        open_data(location)
    assert str(caught.value) == (
        "reading Parquet needs pyarrow [E680]\n  help: in tffc's checkout: pip install '.[parquet]'"
    )


def test_a_pyarrow_that_does_not_fit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = write_parquet(ROWS)
    package = tmp_path / "broken" / "pyarrow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('pyarrow requires NumPy 2.0')\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(package.parent)
    with pytest.raises(MissingExtraError) as caught:
        open_data(location)
    assert str(caught.value) == (
        "reading Parquet needs pyarrow, which cannot be imported [E680]\n"
        "  note: pyarrow requires NumPy 2.0\n"
        "  help: install releases that fit"
    )


# TFRecord.


def test_files_of_tensorflow_are_read() -> None:
    import tensorflow as tf

    def example(pixels: list[int], label: int) -> bytes:
        features = {
            "pixels": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(pixels)])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    for client, count in (("ada", 2), ("bob", 0)):
        with tf.io.TFRecordWriter(f"{client}.tfrecord") as writer:
            for number in range(count):
                writer.write(example([number, 255], number))
    kind = SequenceType({"pixels": TensorType(np.uint8, [2]), "label": np.int32})
    source = open_source("tfrecord:.", kind)
    assert source.clients == ("ada", "bob")
    assert plain(source.read("ada")) == [[[0, 255], 0], [[1, 255], 1]]
    assert source.read("bob") == []
    assert open_data("tfrecord:.").kinds() == {"label": "int64", "pixels": "2 bytes"}


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        (np.bool_, 1, True),
        (np.uint8, 200, 200),
        (np.int32, 2.0, 2),
        (np.float32, 7, 7.0),
        (np.float64, 0.5, 0.5),
        (np.float16, 0.5, 0.5),
        (TensorType(np.int32, [2, 2]), [1, 2, 3, 4], [[1, 2], [3, 4]]),
        (TensorType(np.float64, [1]), struct.pack("<d", 0.1), [0.1]),
        (TensorType(np.str_, [2]), ["a", "b"], [b"a", b"b"]),
    ],
)
def test_what_features_are(type: Any, value: Any, expected: Any) -> None:
    write_records("ada.tfrecord", [{"x": value}])
    source = open_source("tfrecord:ada.tfrecord", StructType([("x", type)]))
    assert plain(source.read("ada")) == [expected]


@pytest.mark.parametrize(
    ("type", "row", "found"),
    [
        (np.bool_, {"x": 2}, "2"),
        (np.uint8, {"x": 256}, "256"),
        (np.uint64, {"x": -1}, "-1"),
        (np.int32, {"x": 1.5}, "1.5"),
        (np.int32, {"x": b"abc"}, "3 bytes"),
        (np.str_, {"x": 1}, "int64"),
    ],
)
def test_what_features_are_not(type: Any, row: Row, found: str) -> None:
    write_records("ada.tfrecord", [row])
    assert refusal("tfrecord:ada.tfrecord", StructType([("x", type)])) == (
        f"ada.tfrecord, record 1: client ada: the cell of 'x' is {found}, "
        f"expected {TensorType(type)} [E677]"
    )


def test_a_feature_spec_is_held_against_the_program_before_records_are_read() -> None:
    pathlib.Path("spec.json").write_text(json.dumps({"place": "str", "minutes": "int64"}))
    location = f"{write_tfrecord(ROWS)}&spec=spec.json"
    assert open_source(location, SequenceType({"place": np.str_})).read("ada") == [
        ("café\nbar".encode(),)
    ]
    assert open_data(location).kinds() == {"place": "str", "minutes": "int64"}
    assert refusal(location, SequenceType({"minutes": np.int32})) == (
        "visits.tfrecord: the column 'minutes' is int64, expected int32 [E620]\n"
        "  help: write int32 in the feature spec if the records are to be read as that"
    )


@pytest.mark.parametrize("text", ["[]", "{", '{"x": 3}'])
def test_what_is_no_feature_spec_is_refused(text: str) -> None:
    pathlib.Path("spec.json").write_text(text)
    assert refusal(f"{write_tfrecord(ROWS)}&spec=spec.json") == (
        "spec.json is not a feature spec [E686]\n"
        '  help: write the type of each feature: {"pixels": "uint8[64]", "label": "int32"}'
    )


def damaged() -> Iterator[tuple[bytes, int]]:
    whole = framed(example({"x": 1}))
    for place in (0, 9, 14, len(whole) - 1):
        content = bytearray(whole)
        content[place] ^= 1
        yield whole + bytes(content), len(whole)
    yield whole[:-1], 0
    yield b"client,x\n", 0


@pytest.mark.parametrize(("content", "start"), list(damaged()))
def test_damaged_files_are_refused(content: bytes, start: int) -> None:
    pathlib.Path("ada.tfrecord").write_bytes(content)
    assert refusal("tfrecord:ada.tfrecord", SequenceType({"x": np.int32})) == (
        f"ada.tfrecord is not a TFRecord file, or is damaged, from byte {start} on [E627]\n"
        "  help: write the file again, for example with tf.io.TFRecordWriter"
    )


def test_compressed_files_are_refused() -> None:
    pathlib.Path("ada.tfrecord").write_bytes(b"\x1f\x8b" + bytes(20))
    assert refusal("tfrecord:ada.tfrecord") == (
        "ada.tfrecord is compressed [E664]\n  help: decompress it, for example with gunzip"
    )


def test_records_of_other_messages_are_refused() -> None:
    pathlib.Path("ada.tfrecord").write_bytes(framed(b"\xff\xff"))
    assert refusal("tfrecord:ada.tfrecord") == (
        "ada.tfrecord holds a record that is not a tf.train.Example [E627]\n"
        "  help: write serialized tf.train.Example messages"
    )
