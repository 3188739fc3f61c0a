"""Data as people have it: what is converted, what stands for empty cells, and compressed files."""

from __future__ import annotations

import gzip
import json
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.records import write_records
from tests.runtime.data.test_tables import plain, refusal
from tffc.language import DType, SequenceType, StructType, TensorType, Type
from tffc.runtime.data.casts import converted
from tffc.runtime.data.location import open_data, open_source
from tffc.support.errors import DataError


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(**columns: Any) -> Type:
    return SequenceType(StructType(list(columns.items())))


# What a number is.

INFINITE, NOT_A_NUMBER = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("stored", "dtype", "number"),
    [
        (np.int64(2**31 - 1), DType.INT32, 2**31 - 1),
        (np.int64(2**31), DType.INT32, None),
        (np.int64(-1), DType.UINT64, None),
        (np.uint64(2**63), DType.INT64, None),
        (np.int64(2**24), DType.FLOAT32, 2.0**24),
        (np.int64(2**24 + 1), DType.FLOAT32, None),
        (np.int64(2**63 - 1), DType.FLOAT64, None),
        (np.uint64(2**64 - 1), DType.FLOAT64, None),
        (np.int64(-(2**63)), DType.FLOAT32, -(2.0**63)),
        (np.uint8(1), DType.BOOL, True),
        (np.uint8(2), DType.BOOL, None),
        (np.bool_(True), DType.INT32, 1),
        (np.float64(0.5), DType.FLOAT32, 0.5),
        (np.float64(0.1), DType.FLOAT32, None),
        (np.float64(1e300), DType.FLOAT32, None),
        (np.float64(1e-300), DType.FLOAT32, None),
        (np.float64(INFINITE), DType.FLOAT16, INFINITE),
        (np.float64(3), DType.INT32, 3),
        (np.float64(3.5), DType.INT32, None),
        (np.float64(2.0**63), DType.INT64, None),
        (np.float64(2.0**64), DType.UINT64, None),
        (np.float64(NOT_A_NUMBER), DType.INT32, None),
        (np.float64(NOT_A_NUMBER), DType.BOOL, None),
        (np.float64(1.5), DType.BFLOAT16, 1.5),
        (np.float64(1.001), DType.BFLOAT16, None),
        (np.float32(1.5), DType.COMPLEX64, 1.5),
        (np.int64(2**24 + 1), DType.COMPLEX64, None),
        (np.complex128(complex(NOT_A_NUMBER, 1e300)), DType.COMPLEX64, None),
        (np.complex64(1), DType.FLOAT32, None),
    ],
)
def test_what_loses_nothing(stored: Any, dtype: DType, number: Any) -> None:
    made = converted(np.array([stored]), dtype)
    assert (None if made is None else made[0]) == number
    if made is not None:
        assert made.dtype == dtype.dtype


def test_not_a_number_stays_what_it_is() -> None:
    made = converted(np.array([NOT_A_NUMBER]), DType.FLOAT32)
    assert made is not None
    assert np.isnan(made[0])


@pytest.mark.parametrize(
    ("stored", "dtype", "number"),
    [
        (np.float64(0.1), DType.FLOAT32, np.float32(0.1)),
        (np.int64(2**24 + 1), DType.FLOAT32, 2.0**24),
        (np.float64(INFINITE), DType.FLOAT32, INFINITE),
        (np.float64(1e300), DType.FLOAT32, None),
        (np.float64(1e300), DType.BFLOAT16, None),
        (np.float64(1.001), DType.BFLOAT16, ml_dtypes.bfloat16(1.001)),
        (np.complex128(complex(NOT_A_NUMBER, 1e300)), DType.COMPLEX64, None),
    ],
)
def test_what_is_rounded(stored: Any, dtype: DType, number: Any) -> None:
    made = converted(np.array([stored]), dtype, rounded=True)
    assert (None if made is None else made[0]) == number


# Parquet as pandas writes it.


def write_pandas(**columns: Any) -> str:
    """A file with the schema that pandas writes for a frame with labels of its own."""
    labels = pa.array(range(len(columns["client"])))
    table = pa.table({**columns, "__index_level_0__": labels})
    about = {
        "index_columns": ["__index_level_0__"],
        "columns": [{"name": name, "pandas_type": "object"} for name in columns],
        "pandas_version": "2.2.3",
    }
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(about)}), "visits.parquet")
    return "parquet:visits.parquet"


def test_a_frame_of_pandas() -> None:
    location = write_pandas(
        client=pa.array([7, 7, 8], pa.int64()),
        minutes=pa.array([30, 0, 7], pa.int64()),
        degrees=pa.array([0.5, -1.5, 2.0], pa.float64()),
        open=pa.array([True, False, True]),
        place=pa.array(["a", "b", "a"], pa.large_string()),
        kind=pa.array(["x", "y", "x"]).dictionary_encode(),
        level=pa.array([1, 2, 1], pa.int64()).dictionary_encode(),
        visits=pa.array([1.0, 2.0, 3.0], pa.float64()),
        pixels=pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64())),
        matrix=pa.array([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.int64()))),
    )
    kind = rows_of(
        minutes=np.int32, degrees=np.float32, open=np.bool_, place=np.str_, kind=np.str_,
        level=np.int32, visits=np.int32, pixels=TensorType(np.float32, [2]),
        matrix=TensorType(np.uint8, [None, 2]),
    )  # fmt: skip
    source = open_source(location, kind)
    assert source.clients == ("7", "8")
    rows: Any = source.read("7")
    assert plain(rows) == [
        [30, 0.5, True, b"a", b"x", 1, 1, [1.0, 2.0], [[1, 2], [3, 4]]],
        [0, -1.5, False, b"b", b"y", 2, 2, [3.0, 4.0], [[1, 2], [3, 4]]],
    ]
    assert [part.dtype for part in (rows[0][0], rows[0][1], rows[0][7], rows[0][8])] == [
        np.int32, np.float32, np.float32, np.uint8,
    ]  # fmt: skip
    assert "__index_level_0__" not in open_data(location).kinds()


def test_digits_are_lost_only_where_that_is_allowed() -> None:
    location = write_pandas(client=["ada", "ada"], x=[0.5, 0.1], y=[0.5, 0.1])
    kind = rows_of(x=np.float32, y=np.float32)
    assert refusal(location, kind) == (
        "visits.parquet, row 2 of the client: client ada: the cell of 'x' is 0.1, expected float32 "
        "[E677]\n"
        "  help: round to float32 with cast=float32, or cast=x:float32 for this column alone"
    )
    assert "the cell of 'y' is 0.1" in refusal(f"{location}?cast=x:float32", kind)
    for cast in ("float32", "x:float32,y:float32"):
        read: Any = open_source(f"{location}?cast={cast}", kind).read("ada")
        assert read[1] == (np.float32(0.1), np.float32(0.1))


def test_an_integer_that_is_too_large_is_refused() -> None:
    location = write_pandas(client=["ada", "ada"], x=[1, 3_000_000_000])
    assert refusal(location, rows_of(x=np.int32)) == (
        "visits.parquet, row 2 of the client: client ada: the cell of 'x' is 3000000000, expected "
        "int32 [E677]"
    )


def test_nothing_becomes_infinite() -> None:
    location = write_pandas(client=["ada"], x=[1e300])
    assert refusal(f"{location}?cast=float32", rows_of(x=np.float32)).endswith(
        "the cell of 'x' is 1e+300, expected float32 [E677]"
    )


def test_a_number_in_a_list() -> None:
    location = write_pandas(client=["ada"], x=[[0.5, 0.1]])
    kind = rows_of(x=TensorType(np.float32, [2]))
    assert "the cell of 'x' is a list with 0.1 in it, expected float32[2]" in refusal(
        location, kind
    )
    read: Any = open_source(f"{location}?cast=float32", kind).read("ada")
    assert read[0][0].tolist() == [0.5, float(np.float32(0.1))]


@pytest.mark.parametrize(
    ("cell", "shape", "found"),
    [
        ([[1, 2], [3]], [2, 2], "a list with lists of several lengths in it"),
        ([[1, 2], None], [2, 2], "a list with lists of several lengths in it"),
        ([[1, 2, 3]], [3, 1], "a list of 1 times 3"),
        ([[1], [2]], [2, 2], "a list of 2 times 1"),
    ],
)
def test_lists_in_lists_that_do_not_fit(cell: Any, shape: list[int], found: str) -> None:
    location = write_pandas(client=["ada"], x=pa.array([cell], pa.list_(pa.list_(pa.int64()))))
    assert f"the cell of 'x' is {found}, expected" in refusal(
        location, rows_of(x=TensorType(np.int64, shape))
    )


def test_a_list_without_lists_has_any_length_in_it() -> None:
    location = write_pandas(client=["ada"], x=pa.array([[]], pa.list_(pa.list_(pa.int64()))))
    read: Any = open_source(location, rows_of(x=TensorType(np.int64, [None, 3]))).read("ada")
    assert read[0][0].shape == (0, 3)


@pytest.mark.parametrize(
    "values", [pa.array([0], pa.timestamp("ns")), pa.array([0], pa.date32()), pa.array(["1"])]
)
def test_what_is_no_number_is_not_made_one(values: Any) -> None:
    location = write_pandas(client=["ada"], x=values)
    help = (
        "name another column with columns=, or write this one as int64"
        if values.type == pa.string()
        else "read times as numbers with times=x:seconds, which counts from 1970-01-01 in UTC; "
        "days, hours and other units work the same way"
    )
    assert refusal(location, rows_of(x=np.int64)) == (
        f"visits.parquet: the column 'x' is {values.type}, expected int64 [E620]\n  help: {help}"
    )


# Empty cells.


def write_csv() -> str:
    pathlib.Path("visits.csv").write_text("client,n,x,note\nada,1,0.5,a\nada,,,\nada,3, ,c\n")
    return "csv:visits.csv"


def write_nulls() -> str:
    return write_pandas(
        client=["ada"] * 3, n=[1, None, 3], x=[0.5, None, None], note=["a", None, "c"]
    )


def write_tfrecord() -> str:
    rows = ({"n": 1, "x": 0.5, "note": "a"}, {}, {"n": 3, "note": "c"})
    write_records("ada.tfrecord", rows)
    return "tfrecord:ada.tfrecord"


WRITERS = [write_csv, write_nulls, write_tfrecord]
NUMBERS = rows_of(n=np.int32, x=np.float32)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("0", [(1, 0.5), (0, 0.0), (3, 0.0)]),
        ("skip", [(1, 0.5)]),
        ("-1,x:2.5", [(1, 0.5), (-1, 2.5), (3, 2.5)]),
        ("n:skip,x:2.5", [(1, 0.5), (3, 2.5)]),
    ],
)
def test_empty_cells_by_rule(write: Callable[[], str], rule: str, expected: Any) -> None:
    read: Any = open_source(f"{write()}?empty={rule}", NUMBERS).read("ada")
    assert read == expected


@pytest.mark.parametrize("write", WRITERS)
def test_text_needs_a_rule_of_its_own(write: Callable[[], str]) -> None:
    location, kind = write(), rows_of(note=np.str_)
    read: Any = open_source(f"{location}?empty=note:none", kind).read("ada")
    assert read == [(b"a",), (b"none",), (b"c",)]
    read = open_source(f"{location}?empty=note:skip", kind).read("ada")
    assert read == [(b"a",), (b"c",)]


def test_not_a_number_for_empty_cells() -> None:
    read: Any = open_source(f"{write_csv()}?empty=nan&columns=x", SequenceType(np.float32)).read(
        "ada"
    )
    assert np.isnan(read[1])


def test_tensors_are_filled() -> None:
    cells = pa.array([[1.0, None], None], pa.list_(pa.float64()))
    location, kind = write_pandas(client=["ada"] * 2, x=cells), rows_of(x=TensorType(np.int32, [2]))
    read: Any = open_source(f"{location}?empty=7", kind).read("ada")
    assert plain(read) == [[[1, 7]], [[7, 7]]]
    assert open_source(f"{location}?empty=skip", kind).read("ada") == []


@pytest.mark.parametrize(
    ("write", "place", "found"),
    [
        (write_csv, "visits.csv:3", "empty"),
        (write_nulls, "visits.parquet, row 2 of the client", "null"),
        (write_tfrecord, "ada.tfrecord, record 2", "missing"),
    ],
)
def test_empty_cells_are_refused(write: Callable[[], str], place: str, found: str) -> None:
    assert refusal(write(), NUMBERS) == (
        f"{place}: client ada: the cell of 'n' is {found}, expected int32 [E677]\n"
        "  help: say what stands for such cells with empty=n:VALUE, or leave such rows out with "
        "empty=n:skip"
    )


# Rules that cannot be.


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("z:0", "empty= names the column 'z', which the program does not take"),
        ("abc", "says 'abc' for empty cells, which is not a value of `int32` or `float32` [E639]"),
        ("n:0.5", "says '0.5' for empty cells, which is not a value of `int32` [E639]"),
    ],
)
def test_rules_that_do_not_fit(write: Callable[[], str], rule: str, text: str) -> None:
    assert text in refusal(f"{write()}?empty={rule}", NUMBERS)


def test_a_rule_for_a_column_of_nearly_that_name() -> None:
    location = write_pandas(client=["ada"], degrees=[0.5])
    assert refusal(f"{location}?cast=degres:float32", rows_of(degrees=np.float32)) == (
        "visits.parquet: cast= names the column 'degres', which the program does not take [E657]\n"
        "  note: it takes 'degrees'\n"
        "  help: did you mean 'degrees'?"
    )


def test_a_type_that_numbers_are_not_rounded_to() -> None:
    assert refusal(f"{write_nulls()}?cast=n:int32", NUMBERS) == (
        "visits.parquet: cast=n:int32 says 'int32', expected a type to round to [E639]\n"
        "  help: write cast=TYPE or cast=COLUMN:TYPE with one of float16, bfloat16, float32, "
        "float64, complex64, complex128; what loses nothing is converted without it"
    )


def test_csv_takes_no_cast() -> None:
    assert refusal(f"{write_csv()}?cast=float32", NUMBERS) == (
        "csv:visits.csv?cast=float32: 'cast=float32' is not an option [E639]\n"
        "  help: text is read as the type that the program takes; this kind of data takes client, "
        "columns, delimiter, empty, max-bytes, times"
    )


# Arrays.


def test_arrays_are_converted() -> None:
    np.savez("ada.npz", x=np.array([0.5, 2]), n=np.array([1, 2]))
    read: Any = open_source(".", NUMBERS)
    assert read.check("ada") == (2,)
    value = read.read("ada")
    assert (value, type(value[0][0]), type(value[0][1])) == (
        [(1, 0.5), (2, 2.0)],
        np.int32,
        np.float32,
    )


def test_a_number_of_an_array_that_does_not_fit() -> None:
    np.savez("ada.npz", x=np.array([0.5, 0.1]), n=np.array([1, 2]))
    assert refusal(".", NUMBERS) == (
        "ada.npz: the array 'x' of float64 has 0.1 in it, which is not exactly one of float32 "
        "[E677]\n"
        "  help: round to float32 with cast=float32, or cast=x:float32 for this column alone"
    )
    read: Any = open_source("npz:.?cast=float32", NUMBERS).read("ada")
    assert read[1][1] == np.float32(0.1)
    np.savez("ada.npz", x=np.array([0.5, 2]), n=np.array([1, 2**40]))
    assert refusal(".", NUMBERS) == (
        "ada.npz: the array 'n' of int64 has 1099511627776 in it, which is not exactly one of "
        "int32 [E677]\n"
        "  help: correct the number, or let the program take int64"
    )


# CSV with cells and files as they are.


def test_integers_with_a_point() -> None:
    pathlib.Path("visits.csv").write_text("client,n,x\nada,12.0,1\nada,-3.,1\n")
    assert open_source("csv:visits.csv", NUMBERS).read("ada") == [(12, 1.0), (-3, 1.0)]


def compressed(content: bytes) -> str:
    pathlib.Path("visits.csv.gz").write_bytes(gzip.compress(content))
    return "csv:visits.csv.gz"


TEXT = b"client,n,x\nbob,1,0.5\nada,2,1\nbob,3,2\n"


def test_a_compressed_file() -> None:
    source = open_source(compressed(TEXT), NUMBERS)
    for opened in (source, pickle.loads(pickle.dumps(source))):
        assert opened.clients == ("ada", "bob")
        assert opened.read("bob") == [(1, 0.5), (3, 2.0)]
        assert opened.read("ada") == [(2, 1.0)]


def test_a_compressed_file_that_changes_is_refused() -> None:
    source = open_source(compressed(TEXT), NUMBERS)
    compressed(TEXT + b"ada,4,4\n")
    with pytest.raises(DataError) as caught:
        source.read("bob")
    assert caught.value.code == "E630"


def test_a_compressed_file_is_bounded() -> None:
    location = compressed(TEXT + b"ada,1,1\n" * 100_000)
    assert refusal(f"{location}?max-bytes=1000", NUMBERS) == (
        "visits.csv.gz: the decompressed content takes more than 1000 bytes [E629]\n"
        "  help: if it is right, allow more with max-bytes=NUMBER"
    )


@pytest.mark.parametrize("damage", ["end", "middle"])
def test_a_damaged_compressed_file(damage: str) -> None:
    location = compressed(TEXT)
    content = bytearray(pathlib.Path("visits.csv.gz").read_bytes())
    content[20] ^= 255
    pathlib.Path("visits.csv.gz").write_bytes(content[:-9] if damage == "end" else content)
    first, help = refusal(location, NUMBERS).splitlines()
    assert first.startswith("visits.csv.gz is damaged: ")
    assert first.endswith(" [E627]")
    assert help == "  help: compress it again with gzip; gzip -t says whether a file is whole"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"BZh91AY&SY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_files_that_others_compressed(start: bytes, kind: str) -> None:
    pathlib.Path("visits.csv").write_bytes(start + bytes(30))
    assert refusal("csv:visits.csv", NUMBERS) == (
        f"visits.csv is compressed by {kind}, expected text or a file of gzip [E664]\n"
        "  help: decompress it, or compress it with gzip instead"
    )


def test_a_table_may_begin_like_a_compressed_file() -> None:
    pathlib.Path("visits.csv").write_text("BZh9,client\n1,ada\n")
    assert open_data("csv:visits.csv").clients == ("ada",)


def test_a_path_to_a_compressed_file_says_of_which_kind_it_is() -> None:
    compressed(TEXT)
    with pytest.raises(DataError) as caught:
        open_data("visits.csv.gz")
    assert caught.value.help == "say of which kind it is: csv:visits.csv.gz"


TIMES = {
    "date32": pa.array([19844, 19845], pa.date32()),
    "seconds": pa.array([19844 * 86400, 19845 * 86400], pa.timestamp("s", "Europe/Rome")),
    "nanoseconds": pa.array([19844 * 86400 * 10**9, 19845 * 86400 * 10**9], pa.timestamp("ns")),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_in_parquet_are_numbers_in_the_unit_that_is_named(kind: str) -> None:
    location = write_pandas(client=["ada", "ada"], x=TIMES[kind])
    days = open_source(f"{location}?times=days", rows_of(x=np.int32))
    assert [int(x) for (x,) in days.read("ada")] == [19844, 19845]
    since = open_source(f"{location}?times=x:hours since 2024-05-01", rows_of(x=np.float32))
    assert [float(x) for (x,) in since.read("ada")] == [0.0, 24.0]
    assert "does not say a unit of time [E639]" in refusal(
        f"{location}?times=x:day", rows_of(x=np.int32)
    )


def test_times_in_csv_are_numbers_in_the_unit_that_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "at.csv"
    path.write_text("client,x\nada,2024-05-01\nada,2024-05-01 12:30:00.5+02:00\n")
    seconds = open_source(f"csv:{path}?times=seconds since 2024-05-01", rows_of(x=np.float64))
    assert [float(x) for (x,) in seconds.read("ada")] == [0.0, 37800.5]
    assert "expected int32" in refusal(f"csv:{path}?times=days", rows_of(x=np.int32))
