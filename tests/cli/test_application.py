"""The command as a whole: help, version, defects, colours, interruption."""

from __future__ import annotations

import pathlib

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import ROUND, Run
from tests.processes import run_python
from tffc.backends.forms.kinds import FORMS
from tffc.cli.application import application
from tffc.support.version import VERSION


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"tffc {VERSION}\n"


def test_the_module_is_the_command(tmp_path: pathlib.Path) -> None:
    ran = run_python("-m", "tffc", "--version", cwd=tmp_path, check=True)
    assert ran.stdout == f"tffc {VERSION}\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("complie", "No such command 'complie'. Did you mean 'compile'?"),
        ("golden chek", "No such command 'chek'. Did you mean 'check'?"),
        ("train", "No such command 'train'. Did you mean 'trace'?"),
        ("frobnicate", "No such command 'frobnicate'."),
        (
            "compile x.pb --form mapreduc",
            "Invalid value for '--form': 'mapreduc' is not one of "
            f"{', '.join(map(repr, FORMS))}. Did you mean 'mapreduce'?",
        ),
        (
            "print x.pb --style text",
            "Invalid value for '--style': 'text' is not one of 'compact', 'formatted', "
            "'structural', 'typed'.",
        ),
    ],
)
def test_a_name_that_is_nearly_right(run: Run, command: str, said: str) -> None:
    ran = run(*command.split())
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1] == f"Error: {said}"


def test_every_command_shows_an_example(run: Run) -> None:
    context = click.Context(application)
    for name in application.list_commands(context):
        command = application.get_command(context, name)
        if not isinstance(command, click.Group):
            assert f"tffc {name} " in run(name, "--help").stdout


@pytest.fixture
def defect() -> object:
    """A command that fails with an unexpected exception."""

    @click.command("defect")
    def command() -> None:
        raise KeyError("no such key")

    application.add_command(command)
    yield
    application.commands.pop("defect")


@pytest.mark.usefixtures("defect")
def test_a_defect_asks_to_be_reported(run: Run) -> None:
    ran = run("defect")
    assert (ran.code, ran.stdout) == (70, "")
    assert ran.stderr == (
        "error: a defect in tffc: KeyError: 'no such key'\n"
        "  = help: run `tffc --debug ...` and report what it prints\n"
    )


@pytest.mark.usefixtures("defect")
def test_debug_shows_the_frames_of_a_defect(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFFC_DEBUG", "0")
    lines = run("--debug", "defect").stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2:] == [
        "KeyError: 'no such key'",
        "error: a defect in tffc: KeyError: 'no such key'",
    ]


def test_debug_shows_the_frames_of_a_refusal(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_DEBUG", "0")
    (tmp_path / "round.py").write_text(ROUND.replace("sum(data)", "sum(state)"))
    shown = run("--debug", "print", "round.py").stderr
    assert "frontend/aggregations.py" in shown
    assert "\nerror[E471]: the value to sum must be at CLIENTS" in shown


@pytest.mark.parametrize(("variable", "coloured"), [("UNUSED", True), ("NO_COLOR", False)])
def test_colours_only_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: str, coloured: bool
) -> None:
    monkeypatch.setenv(variable, "1")
    result = CliRunner().invoke(application, ["print", "x.pb"], color=True)
    assert ("\x1b[" in result.stderr) is coloured


def test_an_interruption_is_no_error_of_the_program(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt\n")
    ran = run("print", "slow.py")
    assert (ran.code, ran.stdout, ran.stderr) == (130, "", "\ninterrupted\n")
