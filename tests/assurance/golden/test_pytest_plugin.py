"""The plugin for pytest, in a small project.

Most runs are in this process, which has already loaded TensorFlow.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import shutil
import sys

import pytest

from tests.shell import Ended, Shell, forget_modules, with_one_time
from tffc.assurance.golden import pytest_plugin

pytestmark = pytest.mark.slow

TESTS = """\
import numpy as np
import pytest
import tffc as tff


def make(operator, dtype=np.int32):
    @tff.federated_computation(tff.types.at_server(dtype), tff.types.at_clients(dtype))
    def combined(state, data):
        return state, operator(data)

    return combined


def test_sum(tffc_golden):
    tffc_golden(make(tff.federated_sum), forms=["mapreduce"])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_largest(tffc_golden, dtype):
    tffc_golden(make(tff.federated_max, dtype))
"""

UPDATE = "pytest -q --tffc-golden=update"

OURS = ("-p", "no:tffc", "-p", "no:faulthandler", "-p", "no:unraisableexception")
"""Without plugins that change what the pytest around it has, or that collect all of its garbage."""


class Project:
    """A folder with a module of tests and its golden files."""

    def __init__(self, shell: Shell, folder: pathlib.Path) -> None:
        self.shell = shell
        self.folder = folder
        self.tests = folder / "test_round.py"
        self.golden = folder / "test_round.golden"

    def run(self, line: str) -> Ended:
        """Run pytest in this process."""
        program, *words = line.split()
        assert program == "pytest"
        path, printed = list(sys.path), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = pytest.main([*OURS, *words], plugins=[pytest_plugin])
        sys.path[:] = path
        forget_modules(self.folder)
        return Ended(int(code), with_one_time(printed.getvalue()))

    def add(self, test: str) -> None:
        self.tests.write_text(f"{TESTS}\n\n{test}")

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.golden).as_posix(): path.read_bytes()
            for path in sorted(self.golden.rglob("*"))
            if path.is_file()
        }


@pytest.fixture(scope="module")
def written(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder whose golden files were written for the first time."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "test_round.py").write_text(TESTS)
    updated = shell.run(f"cd {folder} && {UPDATE}")
    assert updated.code == 0, updated.output
    assert "\n9 changed\n" in updated.output
    return folder


@pytest.fixture
def project(
    shell: Shell, written: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A copy of that folder."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)
    return Project(shell, tmp_path)


def test_a_folder_a_test(project: Project) -> None:
    assert list(project.files()) == [
        "test_largest-float32/program.sexpr",
        "test_largest-int32/program.sexpr",
        "test_sum/mapreduce/components.sexpr",
        "test_sum/mapreduce/manifest.json",
        "test_sum/mapreduce/passes/01-drop-identity-maps.sexpr",
        "test_sum/mapreduce/passes/02-call-dominant.sexpr",
        "test_sum/mapreduce/passes/03-lower-select.sexpr",
        "test_sum/mapreduce/summary.txt",
        "test_sum/program.sexpr",
    ]
    ran = project.run("pytest -q --tffc-golden=check")
    assert (ran.code, ran.output.splitlines()[-1]) == (0, "3 passed in 0.10s")


def test_what_differs_fails_with_a_diff(project: Project) -> None:
    before = project.files()
    project.tests.write_text(TESTS.replace("federated_max", "federated_min"))
    ran = project.run("pytest -q")
    assert ran.code == 1
    assert (
        "1 golden file differs; write what is printed now with pytest --tffc-golden=update\n"
        "--- test_round.golden/test_largest-int32/program.sexpr\n"
        "+++ test_round.golden/test_largest-int32/program.sexpr (printed now)\n"
        "@@ -1,5 +1,5 @@\n"
        " (combined_arg -> (let\n"
        "-  fc_combined_symbol_0=federated_max(combined_arg[1])\n"
        "+  fc_combined_symbol_0=federated_min(combined_arg[1])\n"
        "  in <\n"
        "   combined_arg[0],\n"
        "   fc_combined_symbol_0\n"
    ) in ran.output
    assert "2 failed, 1 passed" in ran.output
    assert project.files() == before
    assert project.run(UPDATE).code == 0
    assert {name for name, content in project.files().items() if content != before[name]} == {
        "test_largest-float32/program.sexpr",
        "test_largest-int32/program.sexpr",
    }


def test_the_constant_in_a_section_is_shown(project: Project) -> None:
    test = (
        "def test_scaled(tffc_golden):\n"
        "    scale = tff.tf_computation(lambda x: x * 2, np.int32)\n"
        "    tffc_golden(make(lambda data: tff.federated_sum(tff.federated_map(scale, data))))\n"
    )
    project.add(test)
    assert project.run(UPDATE).code == 0
    project.add(test.replace("* 2", "* 3"))
    ran = project.run("pytest -q")
    assert (ran.code, "2 golden files differ" in ran.output) == (1, True)
    assert (
        "-  Mul(argument.0, int32 2) T=int32\n+  Mul(argument.0, int32 3) T=int32\n"
    ) in ran.output
    assert re.search(r" is called at test_round\.py:\d+: tffc_golden\(make\(lambda", ran.output)


def test_a_test_without_golden_files_fails(project: Project) -> None:
    project.add("def test_new(tffc_golden):\n    tffc_golden(make(tff.federated_min))\n")
    ran = project.run("pytest -q")
    assert ran.code == 1
    assert (
        "\ntest_round.golden/test_new is not there; "
        "write what is printed now with pytest --tffc-golden=update\n"
    ) in ran.output


def test_a_program_that_does_not_compile_fails(project: Project) -> None:
    project.add(
        "def test_form(tffc_golden):\n    tffc_golden(make(tff.federated_sum), forms=['mapred'])\n"
    )
    ran = project.run(UPDATE)
    assert ran.code == 1
    assert "there is no form 'mapred' [E500]\n  help: did you mean 'mapreduce'?\n" in ran.output
    assert "Traceback" not in ran.output
    assert "compiler.py" not in ran.output


def test_what_is_no_program_is_refused(project: Project) -> None:
    project.add("def test_function(tffc_golden):\n    tffc_golden(make)\n")
    assert (
        "tffc_golden takes a computation or an iterative process, found function [E714]\n"
        "  help: decorate a function with @tff.federated_computation(...)\n"
    ) in project.run("pytest -q").output


def test_each_program_needs_a_name_of_its_own(project: Project) -> None:
    twice = "def test_twice(tffc_golden):\n    tffc_golden(make(tff.federated_sum))\n"
    project.add(f"{twice}    tffc_golden(make(tff.federated_max))\n")
    assert (
        "two programs have the golden files 'test_twice' of test_round.py [E809]\n"
        "  help: give each a name: tffc_golden(program, name=...)\n"
    ) in project.run(UPDATE).output
    project.add(f"{twice}    tffc_golden(make(tff.federated_max), name='test_sum')\n")
    assert "  note: the other one is in test_round.py::test_sum\n" in project.run(UPDATE).output
    project.add(f"{twice}    tffc_golden(make(tff.federated_max), name='a/b')\n")
    assert project.run(UPDATE).code == 0
    assert {"a-b/program.sexpr", "test_twice/program.sexpr"} <= set(project.files())


def test_no_update_where_ci_is_set(project: Project) -> None:
    ran = project.shell.run(f"CI=true {UPDATE}")
    assert ran.code == 4
    assert ran.output == (
        "ERROR: golden files are not updated where CI is set [E805]\n"
        "  help: update them on your machine, review the change and commit it\n\n"
    )


@pytest.fixture
def shrunk(project: Project) -> Project:
    """The project without one of its tests, and with the golden files of a module that is gone."""
    (project.golden.parent / "test_gone.golden").mkdir()
    head, _, rest = TESTS.partition("def test_sum")
    project.tests.write_text(head + rest[rest.index("@pytest") :])
    return project


def test_what_belongs_to_no_test_fails_the_run(shrunk: Project) -> None:
    ran = shrunk.run("pytest -q")
    assert ran.code == 1
    assert ran.output.splitlines()[2:] == [
        "test_round.golden/test_sum",
        "test_gone.golden",
        "remove them with pytest --tffc-golden=update",
        "2 passed in 0.10s",
    ]


def test_an_update_removes_what_belongs_to_no_test(shrunk: Project) -> None:
    assert "test_round.golden/test_sum removed\n" in shrunk.run(UPDATE).output
    assert not (shrunk.golden / "test_sum").exists()
    assert shrunk.run("pytest -q").code == 0
    shrunk.tests.write_text("def test_nothing():\n    pass\n")
    assert shrunk.run("pytest -q").code == 1
    assert shrunk.run(UPDATE).code == 0
    assert not shrunk.golden.exists()


@pytest.mark.parametrize(
    "selection",
    [
        "-k float32",
        "test_round.py::test_sum",
        "--deselect test_round.py::test_sum",
        "-x -m nothing",
    ],
)
def test_a_part_of_the_tests_says_nothing_about_the_others(
    project: Project, selection: str
) -> None:
    before = project.files()
    ran = project.run(f"{UPDATE} {selection}")
    assert ran.code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), ran.output
    assert "removed" not in ran.output
    assert project.files() == before


def test_a_test_that_was_skipped_keeps_its_golden_files(project: Project) -> None:
    project.tests.write_text(TESTS.replace("def test_sum", "@pytest.mark.skip\ndef test_sum"))
    before = project.files()
    assert project.run(UPDATE).code == 0
    assert project.files() == before


def test_several_processes(project: Project) -> None:
    (project.golden / "left-over").mkdir()
    before = project.files()
    assert project.shell.run(f"{UPDATE} -n 2").code == 0
    assert project.files() == before


def test_the_same_files_in_every_process(project: Project) -> None:
    before = project.files()
    shutil.rmtree(project.golden)
    assert project.shell.run(f"PYTHONHASHSEED=1 {UPDATE}").code == 0
    assert project.files() == before


@pytest.mark.parametrize("name", ["", "...", "\\n\\x1b", "../"])
def test_a_name_without_a_letter(project: Project, name: str) -> None:
    """The folder would be that of all golden files of the module, which an update replaces."""
    before = project.files()
    project.add(
        f'def test_odd(tffc_golden):\n    tffc_golden(make(tff.federated_sum), name="{name}")\n'
    )
    ran = project.run(UPDATE)
    assert ran.code == 1
    assert "could be named [E809]" in ran.output
    assert project.files() == before


def test_golden_files_of_other_tools_stay(project: Project) -> None:
    """In an update too: only folders that hold nothing but our files are removed."""
    (project.folder / "picture.golden").write_text("a file")
    other = project.folder / "pages.golden"
    (other / "page").mkdir(parents=True)
    (other / "page" / "page.html").write_text("<p>")
    (project.folder / "test_other.py").write_text("def test_nothing():\n    pass\n")
    (project.folder / "test_other.golden").write_text("a file")
    assert project.run("pytest -q").code == 0
    assert project.run(UPDATE).code == 0
    left = sorted(path.name for path in project.folder.glob("*.golden"))
    assert left == ["pages.golden", "picture.golden", "test_other.golden", "test_round.golden"]
    assert (other / "page" / "page.html").exists()


def test_a_link_in_place_of_golden_files(project: Project, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    project.golden.rename(elsewhere)
    project.golden.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    ran = project.run(UPDATE)
    assert ran.code == 1
    assert "is a link, and what it leads to is not golden [E864]" in ran.output
    assert sorted(elsewhere.rglob("*")) == before


def test_what_cannot_be_removed_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception at the end of the session would be one of pytest's own."""
    stray = project.golden / "test_gone"
    stray.symlink_to(project.folder)
    ran = project.run(UPDATE)
    assert "INTERNALERROR" not in ran.output
    assert project.tests.exists()

    def refused(path: pathlib.Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("tffc.support.files.atomic.remove", refused)
    (project.golden / "test_gone").mkdir(exist_ok=True)
    ran = project.run(UPDATE)
    assert ran.code == 1
    assert "INTERNALERROR" not in ran.output
    assert "Permission denied" in ran.output


def test_the_discount_of_a_buffered_round(project: Project) -> None:
    project.add(
        "def test_buffered(tffc_golden):\n"
        "    halved = tff.buffered(discount=lambda age: 0.5 ** tf.cast(age, tf.float32))\n"
        "    program = halved(make(tff.federated_sum, np.float32))\n"
        '    tffc_golden(program, forms=["mergeable"])\n'
    )
    project.tests.write_text(f"import tensorflow as tf\n{project.tests.read_text()}")
    assert project.run(UPDATE).code == 0
    components = project.files()["test_buffered/mergeable/components.sexpr"].decode()
    assert components.startswith("; discount: (int32 -> float32)\ncomp#")
