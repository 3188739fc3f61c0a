"""Packed folders: what is kept, the groups that they give, and what is refused."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import pickle
import random
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tffc.language import SequenceType, StructType, Type, to_type
from tffc.runtime.data import packing
from tffc.runtime.data.groups import ClientGroup, read_groups
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.pack_format import ARROW_FILE
from tffc.runtime.data.packed import PackedFolder
from tffc.runtime.data.packing import check_pack_target, packed_beside, write_pack
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]'")

IMAGES = SequenceType(collections.OrderedDict(pixels=(np.float32, [2]), label=np.int32))

KINDS: list[tuple[Any, Any]] = [
    (np.bool_, [True, False]),
    (np.int8, [1, -2]),
    (np.uint64, [2**63]),
    (np.float16, [0.5]),
    (np.float64, []),
    (np.complex64, [1 + 2j]),
    (np.complex128, [1 - 2j, 0]),
    (np.bytes_, [b"a", b"", b"bc"]),
    (np.str_, ["né", ""]),
]


@pytest.fixture
def images(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with three clients, two of which have two examples."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name, count in (("ada", 2), ("bob", 1), ("eve", 2)):
        pixels = np.arange(2 * count, dtype=np.float32).reshape(count, 2) + ord(name[0])
        np.savez(folder / f"{name}.npz", pixels=pixels, label=np.arange(count, dtype=np.int32))
    return folder


def packed(source: Any, type: Type, tmp_path: pathlib.Path, typed: bool = False) -> Any:
    """The clients of a source, packed."""
    write_pack(open_data(source), type if typed else None, tmp_path / "pack")
    clients = open_source(tmp_path / "pack", type)
    check_all(clients)
    return clients


def refusal(call: Callable[[], Any], tmp_path: pathlib.Path) -> str:
    with pytest.raises(DataError) as caught:
        call()
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(("dtype", "items"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
def test_arrays_of_every_kind_are_kept(tmp_path: pathlib.Path, dtype: Any, items: Any) -> None:
    (tmp_path / "data").mkdir()
    array = np.array(items, dtype)
    for name, each in (("a", array), ("b", array[::-1]), ("c", np.concatenate([array, array]))):
        np.savez(tmp_path / "data" / f"{name}.npz", each)
    type = SequenceType(np.str_ if array.dtype.kind in "SU" else dtype)
    plain = open_source(tmp_path / "data", type)
    clients = packed(tmp_path / "data", type, tmp_path)
    for client in "abc":
        assert list(clients.read(client)) == list(plain.read(client))
        assert clients.check(client) == plain.check(client)


def test_bfloat16_is_kept(tmp_path: pathlib.Path) -> None:
    import ml_dtypes

    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "a.npz", np.array([1.5, -2], ml_dtypes.bfloat16))
    clients = packed(tmp_path / "data", SequenceType(ml_dtypes.bfloat16), tmp_path)
    assert [float(each) for each in clients.read("a")] == [1.5, -2]


def test_scalars_strings_and_ragged_shapes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    for name, sizes in (("a", (2, 3)), ("b", (1, 0)), ("c", (2, 3))):
        arrays = {"x": np.ones(sizes, np.int16), "n": np.int32(7), "s": np.array(b"no\0t")}
        np.savez(tmp_path / "data" / f"{name}.npz", **arrays)
    type = to_type(collections.OrderedDict(x=(np.int16, [None, None]), n=np.int32, s=np.str_))
    clients = packed(tmp_path / "data", type, tmp_path)
    x, n, s = clients.read("b")
    assert (x.shape, n, s) == ((1, 0), 7, b"no\0t")
    groups = read_groups(clients, type, ["c", "b", "a"]).groups
    assert [(g.positions.tolist(), [c.shape for c in g.columns]) for g in groups] == [
        ([0, 2], [(2, 2, 3), (2,), (2,)]),
        ([1], [(1, 1, 0), (1,), (1,)]),
    ]
    assert groups[0].columns[2].tolist() == [b"no\0t", b"no\0t"]


def test_groups_are_what_clients_hold(
    images: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "BATCH_CLIENTS", 2)
    clients = packed(images, IMAGES, tmp_path)
    with pa.OSFile(str(tmp_path / "pack" / ARROW_FILE)) as file:
        assert pa.ipc.open_file(file).num_record_batches == 2
    for asked in (["ada", "eve"], ["eve", "bob", "ada"], ["bob"]):
        found, expected = (
            read_groups(source, IMAGES, asked) for source in (clients, open_source(images, IMAGES))
        )
        assert list(map(plain, found.groups)) == list(map(plain, expected.groups))
        assert found.others == ()


def plain_columns(value: Any) -> Any:
    return [column.tolist() for column in value.columns]


def plain(group: ClientGroup) -> Any:
    return group.positions.tolist(), [(c.dtype, c.tolist()) for c in group.columns]


def test_what_does_not_fit_is_in_no_group(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    two = to_type(collections.OrderedDict(label=(np.int32, [2])))
    write_pack(open_data(images), None, tmp_path / "pack")
    clients = open_source(tmp_path / "pack", two)
    found = read_groups(clients, two, ["ada", "bob", "eve"])
    assert ([plain(each) for each in found.groups], found.others) == (
        [([0, 2], [(np.dtype(np.int32), [[0, 1], [0, 1]])])],
        (1,),
    )
    assert refusal(lambda: clients.read("bob"), tmp_path) == (
        "pack: client bob: the array 'label' is int32[1], expected int32[2] [E620]"
    )


def test_numbers_are_converted(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    halves = collections.OrderedDict(pixels=(np.float16, [2]))
    write_pack(open_data(images), None, tmp_path / "pack")
    clients = open_source(f"packed:{tmp_path / 'pack'}?cast=float16", SequenceType(halves))
    (group, _) = read_groups(clients, SequenceType(halves), clients.clients).groups
    assert (group.columns[0].dtype, group.columns[0][0].tolist()) == (
        np.float16,
        [[97, 98], [99, 100]],
    )


def test_the_same_data_gives_the_same_bytes(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        write_pack(open_data(images), None, tmp_path / name)
    for file in ("pack.json", "clients.arrow"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_other_kinds_are_packed_for_a_program(tmp_path: pathlib.Path) -> None:
    (tmp_path / "words.csv").write_text("client,word\nbob,a\nada,b\nbob,\n")
    source = f"csv:{tmp_path / 'words.csv'}?columns=word&empty=word:none"
    words = SequenceType(np.str_)
    clients = packed(source, words, tmp_path, typed=True)
    assert [list(clients.read(each)) for each in ("ada", "bob")] == [[b"b"], [b"a", b"none"]]
    assert refusal(lambda: write_pack(open_data(source), None, tmp_path / "x"), tmp_path) == (
        "data of the kind csv is packed as a program takes it [E616]\n"
        "  help: name the program that is to take it"
    )


def test_other_processes_open_it_again(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    clients = packed(images, IMAGES, tmp_path)
    again = pickle.loads(pickle.dumps(clients))
    assert plain_columns(again.read("bob")) == plain_columns(clients.read("bob"))


def test_kinds_and_origin(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    clients = packed(images, IMAGES, tmp_path)
    assert clients.data.kinds() == {"label": "int32[1..2]", "pixels": "float32[1..2,2]"}
    assert (clients.origin().kind, len(clients.origin().files)) == ("packed", 2)


def test_a_pack_beside_its_data_is_made_anew_where_that_changes(
    images: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    def values() -> Any:
        clients = packed_beside(open_data(images), IMAGES, tmp_path / "pack")
        assert clients.origin().kind == "npz"
        return clients.read("bob").columns[1].tolist()

    assert values() == [0]
    made = (tmp_path / "pack" / "clients.arrow").stat().st_ino
    assert values() == [0]
    assert (tmp_path / "pack" / "clients.arrow").stat().st_ino == made
    np.savez(images / "bob.npz", pixels=np.zeros((1, 2), np.float32), label=np.array([9], np.int32))
    assert values() == [9]


def test_clients_that_differ(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    np.savez(images / "bob.npz", pixels=np.zeros((1, 2), np.float64), label=np.int32(0))
    assert refusal(lambda: write_pack(open_data(images), None, tmp_path / "x"), tmp_path) == (
        "client bob has other arrays than client ada [E613]\n"
        "  note: ada has 'label' int32 of rank 1, 'pixels' float32 of rank 2\n"
        "  note: bob has 'label' int32 of rank 0, 'pixels' float64 of rank 2\n"
        "  help: write the same arrays for every client, with the same element types and numbers "
        "of dimensions"
    )
    assert not (tmp_path / "x").exists()
    assert sorted(each.name for each in tmp_path.iterdir() if "lock" not in each.name) == ["images"]


def test_a_place_in_use(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    for path, found in ((images, "it holds "), (tmp_path / "file", "it is a file")):
        text = refusal(lambda path=path: check_pack_target(path, replace=True), tmp_path)
        assert text.startswith(f"clients' data cannot be packed into {path.name}: {found}")
        assert "[E602]" in text
    write_pack(open_data(images), None, tmp_path / "pack")
    check_pack_target(tmp_path / "pack", replace=True)
    assert refusal(lambda: check_pack_target(tmp_path / "pack", replace=False), tmp_path) == (
        "the folder pack already holds a pack [E603]\n  help: replace it, or name another"
    )


def test_what_cannot_be_written_leaves_what_was_there(
    images: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    before = (tmp_path / "pack" / "clients.arrow").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert refusal(lambda: write_pack(open_data(images), None, tmp_path / "pack"), tmp_path) == (
        "cannot pack clients' data into pack: No space left on device [E600]\n"
        "  note: what was there before is as it was\n"
        "  help: name a folder that can be written, on a disk with space left"
    )
    assert (tmp_path / "pack" / "clients.arrow").read_bytes() == before


def test_an_interruption_leaves_nothing(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pack(open_data(images), None, tmp_path / "pack", progress=interrupt)
    assert sorted(each.name for each in tmp_path.iterdir() if "lock" not in each.name) == ["images"]


def test_a_pack_that_changes_is_found(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    clients = packed(images, IMAGES, tmp_path)
    with (tmp_path / "pack" / "clients.arrow").open("ab") as file:
        file.write(b"more")
    for read in (lambda: clients.read("ada"), lambda: clients.read_groups(["ada"])):
        assert refusal(read, tmp_path).startswith("pack/clients.arrow has changed")


@pytest.mark.parametrize("size", [0, 100])
def test_a_pack_that_is_cut_after_it_was_opened(
    images: pathlib.Path, tmp_path: pathlib.Path, size: int
) -> None:
    clients = packed(images, IMAGES, tmp_path)
    kinds, value = clients.data.kinds(), clients.read("ada")
    (group,) = clients.read_groups(["ada", "eve"]).groups
    os.truncate(tmp_path / "pack/clients.arrow", size)
    assert clients.data.kinds() == kinds
    assert clients.check("ada") == (2,)
    for read in (lambda: clients.read("ada"), lambda: clients.read_groups(["ada"])):
        assert refusal(read, tmp_path).startswith("pack/clients.arrow has changed")
    # What was read before is whole.
    expected = open_source(images, IMAGES).read("ada")
    assert [str(each) for each in value] == [str(each) for each in expected]
    assert group.columns[0][0].tolist() == [[97.0, 98.0], [99.0, 100.0]]


def test_a_pack_that_changes_while_a_client_is_read(
    images: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = packed(images, IMAGES, tmp_path)
    preadv = os.preadv

    def changing(*given: Any) -> int:
        with (tmp_path / "pack/clients.arrow").open("r+b") as file:
            file.write(b"x")
        return preadv(*given)

    monkeypatch.setattr(os, "preadv", changing)
    for read in (lambda: clients.read("ada"), lambda: clients.read_groups(["ada"])):
        assert refusal(read, tmp_path).startswith("pack/clients.arrow has changed")


@pytest.mark.parametrize("ends", [(2**62, -(2**62), 3), (-1, 0, 1), (0, 2**62, 2**63 - 1)])
def test_strings_whose_offsets_change_while_they_are_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, ends: tuple[int, ...]
) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "ada.npz", np.array([b"one", b"two"]))
    clients = packed(tmp_path / "data", SequenceType(np.str_), tmp_path)
    preadv = os.preadv
    file = tmp_path / "pack/clients.arrow"

    def changing(descriptor: int, memory: Any, begin: int) -> int:
        os.utime(file)
        done = preadv(descriptor, memory, begin)
        memory[0][: 8 * len(ends)] = np.array(ends, np.int64).tobytes()[: len(memory[0])]
        return done

    monkeypatch.setattr(os, "preadv", changing)
    assert refusal(lambda: clients.read("ada"), tmp_path).startswith(
        "pack/clients.arrow has changed"
    )


@pytest.mark.parametrize("file", ["pack.json", "clients.arrow"])
def test_two_files_of_two_packs(images: pathlib.Path, tmp_path: pathlib.Path, file: str) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    np.savez(images / "bob.npz", pixels=np.ones((1, 2), np.float32), label=np.ones(1, np.int32))
    write_pack(open_data(images), None, tmp_path / "other")
    shutil.copy(tmp_path / "other" / file, tmp_path / "pack" / file)
    found = refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)
    assert found == DAMAGED.format("its pack.json is that of another pack")


def test_a_pack_that_is_cut(images: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    """Arrow takes the end of the file for the end of the data, wherever that is."""
    monkeypatch.setattr(packing, "BATCH_CLIENTS", 1)
    write_pack(open_data(images), None, tmp_path / "pack")
    whole = (tmp_path / "pack" / "clients.arrow").read_bytes()
    for size in (*range(0, len(whole), 8), len(whole) - 1):
        (tmp_path / "pack" / "clients.arrow").write_bytes(whole[:size])
        found = refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)
        assert found == DAMAGED.format(f"it has {size} bytes, and had {len(whole)}")


@pytest.mark.parametrize("change", [{"clients": 2}, {"clients": 4}])
def test_a_pack_of_other_clients(
    images: pathlib.Path, tmp_path: pathlib.Path, change: dict[str, int]
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    said = rewrite(tmp_path / "pack", change)
    found = refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)
    assert found == DAMAGED.format(f"it has 3 clients, and had {said['clients']}")


@pytest.mark.parametrize(
    "content", [b"", b"ARROW1\0\0", b"ARROW1\0\0ARROW1", b"ARROW1\0\0\xff\xff\xff\xff\0\0\0\0"]
)
def test_a_pack_of_nothing(images: pathlib.Path, tmp_path: pathlib.Path, content: bytes) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    (tmp_path / "pack" / "clients.arrow").write_bytes(content)
    rewrite(tmp_path / "pack", {"bytes": len(content)})
    assert "[E627]" in refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)


def test_a_damaged_pack_beside_data_is_made_again(
    images: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pack = tmp_path / "pack"
    packed_beside(open_data(images), IMAGES, pack)
    (pack / "clients.arrow").write_bytes(b"")
    assert len(packed_beside(open_data(images), IMAGES, pack).clients) == 3


def rewrite(pack: pathlib.Path, change: Any) -> Any:
    """Change the manifest of a pack, and return it."""
    file = pack / "pack.json"
    said = {**json.loads(file.read_text()), **change}
    file.write_text(json.dumps(said))
    return said


DAMAGED = (
    "pack is not a folder of packed data, or is damaged [E627]\n"
    "  note: reading it failed with: {}\n"
    "  help: pack the data again, with tffc data pack"
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format_version": "9"}, "pack.json: it is of the format '9', expected '2.0'"),
        ({"arrays": 3}, "pack.json: it is not what tffc writes"),
        ({"clients": -1}, "pack.json: it is not what tffc writes"),
        ({"bytes": "3"}, "pack.json: it is not what tffc writes"),
        (
            {"arrays": [{"name": "\ud800", "type": "int32", "rank": 0}]},
            "pack.json: a text has half of a character",
        ),
        ({"source": {"kind": 1, "digest": ""}}, "pack.json: it is not what tffc writes"),
        (
            {"arrays": [{"name": "x", "type": "int32", "rank": 0}] * 2},
            "pack.json: two arrays have one name",
        ),
        (
            {"arrays": [{"name": "x", "type": "int32", "rank": 33}]},
            "pack.json: it is not what tffc writes",
        ),
        (
            {"arrays": [{"name": "x", "type": "int32", "rank": 1}]},
            "its columns are not those that the manifest says",
        ),
    ],
)
def test_a_manifest_that_is_not_right(
    images: pathlib.Path, tmp_path: pathlib.Path, change: Any, reason: str
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    rewrite(tmp_path / "pack", change)
    found = refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)
    assert found == DAMAGED.format(reason)


def forge(pack: pathlib.Path, options: Any = None, **columns: Any) -> None:
    """Write other columns into the file of a pack."""
    with pa.ipc.open_file(pack / "clients.arrow") as reader:
        table = reader.read_all()
    for name, made in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), [made(table.column(index))])
    with (
        pa.OSFile(str(pack / "clients.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)
    tell_size(pack)


def tell_size(pack: pathlib.Path) -> None:
    """Write the size of the file into the manifest."""
    rewrite(pack, {"bytes": (pack / "clients.arrow").stat().st_size})


def shapes(*sizes: Any) -> Callable[[Any], Any]:
    def made(column: Any) -> Any:
        flat = pa.array(np.array(sizes, np.int64).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, type=column.type)

    return made


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"pixels.shape": shapes((2, 2), (1, 3), (2, 2))},
            "the shapes of the array 'pixels' are not those of its items",
        ),
        (
            {"pixels.shape": shapes((-2, -2), (1, 2), (2, 2))},
            "the shapes of the array 'pixels' are not those of its items",
        ),
        (
            {"pixels.shape": shapes((2**32, 2**32 + 1), (1, 2), (2, 2))},
            "the shapes of the array 'pixels' are not those of its items",
        ),
        (
            {"client": lambda column: pa.array([b"a", b"b", b"a"])},
            "a client occurs twice in it, or has no name",
        ),
        (
            {"client": lambda column: pa.array([b"a", b"", b"c"])},
            "a client occurs twice in it, or has no name",
        ),
        ({"client": lambda column: pa.array([b"a", None, b"c"])}, "it has nulls in it"),
    ],
)
def test_columns_that_are_not_right(
    images: pathlib.Path, tmp_path: pathlib.Path, columns: Any, reason: str
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    forge(tmp_path / "pack", **columns)
    found = refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)
    assert found == DAMAGED.format(reason)


def test_a_shape_without_elements_is_not_believed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "a.npz", x=np.zeros((0, 2), np.int8))
    write_pack(open_data(tmp_path / "data"), None, tmp_path / "pack")
    forge(tmp_path / "pack", **{"x.shape": shapes((2**40, 0))})
    assert refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path) == DAMAGED.format(
        "the array 'x' says that it has 1099511627776 elements"
    )


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_batches_are_refused(
    images: pathlib.Path, tmp_path: pathlib.Path, codec: Any
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    forge(tmp_path / "pack", pa.ipc.IpcWriteOptions(compression=codec))
    assert refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path) == DAMAGED.format(
        "it has a record batch that is compressed or not expected"
    )


def test_truth_values_are_checked(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "a.npz", np.array([True] * 16))
    write_pack(open_data(tmp_path / "data"), None, tmp_path / "pack")
    file = tmp_path / "pack" / "clients.arrow"
    file.write_bytes(file.read_bytes().replace(b"\1" * 16, b"\1" * 15 + b"\7"))
    clients: Any = open_source(tmp_path / "pack", SequenceType(np.bool_))
    reason = "the array 'arr_0' has truth values that are neither 0 nor 1"
    for read in (lambda: clients.read("a"), lambda: clients.data.stacked("arr_0", np.array([0]))):
        assert refusal(read, tmp_path) == DAMAGED.format(reason)


def test_an_empty_pack(tmp_path: pathlib.Path, images: pathlib.Path) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    file = tmp_path / "pack" / "clients.arrow"
    with pa.ipc.open_file(file) as reader:
        schema = reader.schema
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, schema):
        pass
    tell_size(tmp_path / "pack")
    assert refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path) == DAMAGED.format(
        "there is no client in it"
    )
    file.write_bytes(b"")
    tell_size(tmp_path / "pack")
    assert refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path) == DAMAGED.format(
        "it does not begin as an Arrow file does"
    )


def test_files_outside_of_the_folder_are_not_read(
    images: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write_pack(open_data(images), None, tmp_path / "pack")
    file = tmp_path / "pack" / "clients.arrow"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert "outside of its folder" in refusal(lambda: PackedFolder(tmp_path / "pack"), tmp_path)


@pytest.mark.slow
def test_damage_never_does_more_than_be_refused(
    images: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    np.savez(images / "ada.npz", pixels=np.zeros((2, 2), np.float32), label=np.zeros(2, np.int32))
    write_pack(open_data(images), None, tmp_path / "pack")
    file = tmp_path / "pack" / "clients.arrow"
    whole = file.read_bytes()
    chance, refused = random.Random(0), 0
    for _ in range(1500):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            content[chance.randrange(len(content))] = chance.choice((0, 1, 127, 128, 255))
        if chance.random() < 0.1:
            del content[chance.randrange(len(content)) :]
        file.write_bytes(content)
        try:
            clients = open_source(tmp_path / "pack", IMAGES)
            for client in clients.clients:
                clients.read(client)
            read_groups(clients, IMAGES, clients.clients)
        except DataError:
            refused += 1
    assert refused > 300


def test_a_type_without_tensors(images: pathlib.Path, tmp_path: pathlib.Path) -> None:
    clients = packed(images, StructType([]), tmp_path)
    assert clients.read("ada") == ()
    assert read_groups(clients, StructType([]), ["ada"]).others == (0,)
