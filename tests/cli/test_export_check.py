"""`tffc export --check`: whether an exported part is what a bundle exports."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable

import pytest

import tffc
from tests.cli.conftest import Run
from tests.processes import run_python
from tests.refusals import refusal
from tffc.deploy.export.target import check_exported
from tffc.support.errors import ExportError, LanguageValueError

HELP = (
    " = help: export it again and use that, or check it with the versions of tffc and TensorFlow "
    "that wrote it\n"
)


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("kind", "changed"),
    [("saved_model", "saved_model.pb"), ("flower", "tffc_app/client_app.py")],
)
def test_a_changed_export_is_refused(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path, kind: str, changed: str
) -> None:
    command = ("export", str(temperature), "--to", kind, "-o", "m")
    assert run(*command).code == 0
    before = contents(tmp_path / "m")
    checked = run(*command, "--check")
    assert (checked.code, checked.stdout) == (0, "")
    assert checked.stderr == "m holds what this exports\n"
    file = tmp_path / "m" / changed
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    refused = run(*command, "--check")
    assert refused.refusal == (
        "error[E866]: m does not hold what this exports\n"
        f" = note: {changed}: it has other content\n{HELP}"
    )
    assert refused.code == 1
    file.write_bytes(before[changed])
    assert contents(tmp_path / "m") == before


@pytest.mark.slow
def test_another_process_exports_the_same_models(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    """A folder, and one of its files that is all that came to a device."""
    command = ("export", str(temperature), "--to", "tflite", "-o")
    assert run(*command, "lite").code == 0
    (tmp_path / "device").mkdir()
    work = shutil.copy(tmp_path / "lite" / "work.tflite", tmp_path / "device")
    ran = run_python("-m", "tffc", *command, "lite", "--check", cwd=tmp_path, check=True)
    assert ran.stderr == "lite holds what this exports\n"
    checked = run(*command, "device/work.tflite", "--check")
    assert checked.stderr == "device/work.tflite holds what this exports\n"
    content = pathlib.Path(work).read_bytes()
    pathlib.Path(work).write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert run(*command, "device/work.tflite", "--check").refusal == (
        "error[E866]: device/work.tflite does not hold what this exports\n"
        f" = note: work.tflite: it has other content\n{HELP}"
    )


def test_a_model_of_another_bundle_is_refused(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    module = tmp_path / "other.py"
    module.write_text(
        "import numpy as np\nimport tffc as tff\n"
        "@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))\n"
        "def total(state, data):\n    return state, tff.federated_sum(data)\n"
    )
    assert run("compile", "other.py:total", "--form", "mapreduce", "-o", "other").code == 0
    assert run("export", "other", "--to", "saved_model", "-o", "m").code == 0
    ran = run("export", str(temperature), "--to", "saved_model", "-o", "m", "--check")
    assert (ran.code, "E866" in ran.stderr) == (1, True)


def test_force_has_no_effect(run: Run, temperature: pathlib.Path) -> None:
    command = ("export", str(temperature), "--to", "saved_model", "-o", "m", "--check", "--force")
    ran = run(*command)
    assert ran.code == 2
    assert "'--force' has no effect: a check writes nothing" in ran.stderr


def add_file(folder: pathlib.Path) -> None:
    (folder / "more.py").write_text("")


def add_folder(folder: pathlib.Path) -> None:
    (folder / "empty").mkdir()


def remove_file(folder: pathlib.Path) -> None:
    os.remove(folder / "a" / "one")


def lengthen(folder: pathlib.Path) -> None:
    with open(folder / "two", "ab") as file:
        file.write(b"\0")


def empty(folder: pathlib.Path) -> None:
    (folder / "two").write_bytes(b"")


def link_elsewhere(folder: pathlib.Path) -> None:
    os.rename(folder / "two", folder.parent / "elsewhere")
    (folder / "two").symlink_to(folder.parent / "elsewhere")


def make_a_fifo(folder: pathlib.Path) -> None:
    os.remove(folder / "two")
    os.mkfifo(folder / "two")


FILES = {"a/one": b"1", "two": b"22"}

CHANGES: dict[Callable[[pathlib.Path], None], str] = {
    add_file: "more.py: it is not part of the export",
    add_folder: "empty: it is not part of the export",
    remove_file: "a/one: it is not there",
    lengthen: "two: it has other content",
    empty: "two: it has other content",
    make_a_fifo: "two: it cannot be read: it is a FIFO, expected a regular file",
}


def written(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "m"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_noticed(
    tmp_path: pathlib.Path, change: Callable[[pathlib.Path], None]
) -> None:
    folder = written(tmp_path)
    check_exported(folder, FILES)
    change(folder)
    text = refusal(ExportError, check_exported, folder, FILES)
    head, note, _ = text.split("\n", 2)
    assert head == f"{folder} does not hold what this exports [E866]"
    assert note == f"  note: {CHANGES[change]}"


def test_a_link_to_elsewhere_is_no_file_of_the_folder(tmp_path: pathlib.Path) -> None:
    folder = written(tmp_path)
    link_elsewhere(folder)
    assert "  note: two: it cannot be read: " in refusal(ExportError, check_exported, folder, FILES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("two", ""),
        ("one", "it is not part of the export"),
        ("three", "it is not part of the export"),
    ],
)
def test_one_file(tmp_path: pathlib.Path, name: str, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"22")
    if reason:
        assert f"note: {name}: {reason}\n" in refusal(ExportError, check_exported, path, FILES)
    else:
        check_exported(path, FILES)


def test_a_folder_that_is_not_there(tmp_path: pathlib.Path) -> None:
    assert "note: m: it is not there\n" in refusal(
        ExportError, check_exported, tmp_path / "m", {"": b""}
    )


def test_what_has_the_time_in_it_is_not_checked() -> None:
    with pytest.raises(LanguageValueError, match="keras cannot be checked: it has the time in it"):
        tffc.export(print, "keras", "m.keras", check=True)


def test_from_python(temperature: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "m"
    tffc.export(temperature, "saved_model", out)
    tffc.export(temperature, "saved_model", out, check=True)
    tffc.export(temperature, "saved_model", out / "saved_model.pb", check=True)
    (out / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ExportError, match="does not hold what this exports"):
        tffc.export(temperature, "saved_model", out, check=True)
    assert (out / "saved_model.pb").read_bytes() == b""
