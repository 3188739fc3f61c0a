"""Bundles: the same bytes each time, written completely or not at all, checked when read."""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import resource
from typing import cast

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.backends.bundle.bundle import Bundle, is_bundle, read_bundle, write_bundle
from tffc.language import Compiled, Lambda, Literal, Node, Reference, TensorType, to_array
from tffc.linking.builder import GraphBuilder
from tffc.support.errors import BundleError, WireError


def identity(name: str = "x") -> Node:
    return Lambda(name, TensorType(np.int32), Reference(name, TensorType(np.int32)))


def constant(value: int) -> Node:
    array = to_array(np.int32(value))
    return Lambda(None, None, Literal(array, array.type))


def section(value: int) -> Compiled:
    array = to_array(np.int32(value))
    builder = GraphBuilder()
    return builder.finish(builder.constant(array), array.type)


def sample(name: str = "x") -> Bundle:
    return Bundle(
        form="mapreduce",
        computation=identity(name),
        components={"prepare": identity("s"), "zero": constant(0)},
        initialize=section(7),
        versions={"tffc": "0.1.0"},
    )


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_holds_a_manifest_and_two_files_for_each_program(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path / "bundle")
    found = contents(tmp_path / "bundle")
    assert sorted(found) == [
        "components/prepare.pb",
        "components/prepare.sexpr",
        "components/zero.pb",
        "components/zero.sexpr",
        "computation.pb",
        "computation.sexpr",
        "initialize.pb",
        "initialize.sexpr",
        "manifest.json",
    ]
    assert found["components/prepare.sexpr"] == b"(s -> s)\n"
    assert found["components/zero.sexpr"] == b"( -> 0)\n"
    assert re.fullmatch(rb"comp#[0-9a-f]{8}\n", found["initialize.sexpr"])
    manifest = json.loads(found["manifest.json"])
    hashes = manifest.pop("files")
    assert manifest == {
        "format_version": "1.0",
        "form": "mapreduce",
        "type": "(int32 -> int32)",
        "initialize": "( -> int32)",
        "components": {"prepare": "(int32 -> int32)", "zero": "( -> int32)"},
        "versions": {"tffc": "0.1.0"},
    }
    assert sorted(hashes) == sorted(set(found) - {"manifest.json"})


def test_what_is_read_is_what_was_written(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path / "bundle")
    assert is_bundle(tmp_path / "bundle")
    assert read_bundle(tmp_path / "bundle") == sample()


def test_a_bundle_may_have_no_first_state(tmp_path: pathlib.Path) -> None:
    bundle = Bundle("broadcast", identity(), {"work": identity()}, None, {})
    write_bundle(bundle, tmp_path / "bundle")
    assert read_bundle(tmp_path / "bundle") == bundle


def test_the_same_program_gives_the_same_bytes(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path / "one")
    write_bundle(sample(), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_empty_folder_is_taken(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bundle").mkdir()
    write_bundle(sample(), tmp_path / "bundle")
    assert read_bundle(tmp_path / "bundle") == sample()


def test_a_bundle_is_replaced_only_when_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bundle"
    write_bundle(sample(), path)
    assert refusal(BundleError, write_bundle, sample("y"), path) == (
        f"the folder {path} already holds a bundle [E603]\n"
        "  help: replace it, or name another folder"
    )
    write_bundle(sample("y"), path, replace=True)
    assert read_bundle(path) == sample("y")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_with_other_things_is_never_replaced(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bundle"
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")
    assert refusal(BundleError, write_bundle, sample(), path, replace=True) == (
        f"the folder {path} is in use: it holds thesis.tex [E602]\n"
        "  note: a bundle takes a new folder, an empty one, or the place of another bundle\n"
        "  help: name another folder"
    )
    assert contents(path) == {"thesis.tex": b"years of work"}


def test_a_bundle_with_a_stranger_in_it_is_never_replaced(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bundle"
    write_bundle(sample(), path)
    (path / "components" / "notes.txt").write_text("mine")
    with pytest.raises(BundleError, match=r"it holds components/notes\.txt"):
        write_bundle(sample(), path, replace=True)


def test_a_file_is_not_taken_for_a_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bundle").write_text("")
    assert refusal(BundleError, write_bundle, sample(), tmp_path / "bundle", replace=True) == (
        f"{tmp_path}/bundle is not a folder [E602]\n  help: name a new folder"
    )


@pytest.mark.parametrize("replace", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path: pathlib.Path, replace: bool) -> None:
    path = tmp_path / "bundle"
    if replace:
        write_bundle(sample("old"), path)
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on the size of files fails a write in the middle, as a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (12, limits[1]))
    try:
        with pytest.raises(BundleError) as caught:
            write_bundle(sample(), path, replace=replace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == (
        f"cannot write the bundle {path}: File too large [E600]\n  note: nothing was written"
        "\n  help: give a path in a folder that exists and can be written, on a disk with"
        " space left"
    )
    assert contents(tmp_path) == before


def test_no_folder_is_no_bundle(tmp_path: pathlib.Path) -> None:
    assert refusal(BundleError, read_bundle, tmp_path / "nothing") == (
        f"no bundle: there is no folder {tmp_path}/nothing [E604]\n"
        "  help: write one with tffc compile"
    )


def test_a_folder_without_manifest_is_no_bundle(tmp_path: pathlib.Path) -> None:
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"no bundle: {tmp_path} holds no manifest.json [E604]\n  help: write one with tffc compile"
    )


def test_a_flipped_byte_is_found(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    for name, content in contents(tmp_path).items():
        if name == "manifest.json":
            continue
        (tmp_path / name).write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(BundleError, match=f"{name} of the bundle {tmp_path} is damaged"):
            read_bundle(tmp_path)
        (tmp_path / name).write_bytes(content)


def test_a_damaged_file_is_named_with_both_hashes(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    expected = json.loads((tmp_path / "manifest.json").read_bytes())["files"]["computation.sexpr"]
    (tmp_path / "computation.sexpr").write_bytes(b"")
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"computation.sexpr of the bundle {tmp_path} is damaged [E606]\n"
        "  note: its hash is e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
        f"  note: the manifest says {expected}\n"
        "  help: compile the program again"
    )


def test_a_missing_file_is_named(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    (tmp_path / "components" / "zero.pb").unlink()
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"cannot read components/zero.pb of the bundle {tmp_path}: No such file or directory "
        "[E606]\n  help: compile the program again"
    )


def change_manifest(folder: pathlib.Path, **changes: object) -> None:
    path = folder / "manifest.json"
    content = {**json.loads(path.read_bytes()), **changes}
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))


def test_a_newer_major_format_is_refused(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    change_manifest(tmp_path, format_version="3.0")
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"{tmp_path}/manifest.json is of format 3.0, and this tffc reads up to 2.x [E611]\n"
        "  help: use tffc 0.1.0, which made it, or a later one"
    )
    change_manifest(tmp_path, versions=...)
    assert refusal(BundleError, read_bundle, tmp_path).endswith(
        "\n  help: use the version of tffc that made it, or a later one"
    )


def test_a_newer_minor_format_is_read(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    change_manifest(tmp_path, format_version="1.9", colour="blue")
    assert read_bundle(tmp_path) == sample()


def test_a_manifest_that_is_no_json_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"{tmp_path}/manifest.json is not JSON [E606]\n  help: compile the program again"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format_version": None}, "it has no 'format_version' such as '1.0'"),
        ({"format_version": "one"}, "it has no 'format_version' such as '1.0'"),
        ({"form": ...}, "it has no 'form'"),
        ({"components": ["prepare"]}, "its 'components' is not right"),
        ({"components": {"../prepare": "x"}}, "its 'components' is not right"),
        ({"components": {"extra": "x"}}, "it gives no hash of components/extra.pb"),
        ({"files": {"../computation.pb": "0" * 64}}, "its 'files' is not right"),
        ({"files": {"computation.pb": "0"}}, "its 'files' is not right"),
        ({"files": {}}, "it gives no hash of computation.pb"),
    ],
)
def test_a_malformed_manifest_is_refused(
    tmp_path: pathlib.Path, changes: dict[str, object], reason: str
) -> None:
    write_bundle(sample(), tmp_path)
    change_manifest(tmp_path, **changes)
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"{tmp_path}/manifest.json is not a manifest: {reason} [E606]\n"
        "  help: compile the program again"
    )


def test_a_program_of_another_type_is_refused(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    change_manifest(tmp_path, type="(int64 -> int64)")
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"computation.pb of the bundle {tmp_path} is of type `(int32 -> int32)` [E606]\n"
        "  note: the manifest says `(int64 -> int64)`\n"
        "  help: compile the program again"
    )


def test_a_first_state_that_is_no_section_is_refused(tmp_path: pathlib.Path) -> None:
    bundle = Bundle("mapreduce", identity(), {}, cast("Compiled", constant(1)), {})
    write_bundle(bundle, tmp_path)
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"initialize.pb of the bundle {tmp_path} is not a compiled section [E606]\n"
        "  help: compile the program again"
    )


def test_a_program_that_is_none_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    write_bundle(sample(), tmp_path)
    (tmp_path / "computation.pb").write_bytes(b"hello")
    files = json.loads((tmp_path / "manifest.json").read_bytes())["files"]
    files["computation.pb"] = hashlib.sha256(b"hello").hexdigest()
    change_manifest(tmp_path, files=files)
    with pytest.raises(WireError) as caught:
        read_bundle(tmp_path)
    assert caught.value.message == (
        f"computation.pb of the bundle {tmp_path} is not a serialized computation: "
        "field 13 has the wire type 4, which is not in use"
    )
