"""Bundles that somebody has changed are refused, whatever their hashes say; so are YAML files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
from collections.abc import Callable

import pytest

from tests.hostile.bundles import VALUES, run_case, seeds
from tests.refusals import refusal
from tffc.assurance.golden.examples import read_examples
from tffc.backends.bundle.bundle import MANIFEST, check_target, read_bundle
from tffc.backends.bundle.manifest import decode_manifest
from tffc.backends.forms.kinds import assemble
from tffc.language.notation import SectionFolder, parse
from tffc.passes.table import read_pipeline
from tffc.support.errors import BundleError, FormError, GoldenError, NotationError, PipelineError
from tffc.support.files.reading import TooLargeError, read_all, read_named, read_regular

CASES = 60


@pytest.fixture
def bundle(tmp_path: pathlib.Path) -> pathlib.Path:
    """A bundle that nobody has changed."""
    folder = tmp_path / "bundle"
    for path, content in seeds()[0].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.mark.slow
def test_changed_bundles_are_refused_or_read() -> None:
    codes = [code for case in range(CASES) for code in run_case(7, case).values()]
    assert {0, 1, 2} <= set(codes) <= {0, 1, 2, 3}


def to_device(path: pathlib.Path) -> None:
    path.symlink_to("/dev/zero")


def to_outside(path: pathlib.Path) -> None:
    outside = path.parents[1] / "outside"
    outside.write_bytes(b"")
    path.symlink_to(outside)


def to_hole(path: pathlib.Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (to_device, "it is a device, expected a regular file"),
        (os.mkfifo, "it is a FIFO, expected a regular file"),
        (to_outside, "it is a link to {}/outside, outside of its folder"),
        (to_hole, "it has more than 2147483647 bytes"),
        (os.mkdir, "Is a directory"),
    ],
)
def test_what_stands_for_a_file(
    bundle: pathlib.Path, put: Callable[[pathlib.Path], None], said: str
) -> None:
    (bundle / "computation.sexpr").unlink()
    put(bundle / "computation.sexpr")
    with pytest.raises(BundleError) as refused:
        read_bundle(bundle)
    reason = said.format(bundle.parent)
    assert (
        refused.value.message == f"cannot read computation.sexpr of the bundle {bundle}: {reason}"
    )
    assert refused.value.code == "E606"


def test_a_link_in_the_bundle_to_its_own_file_is_read(bundle: pathlib.Path) -> None:
    (bundle / "computation.sexpr").rename(bundle / "moved")
    (bundle / "computation.sexpr").symlink_to("moved")
    assert read_bundle(bundle).form == "mapreduce"


def test_a_manifest_without_an_end(bundle: pathlib.Path) -> None:
    (bundle / MANIFEST).unlink()
    to_hole(bundle / MANIFEST)
    with pytest.raises(BundleError) as refused:
        read_bundle(bundle)
    assert refused.value.message == (
        f"cannot read manifest.json of the bundle {bundle}: it has more than 67108864 bytes"
    )


@pytest.mark.parametrize("key", ["form", "type", "initialize", "components", "versions", "files"])
@pytest.mark.parametrize("value", VALUES)
def test_manifests_of_anything(key: str, value: object) -> None:
    content = {**json.loads(seeds()[0][MANIFEST]), key: value}
    with contextlib.suppress(BundleError):
        decode_manifest(json.dumps(content).encode(), "manifest.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"a": 1, "a": 2}',
            "manifest.json is not a manifest: the key 'a' occurs twice in an object",
        ),
        ('{"a": NaN}', "manifest.json is not a manifest: JSON has no NaN"),
        ('{"a": -Infinity}', "manifest.json is not a manifest: JSON has no -Infinity"),
        ("[" * 100_000, "manifest.json is not JSON"),
        (
            '{"a": ' + "9" * 5000 + "}",
            "manifest.json is not a manifest: an integer has more than 64 bits",
        ),
        (
            '{"format_version": "' + "9" * 5000 + '.0"}',
            "manifest.json is not a manifest: it has no 'format_version' such as '1.0'",
        ),
        (
            '{"format_version": "١.٠"}',
            "manifest.json is not a manifest: it has no 'format_version' such as '1.0'",
        ),
    ],
)
def test_json_that_is_none(text: str, said: str) -> None:
    with pytest.raises(BundleError) as refused:
        decode_manifest(text.encode(), "manifest.json")
    assert refused.value.message == said


def test_a_round_is_a_function(bundle: pathlib.Path) -> None:
    found = read_bundle(bundle)
    assert refusal(FormError, assemble, found.form, parse("<1,a=2>").type, found.components) == (
        "a round is a function, found one of type `<int32,a=int32>` [E501]"
        "\n  help: give the type of the whole round, which is written with an arrow"
    )


def test_a_section_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    key = "0" * 64
    os.mkfifo(tmp_path / f"{key}.pb")
    text = f"comp#a where comp#a: int32 xla sha256:{key}"
    assert refusal(NotationError, parse, text, SectionFolder(tmp_path)) == (
        f"cannot read the section {key} in {tmp_path}: "
        "it is a FIFO, expected a regular file [E626]\n"
        "  help: write the sections again, with the text that they belong to"
    )


def test_no_more_is_read_than_asked_for(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read_regular(path, 3) == read_named(path, 3) == b"abc"
    with pytest.raises(TooLargeError), path.open("rb") as file:
        read_all(file, 2)
    with pytest.raises(TooLargeError), open("/dev/zero", "rb") as file:
        read_all(file, 2**22)
    reader, writer = os.pipe()
    os.write(writer, b"handed over")
    os.close(writer)
    assert read_named(f"/dev/fd/{reader}", 100) == b"handed over"
    os.close(reader)


def bomb(levels: int = 40) -> str:
    """A text of a line a level that stands for twice as much with each."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, levels)]
    return "\n".join([*lines, f"target: *a{levels - 1}"])


def merges(levels: int = 40) -> str:
    """The same with mappings that are merged into one."""
    lines = ["a0: &a0 {x: y}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, levels)]
    return "\n".join(lines)


TEXTS = {
    "bomb": bomb(),
    "merges": merges(),
    "itself": "a: &a [*a]",
    "deep": "[" * 2000,
    "deep mappings": "".join(" " * n + "a:\n" for n in range(700)),
    "zero": "a: \0",
    "digits": "a: " + "9" * 5000,
    "month": "a: 2001-99-99",
    "integer": "a: !!int ''",
    "truth": "a: !!bool maybe",
    "date": "a: !!timestamp x",
    "python": "a: !!python/object/apply:os.system [ls]",
    "key": "? [a]\n: b",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_yaml_that_is_none(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "golden.yaml").write_text(TEXTS[name])
    with pytest.raises(GoldenError) as golden:
        read_examples(tmp_path)
    with pytest.raises(PipelineError) as pipeline:
        read_pipeline(tmp_path / "golden.yaml")
    assert (golden.value.code, pipeline.value.code) == ("E800", "E362")
    assert max(map(len, (str(golden.value), str(pipeline.value)))) < 2000


def test_yaml_may_repeat_parts_by_name(tmp_path: pathlib.Path) -> None:
    text = "a: {target: x.py, forms: &all [mapreduce]}\nb: {target: y.py, forms: *all}\n"
    (tmp_path / "golden.yaml").write_text(text)
    assert [each.recipe.forms for each in read_examples(tmp_path)] == [("mapreduce",)] * 2


def test_an_example_that_stands_twice(tmp_path: pathlib.Path) -> None:
    (tmp_path / "golden.yaml").write_text("a: {target: x.py}\na: {target: y.py}\n")
    assert refusal(GoldenError, read_examples, tmp_path) == (
        f"in {tmp_path}/golden.yaml, the key 'a' occurs twice [E800]\n"
        "  help: remove one; the second is in line 2"
    )


def test_a_pipeline_that_waits_for_nobody(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipeline.yaml")
    with pytest.raises(PipelineError) as refused:
        read_pipeline(tmp_path / "pipeline.yaml")
    assert refused.value.message == (
        f"cannot read the pipeline {tmp_path}/pipeline.yaml: it is a FIFO, expected a regular file"
    )


def test_a_part_that_takes_no_argument(bundle: pathlib.Path) -> None:
    found = read_bundle(bundle)
    parts = {**found.components, "secure_sum_bitwidth": found.components["prepare"]}
    assert refusal(FormError, assemble, found.form, found.computation.type, parts) == (
        "secure_sum_bitwidth takes no argument, found one of type `(int32 -> <>)` [E501]"
    )


def initialized_by(bundle: pathlib.Path, component: str) -> None:
    """Take a component for what computes the first state."""
    files = dict(seeds()[0])
    manifest = json.loads(files[MANIFEST])
    manifest["initialize"] = manifest["components"][component]
    file = f"components/{component}.pb"
    manifest["files"]["initialize.pb"] = manifest["files"][file]
    (bundle / "initialize.pb").write_bytes(files[file])
    (bundle / MANIFEST).write_text(json.dumps(manifest))


def test_a_first_state_that_is_not_made_alone(bundle: pathlib.Path) -> None:
    initialized_by(bundle, "prepare")
    assert refusal(BundleError, read_bundle, bundle) == (
        f"initialize.pb of the bundle {bundle} is of type `(int32 -> <>)`, "
        "expected a function without parameter [E606]\n"
        "  help: compile the program again"
    )


def test_a_first_state_that_the_round_does_not_take(bundle: pathlib.Path) -> None:
    initialized_by(bundle, "zero")
    assert refusal(BundleError, read_bundle, bundle) == (
        f"initialize.pb of the bundle {bundle} is of type `( -> <int32>)`, "
        "expected `( -> int32)` [E606]\n"
        "  help: compile the program again"
    )


def test_parts_of_another_round(bundle: pathlib.Path) -> None:
    found = read_bundle(bundle)
    other = parse("(x: <int32@SERVER,{float32}@CLIENTS> -> <x[0],<total=x[0]>>)").type
    assert refusal(FormError, assemble, found.form, other, found.components) == (
        "clients' data of type `float32` does not fit work, which takes `<n=int32,s=str>` [E501]"
    )


def test_a_type_in_the_manifest_is_shown_in_part(bundle: pathlib.Path) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    manifest["type"] = "<" * 1_000_000
    (bundle / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError) as refused:
        read_bundle(bundle)
    assert refused.value.code == "E606"
    assert refused.value.notes == (f"the manifest says `{'<' * 1000}...`",)


def test_a_large_folder_is_not_read_to_its_end(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "c/d", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x").write_bytes(b"")
    listed: list[str] = []
    scandir = os.scandir

    def watched(path: str) -> object:
        listed.append(os.path.relpath(path, tmp_path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    with pytest.raises(BundleError) as refused:
        check_target(tmp_path, replace=True)
    assert refused.value.message == f"the folder {tmp_path} is in use: it holds b/x"
    assert listed == [".", "b"]


def test_a_link_to_a_folder_is_not_taken_for_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(BundleError) as refused:
        check_target(tmp_path / "out", replace=True)
    assert refused.value.message == f"the folder {tmp_path}/out is in use: it holds data"


def test_a_folder_that_cannot_be_searched_is_not_taken_for_empty(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: str) -> object:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "scandir", forbidden)
    assert refusal(BundleError, check_target, tmp_path, replace=True) == (
        f"cannot tell what the folder {tmp_path} holds: {tmp_path}: Permission denied [E602]\n"
        "  note: a bundle takes a new folder, an empty one, or the place of another bundle\n"
        "  help: name another folder"
    )
