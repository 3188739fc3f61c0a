"""Files of clients that were checked are read again without being parsed again."""

from __future__ import annotations

import pathlib
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

from tffc.language import to_type
from tffc.runtime.data.folder import NpzFolder
from tffc.runtime.data.location import open_source
from tffc.runtime.data.npz import NpzFile
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
    np.arange(3, dtype=">i2"),
    np.zeros((0, 4), np.uint8),
    np.array([True, False]),
    np.array(["é", ""]),
    np.array([b"a\0b", b"c"]),
    np.complex64(1 + 2j),
]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_the_arrays_are_the_same(tmp_path: pathlib.Path, save: Any, array: Any) -> None:
    save(tmp_path / "ada.npz", comment=np.arange(3), x=array)
    label = np.str_ if array.dtype.kind in "SU" else array.dtype.newbyteorder("=").type
    source = open_source(tmp_path, to_type([("x", (label, array.shape))]))
    first = source.read("ada")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NpzFile, "__init__", None)
        again = source.read("ada")
    expected = array.astype(bytes) if array.dtype.kind == "S" else array
    if array.dtype.kind == "U":
        expected = np.char.encode(array, "utf-8")
    for found in (first, again):
        assert np.array_equal(np.asarray(found[0], expected.dtype), expected)


def test_strings_in_two_arrays_are_parsed_each_time(tmp_path: pathlib.Path) -> None:
    arrays = {"0.bytes": np.frombuffer(b"a\0bc", np.uint8), "0.lengths": np.array([2, 2])}
    np.savez(tmp_path / "ada.npz", **arrays)
    source = open_source(tmp_path, to_type((np.str_, [2])))
    assert [source.read("ada").tolist() for _ in range(2)] == [[b"a\0", b"bc"]] * 2


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damage_is_found(tmp_path: pathlib.Path, method: int) -> None:
    file = tmp_path / "ada.npz"
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=20_000))
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    content = bytearray(file.read_bytes())
    content[100_000] ^= 1
    file.write_bytes(content)
    source = open_source(tmp_path, to_type([("x", (np.float64, [20_000]))]))
    check_all(source)
    with pytest.raises(DataError) as caught:
        source.read("ada")
    assert caught.value.code == "E627"
    assert "reading it failed with: " in caught.value.notes[0]


def test_wrong_truth_values_are_found(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "x.npy", np.array([7], np.uint8))
    content = (tmp_path / "x.npy").read_bytes().replace(b"'|u1'", b"'|b1'")
    with zipfile.ZipFile(tmp_path / "ada.npz", "w") as archive:
        archive.writestr("x.npy", content)
    source = open_source(tmp_path, to_type([("x", (np.bool_, [1]))]))
    check_all(source)
    with pytest.raises(DataError) as caught:
        source.read("ada")
    assert caught.value.code == "E627"


def test_other_processes_look_again(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "ada.npz", x=np.int32(1))
    source = open_source(tmp_path, to_type([("x", np.int32)]))
    check_all(source)
    assert pickle.loads(pickle.dumps(source)).read("ada") == (1,)


def test_a_file_that_changes_is_found(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "ada.npz", x=np.int32(1))
    folder = NpzFolder(tmp_path)
    source = folder.typed(to_type([("x", np.int32)]))
    check_all(source)
    np.savez(tmp_path / "ada.npz", x=np.int32(2))
    with pytest.raises(DataError) as caught:
        source.read("ada")
    assert caught.value.code == "E630"
