"""`tffc print --style typed` and `tffc parse`: round trips."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.cli.conftest import Run
from tests.processes import ENVIRONMENT, ROOT
from tffc.language import wire


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


MISTAKES = {
    "a missing element": (
        "(x: int32 -> \n  <x,)\n",
        """\
error[E236]: expected an expression, found `)`
 --> broken.txt:2:6
  |
2 |   <x,)
  |      ^
""",
    ),
    "a name that is not bound": (
        "(x: int32 ->\n  y)\n",
        """\
error[E141]: `y` is not bound here
 --> broken.txt:2:3
  |
2 |   y)
  |   ^
""",
    ),
    "a letter that is not of ASCII": (
        "<b'a',é>\n",
        """\
error[E141]: `é` is not bound here
 --> broken.txt:1:7
  |
1 | <b'a',é>
  |       ^
""",
    ),
    "a section that is not given": (
        f"comp#a\nwhere comp#a: int32 xla sha256:{'1' * 64}\n",
        f"""\
error[E243]: the section {"1" * 64} is not among those given
 --> broken.txt:2:25
  |
2 | where comp#a: int32 xla sha256:{"1" * 64}
  |                         ^
""",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_at_its_place(run: Run, tmp_path: pathlib.Path, mistake: str) -> None:
    text, shown = MISTAKES[mistake]
    (tmp_path / "broken.txt").write_text(text)
    assert run("parse", "broken.txt", "-o", "again.pb").refusal.startswith(shown)
    assert not (tmp_path / "again.pb").exists()


def test_a_mistake_in_piped_text_is_shown_and_long_lines_are_cut(run: Run) -> None:
    text = "<" + "'é'," * 500 + "$" + ",1" * 500 + ">"
    ran = run("parse", "-", "-o", "again.pb", input=text.replace("'é'", '"é":str').encode())
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        "error[E236]: unexpected '$'\n"
        " --> stdin:1:4002\n"
        "  |\n"
        "1 | ...," + '"é":str,' * 6 + "$" + ",1" * 25 + "...\n"
        "  |    " + " " * 49 + "^\n"
    )


def test_text_goes_through_a_pipe(run: Run, tmp_path: pathlib.Path) -> None:
    ran = run("parse", "-", "-o", "again.pb", input=b"(x: int32 -> x)")
    assert (ran.code, ran.stderr) == (0, "wrote again.pb: (int32 -> int32)\n")
    assert run("print", "again.pb", "--style", "typed").stdout == "(x: int32 -> x)\n"


def test_a_program_without_a_file_goes_to_stdout(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "tffc", "parse", "-", "-o", "-"]
    text = b"(x: int32 -> x)"
    ran = subprocess.run(
        command, input=text, capture_output=True, check=True, cwd=tmp_path, env=ENVIRONMENT
    )
    assert (str(wire.from_bytes(ran.stdout)), ran.stderr) == ("(x -> x)", b"")
    assert list(tmp_path.iterdir()) == []


def test_no_such_file(run: Run) -> None:
    ran = run("parse", "none.txt", "-o", "again.pb")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E850]: cannot read none.txt: No such file or directory\n",
    )


def test_sections_that_cannot_be_written(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    target = f"{ROOT}/examples/slides.py:simple"
    assert run("print", target, "--style", "typed", "--sections", "file").refusal == (
        "error[E851]: cannot write sections to file: File exists\n"
        " = help: give a writable folder, or a new path that can be created\n"
    )
