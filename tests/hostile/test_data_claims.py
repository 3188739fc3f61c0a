"""Data files that say what is not so: each is an error about the client's data, at once."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.records import example, framed
from tffc.language import SequenceType, TensorType, Type
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError

READINGS = SequenceType(TensorType(np.float32))
WORDS = SequenceType(TensorType(np.str_))
EMPTY = SequenceType(TensorType(np.float32, [None]))


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()


def refusal(location: str, type: Type = READINGS) -> DataError:
    """The error of the first client that is read, or of opening the source."""
    with pytest.raises(DataError) as caught:
        read_all(location, type)
    return caught.value


def read_all(location: str, type: Type = READINGS) -> None:
    source = open_source(location, type)
    for client in source.clients:
        source.read(client)


def reason(location: str, type: Type = READINGS) -> str:
    """Why reading a file failed."""
    error = refusal(location, type)
    assert error.code == "E627"
    return error.notes[0].removeprefix("reading it failed with: ")


def npy(head: str, content: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """An array in the format `.npy` with any head."""
    size = 2 if version == b"\1\0" else 4
    text = head.encode("utf-8")
    return b"\x93NUMPY" + version + len(text).to_bytes(size, "little") + text + content


def head(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def write_npz(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile("d/ada.npz", "w", method) as file:
        for name, content in members:
            file.writestr(name, content)


def patch_members(offset: int, value: int, size: int = 2) -> None:
    """Changes a field of the heads of all members, both where they stand and in the directory."""
    content = bytearray(pathlib.Path("d/ada.npz").read_bytes())
    for mark, shift in ((b"PK\3\4", 0), (b"PK\1\2", 2)):
        start = content.find(mark)
        while start >= 0:
            at = start + offset + shift
            content[at : at + size] = value.to_bytes(size, "little")
            start = content.find(mark, start + 4)
    pathlib.Path("d/ada.npz").write_bytes(content)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        "{}",
        "(" * 4000,
        "-" * 9000 + "1",
        "[" * 150 + "]" * 150,
        "{{'descr': '<f4'}: 1}",
        "{'descr': {'a': {}}, 'fortran_order': False, 'shape': (1,)}",
        head("(True,)"),
        head("(-1,)"),
        head("(1.0,)"),
        head("(1)"),
        head("([1],)"),
        head("(1099511627776,)"),
        head("(9223372036854775807, 4)"),
        head("(" + "9" * 5000 + ",)"),
        head("(" + "0," * 100 + ")"),
        head("(2,)"),
        head("(0,)"),
        head("(1,)", "'<f400'"),
        head("(1,)", "'|S99999999999999'"),
        head("(1,)", "[('a', '<f4'), ('a', '<f4')]"),
        head("(1,)", "'\\x00'"),
        "\N{SNOWMAN}" * 10,
        "x" * 20_000,
    ],
    ids=map(str, range(25)),
)
@pytest.mark.parametrize("version", [b"\1\0", b"\2\0", b"\3\0", b"\4\0"], ids="1234")
def test_heads_of_arrays_that_are_none(text: str, version: bytes) -> None:
    write_npz(("arr_0.npy", npy(text, b"\0" * 4, version)))
    reason("d")


@pytest.mark.parametrize("version", [b"\1\0", b"\2\0", b"\3\0"], ids="123")
def test_heads_that_are_right(version: bytes) -> None:
    for text in (head("(1,)"), head("( 1 , )"), head("(1,)").replace(" ", "")):
        write_npz(("arr_0.npy", npy(text, b"\0" * 4, version)))
        assert open_source("d", READINGS).read("ada") == [0]


def test_what_is_found_and_what_is_held() -> None:
    write_npz(("arr_0.npy", npy(head("(1099511627776,)"), b"\0" * 4)))
    error = refusal("d")
    assert str(error) == (
        "d/ada.npz is not an .npz file, or is damaged [E627]\n"
        "  note: reading it failed with: the array 'arr_0' of <f4 has the shape [1099511627776], "
        "and 4 bytes\n"
        "  help: write it with numpy.savez or numpy.savez_compressed"
    )


def test_elements_without_bytes() -> None:
    for descr in ("'|S0'", "'<U0'", "'|V0'"):
        write_npz(("arr_0.npy", npy(head("(1099511627776,)", descr))))
        assert "has the shape [1099511627776], and 0 bytes" in reason("d", WORDS)


def test_a_long_sequence_of_nothing() -> None:
    write_npz(("arr_0.npy", npy(head("(1099511627776, 0)"))))
    assert refusal("d", EMPTY).code == "E629"


def test_truth_values_that_are_none() -> None:
    write_npz(("arr_0.npy", npy(head("(2,)", "'|b1'"), b"\1\2")))
    assert "has truth values that are neither 0 nor 1" in reason(
        "d", SequenceType(TensorType(np.bool_))
    )


def test_encrypted_members() -> None:
    write_npz(("arr_0.npy", npy(head("(1,)"), b"\0" * 4)))
    patch_members(6, 1)
    assert reason("d") == "the member 'arr_0.npy' is encrypted"


@pytest.mark.parametrize("method", [1, 6, 9, 12, 14, 93, 95, 97, 98, 99])
def test_methods_of_compression(method: int) -> None:
    write_npz(("arr_0.npy", npy(head("(1,)"), b"\0" * 4)))
    patch_members(8, method)
    assert reason("d") == (
        f"the member 'arr_0.npy' is compressed by method {method}, expected 0 (stored) or 8 "
        "(deflated)"
    )


def test_members_that_say_they_are_larger_than_the_file() -> None:
    write_npz(("arr_0.npy", npy(head("(1,)"), b"\0" * 4)), method=zipfile.ZIP_DEFLATED)
    patch_members(22, 2**31, 4)
    assert reason("d") == "the member 'arr_0.npy' says that it has 2147483648 bytes"


def test_two_members_of_one_name() -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_npz(*[("arr_0.npy", npy(head("(1,)"), b"\0" * 4))] * 2)
    assert reason("d") == "two members are called 'arr_0.npy'"


def test_a_bomb() -> None:
    np.savez_compressed("d/ada.npz", np.zeros(2**22, np.float32))
    assert os.path.getsize("d/ada.npz") < 2**15
    assert len(open_source("d", READINGS).read("ada")) == 2**22
    error = refusal("npz:d?max-bytes=1000000")
    assert str(error) == (
        "d/ada.npz: with the array 'arr_0' the client's data takes 268435456 bytes, expected no "
        "more than 1000000 [E629]\n"
        "  help: if it is right, allow more: npz:FOLDER?max-bytes=NUMBER"
    )
    np.savez_compressed("d/ada.npz", np.zeros(2**25, np.float32))
    assert refusal("d").code == "E629"


def test_what_is_large_and_is_not_compressed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tffc.runtime.data.compressed.MAX_BYTES", 1000)
    batch = SequenceType(TensorType(np.float32, [None]))
    np.savez("d/ada.npz", np.ones((2, 1000), np.float32))
    assert len(open_source("d", batch).read("ada")) == 2


def test_lengths_of_strings_that_are_none() -> None:
    for lengths in (["x"], [0.5], [2**62, 2**62, 2**63 - 1], [3]):
        content = {"0.bytes": np.zeros(1, np.uint8), "0.lengths": np.array(lengths)}
        np.savez("d/ada.npz", **content)
        assert refusal("d", WORDS).code in ("E622", "E627")


@pytest.mark.parametrize("code", [0xD800, 0x110000, 2**31])
def test_strings_that_are_no_text(code: int) -> None:
    write_npz(("arr_0.npy", npy(head("(1,)", "'<U1'"), code.to_bytes(4, "little"))))
    error = refusal("d", WORDS)
    assert error.code == "E628"
    assert error.message.startswith(
        "d/ada.npz: the array '0' has a string that is not Unicode text: "
    )


def write_csv(text: str | bytes) -> str:
    content = text.encode() if isinstance(text, str) else text
    pathlib.Path("d.csv").write_bytes(content)
    return "csv:d.csv?columns=degrees"


@pytest.mark.parametrize(
    "cell",
    ["1e400", "-1e400", "1e39", "9" * 5000, "-" + "9" * 400, "1e", "--1", "1_0", "", "0x10"],
)
def test_numbers_out_of_range(cell: str) -> None:
    for dtype in (np.float32, np.int32, np.complex64, np.bool_):
        location = write_csv(f"client,degrees\nada,{cell}\n")
        assert refusal(location, SequenceType(TensorType(dtype))).code == "E677"


def test_numbers_that_are_infinite() -> None:
    location = write_csv("client,degrees\nada,inf\nada,-Infinity\nada,nan\nada,1e38\n")
    assert [float(each) for each in open_source(location, READINGS).read("ada")][:2] == [
        float("inf"),
        float("-inf"),
    ]
    location = write_csv("client,degrees\nada,inf+1j\n")
    complex_type = SequenceType(TensorType(np.complex64))
    assert open_source(location, complex_type).read("ada") == [complex("inf+1j")]
    write_csv("client,degrees\nada,inf+1e400j\n")
    assert refusal(location, complex_type).code == "E677"


@pytest.mark.parametrize("given", ["", "ab", "%0A", "%0D", '"', "%00", "%22"])
def test_delimiters_that_are_none(given: str) -> None:
    write_csv("client,degrees\nada,1\n")
    assert refusal(f"csv:d.csv?delimiter={given}").code == "E639"


def test_the_delimiter_is_named() -> None:
    write_csv("client,degrees\nada,1\n")
    assert str(refusal("csv:d.csv?delimiter=ab")) == (
        "d.csv: the delimiter is 'ab', expected one character that is neither a quotation mark nor "
        "the end of a line [E639]\n"
        "  help: write delimiter=CHARACTER, with %09 for a tab and %26 for an ampersand"
    )


def test_two_columns_of_one_name() -> None:
    location = write_csv("client,degrees,degrees\nada,1,2\n")
    assert str(refusal(location)) == (
        "d.csv: 2 columns are called 'degrees', expected one of each name [E623]\n"
        "  help: give all but one of them other names"
    )
    table = pa.table([["ada"], pa.array([1.0], pa.float32()), [2.0]], ["client", "degrees", "x"])
    pq.write_table(table.rename_columns(["client", "degrees", "degrees"]), "d.parquet")
    assert refusal("parquet:d.parquet?columns=degrees").code == "E623"
    write_csv("client,degrees,,\nada,1,,\n")
    assert open_source(location, READINGS).read("ada") == [1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "E657"),
        (b"\xef\xbb\xbf", "E657"),
        (b"client,degrees\n", "E640"),
        (b"client,degrees\nada\n", "E687"),
        (b'client,degrees\nada,"1\n', "E687"),
        (b"client,degrees\nada,\xff\n", "E687"),
        (b"client,degrees\nada,\0\n", "E677"),
        (b"client,degrees\nada," + b"1" * 200_000 + b"\n", "E687"),
        (b"client,degrees\rada,1\r", "E687"),
    ],
)
def test_texts_that_are_no_table(text: bytes, code: str) -> None:
    assert refusal(write_csv(text)).code == code


def test_an_empty_place_is_not_this_folder() -> None:
    np.savez("ada.npz", np.array([1], np.float32))
    error = refusal("")
    assert str(error) == (
        "the place of the clients' data is empty [E640]\n  help: give . for this folder"
    )


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            b'client,degrees\nada,"1\n',
            "close the quotation mark that is open at the end of the file",
        ),
        (
            b'client,degrees\nada,"1"2\n',
            "name the character between cells with delimiter=CHARACTER ",
        ),
        ("client,degrees\nada,1\n".encode("utf-16"), "save the file in UTF-8"),
        (
            b"client,degrees\nada," + b"1" * 200_000 + b"\n",
            "keep what is so large in a file of another kind, such as .npz or Parquet",
        ),
        (b"client,degrees\rada,1\r", "end lines with a line feed, and put quotation marks around "),
    ],
)
def test_advice_about_what_is_no_table(text: bytes, advice: str) -> None:
    error = refusal(write_csv(text))
    assert error.code == "E687"
    assert error.help is not None
    assert error.help.startswith(advice)


def test_a_file_of_one_line_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tffc.runtime.data.csv_file.LONGEST_LINE", 100)
    error = refusal(write_csv("client,degrees\nada," + "1" * 100 + "\n"))
    assert error.message == "d.csv:2: this is not CSV in UTF-8: a line has more than 100 bytes"


def test_a_mark_of_byte_order_and_other_ends_of_lines() -> None:
    location = write_csv("\ufeffclient,degrees\r\nada,1\r\n\r\n\ufeffbob,2\r\nada,3")
    source = open_source(location, READINGS)
    assert source.clients == ("ada", "\ufeffbob")
    assert [source.read(client) for client in source.clients] == [[1, 3], [2]]


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**40, 2**63, 2**64 - 1])
def test_lengths_of_records_that_are_none(length: int) -> None:
    record = example({"client": "ada", "degrees": 1.5})
    pathlib.Path("d.tfrecord").write_bytes(framed(record, length))
    assert refusal("tfrecord:d.tfrecord?columns=degrees").code in ("E627", "E627")


@pytest.mark.parametrize("content", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\x0a\x05"])
def test_records_that_are_no_examples(content: bytes) -> None:
    pathlib.Path("d.tfrecord").write_bytes(framed(content))
    assert refusal("tfrecord:d.tfrecord?columns=degrees").code == "E627"


@pytest.mark.parametrize(
    "text", ['{"a": "int32", "a": "str"}', "[" * 100_000, "9" * 5000, '{"a": 1}', "\xff"]
)
def test_feature_specs_that_are_none(text: str) -> None:
    pathlib.Path("d.tfrecord").write_bytes(framed(example({"degrees": 1.5})))
    pathlib.Path("spec.json").write_text(text, encoding="latin-1")
    assert refusal("tfrecord:d.tfrecord?spec=spec.json").code == "E686"
    assert refusal("tfrecord:d.tfrecord?spec=%00").code == "E626"
    assert refusal("tfrecord:d.tfrecord?spec=/dev/zero").message == (
        "cannot read /dev/zero: it is a device, expected a regular file"
    )


def write_parquet(clients: Any, degrees: Any = None, **options: Any) -> str:
    values = pa.array([1.0] * len(clients), pa.float32()) if degrees is None else degrees
    pq.write_table(pa.table({"client": clients, "degrees": values}), "d.parquet", **options)
    return "parquet:d.parquet?columns=degrees"


def test_clients_that_are_no_text() -> None:
    assert open_source(write_parquet(pa.array([b"\xff"])), READINGS).clients == ("\udcff",)
    binary = pa.array([b"\xff"]).cast(pa.binary())
    broken = pa.StringArray.from_buffers(1, *binary.buffers()[1:])
    assert refusal(write_parquet(broken)).code == "E627"


@pytest.mark.parametrize(
    "clients",
    [
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**62], pa.timestamp("us")),
        pa.array([0], pa.timestamp("us", "No/Where")),
    ],
)
def test_clients_of_other_kinds(clients: Any) -> None:
    assert refusal(write_parquet(clients)).code == "E627"


@pytest.mark.parametrize(
    "location", ["csv:d.csv.gz", "parquet:d.parquet"], ids=["lines", "row groups"]
)
def test_rows_that_are_compressed_are_counted(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost nothing to send, and each is looked at."""
    monkeypatch.setattr("tffc.runtime.data.compressed.MAX_ROWS", 9_000)
    pathlib.Path("d.csv.gz").write_bytes(gzip.compress(b"client,degrees\na,1\n" + b"\n" * 9_000))
    clients = pa.array(["a"] * 9_001).dictionary_encode()
    write_parquet(clients, pa.array(np.zeros(9_001, np.float32)), row_group_size=3_000)
    what = "lines" if "csv" in location else "rows"
    error = refusal(location)
    assert (error.code, error.message, error.help) == (
        "E629",
        f"{location.partition(':')[2]}: the decompressed content has more than 9000 {what}",
        "if it is right, allow more with max-bytes=NUMBER",
    )
    assert open_source(f"{location}?columns=degrees&max-bytes=1000000", READINGS).clients == ("a",)


def test_row_groups_that_are_too_large() -> None:
    location = write_parquet(["ada"] * 1000, row_group_size=1000)
    error = refusal(f"{location}&max-bytes=1000")
    assert error.code == "E629"
    assert error.message.startswith("d.parquet: row group 0 takes ")
    assert error.message.endswith(" bytes, expected no more than 1000")
    assert error.help == "write smaller row groups, or allow more with max-bytes=NUMBER"


def test_options_of_sources() -> None:
    write_csv("client,degrees\nada,1\n")
    assert str(refusal("csv:d.csv?client=a&client=b")) == (
        "csv:d.csv?client=a&client=b: the option 'client' is given twice [E639]"
        "\n  help: leave out one of the two"
    )
    assert str(refusal("npz:d?links=no")) == (
        "npz:d?links=no: the option 'links' is 'no', expected 'follow' [E639]"
    )
    for value in ("", "-1", "0", "1e9", "9" * 5000, "x"):
        assert refusal(f"npz:d?max-bytes={value}").code == "E639"


def test_links_out_of_a_folder() -> None:
    np.savez("secret.npz", np.ones(1, np.float32))
    os.symlink("../secret.npz", "d/ada.npz")
    assert refusal("d").message == (
        f"cannot read d/ada.npz: it is a link to {os.getcwd()}/secret.npz, outside of its folder"
    )
    assert open_source("npz:d?links=follow", READINGS).read("ada") == [1]
    os.rename("secret.npz", "d/bob.npz")
    os.remove("d/ada.npz")
    os.symlink("bob.npz", "d/ada.npz")
    assert open_source("d", READINGS).read("ada") == [1]


def test_links_out_of_a_folder_of_tables() -> None:
    pathlib.Path("ada.tfrecord").write_bytes(framed(example({"degrees": 1.5})))
    os.symlink("../ada.tfrecord", "d/ada.tfrecord")
    for path in ("d", "d/*.tfrecord"):
        location = f"tfrecord:{path}?columns=degrees"
        assert refusal(location).code == "E626"
        assert open_source(f"{location}&links=follow", READINGS).read("ada") == [1.5]
    assert open_source("tfrecord:d/ada.tfrecord?columns=degrees", READINGS).read("ada") == [1.5]


@pytest.mark.parametrize("kind", ["csv", "parquet", "tfrecord"])
@pytest.mark.parametrize("what", ["fifo", "device", "loop", "folder"])
def test_what_is_no_file(kind: str, what: str) -> None:
    match what:
        case "fifo":
            os.mkfifo(f"d.{kind}")
        case "device":
            os.symlink("/dev/zero", f"d.{kind}")
        case "loop":
            os.symlink(f"d.{kind}", f"d.{kind}")
        case _:
            os.mkdir(f"d.{kind}")
    code = refusal(f"{kind}:d.{kind}").code
    assert code in ("E626", "E640")


def test_what_is_no_file_in_a_folder() -> None:
    os.mkfifo("d/ada.npz")
    os.symlink("/dev/zero", "d/bob.npz")
    os.symlink("cid.npz", "d/cid.npz")
    np.savez("d/dan.npz", np.ones(1, np.float32))
    source = open_source("npz:d?links=follow", READINGS)
    errors = {}
    for client in source.clients:
        try:
            source.check(client)
        except DataError as error:
            errors[client] = error.message
    assert errors == {
        "ada": "cannot read d/ada.npz: it is a FIFO, expected a regular file",
        "bob": "cannot read d/bob.npz: it is a device, expected a regular file",
        "cid": "cannot read d/cid.npz: Too many levels of symbolic links",
    }
    with pytest.raises(DataError, match="E626"):
        check_all(source)
    assert open_data("npz:d").clients == ("ada", "bob", "cid", "dan")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_names_that_no_file_can_have(name: str) -> None:
    for scheme in ("", "npz:", "csv:", "parquet:", "tfrecord:"):
        assert refusal(f"{scheme}{name}").code in ("E640", "E640", "E626")


def test_damaged_content() -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, np.arange(1000, dtype=np.float32))
    content = bytearray(buffer.getvalue())
    for at in range(30, len(content), 37):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        pathlib.Path("d/ada.npz").write_bytes(damaged)
        try:
            open_source("d", READINGS).read("ada")
        except DataError:
            continue
