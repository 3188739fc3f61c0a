"""`tffc print --style typed` and `tffc parse`: there and back."""

from __future__ import annotations

import pathlib

from tests.cli.conftest import ROOT, Run


def test_there_and_back(run: Run, tmp_path: pathlib.Path) -> None:
    target = f"{ROOT}/examples/slides.py:simple"
    assert run("trace", target, "-o", "simple.pb").code == 0
    ran = run("print", "simple.pb", "--style", "typed", "--sections", "sections")
    assert (ran.code, ran.stderr) == (0, "")
    (tmp_path / "simple.txt").write_text(ran.stdout)
    again = run("parse", "simple.txt", "--sections", "sections", "-o", "again.pb")
    type_ = "(int32@SERVER -> int32@SERVER)"
    assert (again.code, again.stdout, again.stderr) == (0, "", f"wrote again.pb: {type_}\n")
    assert (tmp_path / "again.pb").read_bytes() == (tmp_path / "simple.pb").read_bytes()


def test_a_syntax_error_points(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "broken.txt").write_text("(x:int32 -> \n  <x,)\n")
    ran = run("parse", "broken.txt", "-o", "again.pb")
    assert (ran.code, ran.stdout) == (1, "")
    assert "broken.txt:2" in ran.stderr
    assert not (tmp_path / "again.pb").exists()


def test_no_such_file(run: Run) -> None:
    ran = run("parse", "none.txt", "-o", "again.pb")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E855]: can not read none.txt: No such file or directory\n",
    )


def test_sections_that_can_not_be_written(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    target = f"{ROOT}/examples/slides.py:simple"
    ran = run("print", target, "--style", "typed", "--sections", "file")
    assert ran.code == 1
    assert ran.stderr == "error[E854]: can not write sections to file: File exists\n"
