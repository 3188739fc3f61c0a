"""The nightly job ends in its time, keeps what fails, and prints its table."""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

import pytest

from tests import nightly
from tests.hostile import long
from tests.processes import ROOT, run_python

pytestmark = pytest.mark.slow

FAILING = """\
import pathlib, sys
from tests import nightly
from tests.hostile import long

def run(seed, case):
    return 1 / (case % 3 - 1) < seed

def content(seed, case):
    return b"%d" % case

def read(data):
    return run(7, int(data))

nightly.GENERATORS["failing"] = long.Generator(run, 9, content=content, read=read)
folder = pathlib.Path(sys.argv[1])
if sys.argv[2:]:
    print(nightly.try_again(folder))
else:
    nightly.ENDLESS = 5
    print(nightly.night(1, 7, folder, ["failing"]))
"""


def test_a_short_night(tmp_path: pathlib.Path) -> None:
    begun = time.monotonic()
    names = ("reader-hlo", "reader-graph", "messages")
    only = (f"--only={name}" for name in names)
    done = run_python(
        "-m", "tests.nightly", "--minutes=0.06", "--seed=3", f"--keep={tmp_path}", *only, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    head, line, *rows = [row.strip("| ").split(" | ") for row in done.stdout.splitlines()]
    assert head == list(nightly.HEADS)
    assert line == ["---"] * 4
    assert [row[0] for row in rows[:3]] == list(names)
    assert all(int(row[1].replace(",", "")) > 0 for row in rows[:3])
    assert all(row[-1] == "none" for row in rows)
    assert time.monotonic() - begun < 600


def test_what_fails_is_kept_and_tried_again(tmp_path: pathlib.Path) -> None:
    done = run_python("-c", FAILING, str(tmp_path), cwd=ROOT)
    assert done.stdout.splitlines()[-2:] == ["| failing | 5 | 3 | 2 |", "True"], done.stderr
    kept = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert kept == {f"failing-7-{n}/{name}" for n in (1, 4) for name in ("said.txt", "input.bin")}
    assert "ZeroDivisionError" in (tmp_path / "failing-7-1" / "said.txt").read_text()
    assert (tmp_path / "failing-7-4" / "input.bin").read_bytes() == b"4"
    for content, fails in ((b"4", "True"), (b"3", "False"), (None, "True")):
        file = tmp_path / "failing-7-4" / "input.bin"
        file.unlink() if content is None else file.write_bytes(content)
        again = run_python("-c", FAILING, str(tmp_path / "failing-7-4"), "again", cwd=ROOT)
        assert again.stdout.split() == [fails], again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--again", "none-such-3-4"], "is not a case that a night kept"),
        (["--again", "signals-to-commands-3.txt"], "is not a case that a night kept"),
        (["--again", "coverage-none_such-crash-0a"], "is not a case that a night kept"),
        (["--seed=-1"], "a seed is a number from 0"),
        (["--seed=x"], "invalid"),
    ],
)
def test_mistakes(tmp_path: pathlib.Path, arguments: list[str], said: str) -> None:
    for name in ("signals-to-commands-3.txt", "coverage-none_such-crash-0a"):
        (tmp_path / name).write_text("")
    if arguments[0] == "--again":
        arguments[1] = str(tmp_path / arguments[1])
    done = run_python("-m", "tests.nightly", *arguments, cwd=ROOT)
    assert done.returncode == 2
    assert said in done.stderr


def test_an_input_of_the_fuzzer_is_tried_again(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "coverage-graph-crash-0aff"
    file.write_bytes(b"\x0a")
    # In a process of its own: this one may hold TensorFlow, which no fork survives.
    again = run_python("-m", "tests.nightly", "--again", str(file), cwd=ROOT)
    assert again.returncode == 0, again.stderr


def test_a_fuzzer_that_cannot_begin_is_counted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(nightly.os.environ, "PYTHONPATH", str(tmp_path))
    (tmp_path / "atheris.py").write_text("raise ImportError('not today')")
    assert nightly.fuzz_for("graph", 1, 7, tmp_path) == 1
    assert "not today" in (tmp_path / "coverage-graph-7.txt").read_text()


def test_what_a_script_began_ends_with_it(tmp_path: pathlib.Path) -> None:
    began = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]).wait()"
    writes = "import time, pathlib, sys; time.sleep(4); pathlib.Path('x').touch()"
    command = [sys.executable, "-c", began, f"import os; os.chdir({str(tmp_path)!r}); {writes}"]
    assert nightly._run(command, tmp_path / "log", 1.5) is None
    time.sleep(5)
    assert not (tmp_path / "x").exists()


def test_scripts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    scripts = {"fails": ("tests.none_such",), "waits": ("http.server",), "ends": ("this",)}
    monkeypatch.setattr(nightly, "SCRIPTS", scripts)
    assert nightly.night(0.2, 3, tmp_path, [], scripts)
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[-1] for row in rows] == ["some", "none", "none"]
    assert "No module named tests.none_such" in (tmp_path / "fails-3.txt").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["fails-3.txt"]
    assert [row[1] for row in rows] == ["all", "1 s", "all"]


def test_the_night_has_everything_that_is_long() -> None:
    assert nightly.GENERATORS is long.GENERATORS
