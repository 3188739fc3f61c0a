"""A new project runs: its round, its goldens, its audit."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import Run
from tests.processes import run_python
from tffc.cli.commands.init import PLACES, TEMPLATE


@pytest.fixture
def project(run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of a new project, as the working directory."""
    folder = tmp_path / "line"
    assert run("init", str(folder)).code == 0
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CI", raising=False)
    return folder


def test_the_template_is_what_is_written() -> None:
    assert {path.name for path in TEMPLATE.iterdir()} == set(PLACES)


def test_what_comes_next_is_said(run: Run) -> None:
    ran = run("init", "a line")
    assert ran.stderr == (
        "wrote a line: 9 files; next:\n"
        "  cd 'a line'\n"
        "  tffc run line.py:training --data 'csv:points.csv?client=client' --rounds 20\n"
        "  tffc golden update\n"
        "  tffc audit line.py:training --policy policy.yaml\n"
        "  pytest\n"
    )


def test_rounds_find_the_line(run: Run, project: pathlib.Path) -> None:
    data = "csv:points.csv?client=client"
    ran = run("run", "line.py:training", "--data", data, "--rounds", "20", "--log", "jsonl")
    assert ran.code == 0
    last = ran.stdout.splitlines()[-1]
    slope, height = (float(part) for part in last.partition("[")[2].partition("]")[0].split(","))
    assert abs(slope - 2) < 0.1
    assert abs(height - 1) < 0.1


@pytest.mark.slow
def test_goldens_and_the_policy_hold(run: Run, project: pathlib.Path) -> None:
    assert run("golden", "update").code == 0
    assert run("golden", "check").code == 0
    assert run("audit", "line.py:training", "--policy", "policy.yaml").code == 0
    program = project / "line.py"
    text = program.read_text()
    program.write_text(text.replace("RATE = 0.02", "RATE = 0.03"))
    assert run("golden", "check").code == 1
    program.write_text(text.replace("federated_mean(lines)", "federated_sum(lines)"))
    ran = run("audit", "line.py:training", "--policy", "policy.yaml")
    assert ran.code == 1
    assert "federated_sum is used; allowed: federated_mean" in ran.stderr


@pytest.mark.slow
def test_the_tests_of_the_project_see_what_breaks(project: pathlib.Path) -> None:
    own = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_line.py")
    ran = run_python(*own, cwd=project)
    assert ran.returncode == 0, ran.stdout
    program = project / "line.py"
    program.write_text(program.read_text().replace("federated_mean(lines)", "federated_sum(lines)"))
    ran = run_python(*own, cwd=project)
    assert ran.returncode == 1
    assert "federated_sum is used; allowed: federated_mean" in ran.stdout


def test_what_is_there_stays(run: Run, project: pathlib.Path) -> None:
    ran = run("init", "golden")
    assert ran.code == 1
    assert ran.stderr == "error[E861]: golden already exists\n = help: name a new folder\n"


def test_a_folder_that_cannot_be_written(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run("init", "file/line")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E851]: cannot write the folder file/line: ")
