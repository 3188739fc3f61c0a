"""What `tffc export` writes and says."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from tests.cli.conftest import ENVIRONMENT, Run

ERROR = "error[{}]: "


def export(run: Run, bundle: pathlib.Path, *options: str) -> str:
    ran = run("export", str(bundle), "--to", "saved_model", *options)
    assert (ran.code, ran.stdout) == (1, "")
    return ran.stderr


@pytest.mark.parametrize("kind", ["saved_model", "tflite"])
def test_a_fresh_process_is_silent_but_for_what_it_wrote(
    tmp_path: pathlib.Path, temperature: pathlib.Path, kind: str
) -> None:
    command = [sys.executable, "-m", "tffc", "export", str(temperature), "--to", kind, "-o", "m"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == ""
    files = sorted(file.name for file in (tmp_path / "m").iterdir())
    nothing = (
        "  left out secure_sum_bitwidth: it gives nothing\n"
        "  left out secure_sum_max_input: it gives nothing\n"
        "  left out secure_modular_sum_modulus: it gives nothing\n"
    )
    if kind == "saved_model":
        assert files == ["saved_model.pb"]
        assert ran.stderr == (
            "wrote m: a SavedModel with 8 signatures\n"
            "  prepare(arg) -> result_0\n"
            "  work(arg_0, arg_1_0) -> result_0_0_0, result_0_0_1\n"
            "  zero() -> result_0_0, result_0_1\n"
            "  accumulate(arg_0_0_0, arg_0_0_1, arg_1_0_0, arg_1_0_1) -> result_0_0, result_0_1\n"
            "  merge(arg_0_0_0, arg_0_0_1, arg_1_0_0, arg_1_0_1) -> result_0_0, result_0_1\n"
            "  report(arg_0_0, arg_0_1) -> result_0_0, result_0_1\n"
            "  update(arg_0, arg_1_0_0_0, arg_1_0_0_1) -> result_0, result_1\n"
            "  initialize() -> result\n" + nothing
        )
        return
    assert "zero.tflite" in files
    first, *_ = ran.stderr.splitlines()
    assert first == f"wrote m: {len(files)} LiteRT models"
    assert ran.stderr.endswith(nothing)


def test_models_are_replaced_only_if_asked(run: Run, temperature: pathlib.Path) -> None:
    args = ("export", str(temperature), "--to", "saved_model", "-o", "m")
    assert run(*args).code == 0
    assert export(run, temperature, "-o", "m") == (
        "error[E956]: the folder m already holds models\n"
        " = help: add --force to replace them, or name another folder\n"
    )
    assert run(*args, "--force").code == 0


def test_other_things_are_never_replaced(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    assert export(run, temperature, "-o", "m", "--force") == (
        "error[E955]: the folder m is in use: it holds notes.txt\n = help: name a new folder\n"
    )
    assert export(run, temperature, "-o", "m/notes.txt") == (
        "error[E954]: m/notes.txt is not a folder\n = help: name a new folder\n"
    )
    assert os.listdir(tmp_path / "m") == ["notes.txt"]


def test_a_folder_that_can_not_be_written(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    (tmp_path / "file").write_text("")
    assert export(run, temperature, "-o", "file/m") == (
        "error[E957]: can not write the folder file/m: File exists\n = note: nothing was written\n"
    )
