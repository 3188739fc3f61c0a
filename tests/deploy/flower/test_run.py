"""The command that runs an app says how the run ended."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.processes import ROOT
from tests.refusals import refusal
from tffc.deploy.flower.owner import OWNER
from tffc.deploy.flower.run import PATIENCE, POLL, main, run_app
from tffc.support.errors import ExecutionError

HELP = (
    "  help: see its log, and that of the SuperLink; with the same folder as out, resume=true goes "
    "on after the last finished round"
)


def status(name: str, details: str = "") -> str:
    """What Flower prints of a run."""
    return json.dumps({"success": True, "runs": [{"status": name, "status-details": details}]})


class Flower:
    """Flower's command, which prints these answers about the run, the last one again and again."""

    def __init__(self, *answers: str, begun: str = '{"success": true, "run-id": "7"}') -> None:
        self.answers = [begun, *answers]
        self.asked: list[Sequence[str]] = []
        self.told: list[str] = []
        self.waited: list[float] = []

    def __call__(self, arguments: Sequence[str], is_captured: bool) -> str:
        self.asked.append(arguments)
        assert is_captured == (arguments[0] != "log")
        if not is_captured:
            return ""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def run(self) -> None:
        options = ["--run-config", "rounds=2"]
        run_app("app", ["here"], options, self.told.append, self, self.waited.append, self.clock)

    def clock(self) -> float:
        return sum(self.waited)


def test_a_run_that_completes() -> None:
    flower = Flower(status("running"), "", status("finished:completed"))
    flower.run()
    assert flower.told == ["run 7 has begun", "run 7 has completed"]
    assert flower.waited == [POLL, POLL]
    assert list(map(list, flower.asked[:3])) == [
        ["run", "app", "here", "--run-config", "rounds=2", "--format", "json"],
        ["log", "7", "here", "--stream"],
        ["list", "here", "--run-id", "7", "--format", "json"],
    ]


@pytest.mark.parametrize(
    ("name", "details", "notes"),
    [
        ("finished:failed", "ServerApp failed:\nno nodes", ["ServerApp failed:", "no nodes"]),
        ("finished:stopped", "", []),
    ],
)
def test_a_run_that_does_not_complete(name: str, details: str, notes: list[str]) -> None:
    told = "".join(f"  note: {note}\n" for note in notes)
    assert refusal(ExecutionError, Flower(status("running"), status(name, details)).run) == (
        f"run 7 has not completed: {name} [E785]\n{told}{HELP}"
    )


@pytest.mark.parametrize(
    ("printed", "note"),
    [
        ('{"success": false, "error-message": "Connection refused"}', "Connection refused"),
        ("Usage: flwr run\n", "Usage: flwr run"),
        ('{"run-id": "seven", "error-message": "what"}', "what"),
        ("[7]", "[7]"),
    ],
)
def test_a_run_that_does_not_begin(printed: str, note: str) -> None:
    flower = Flower(begun=printed)
    assert refusal(ExecutionError, flower.run) == (
        f"the run has not begun [E785]\n  note: {note}\n"
        "  help: check the connection, and that the SuperLink runs"
    )
    assert len(flower.asked) == 1


@pytest.mark.parametrize("printed", ["", "{}", '{"runs": []}', '{"runs": [{"status": 3}]}'])
def test_a_server_that_is_gone(printed: str) -> None:
    flower = Flower(printed)
    assert refusal(ExecutionError, flower.run) == (
        "the SuperLink does not answer how run 7 is [E785]\n"
        "  help: see its log; start it again with the same database"
    )
    assert sum(flower.waited) == pytest.approx(PATIENCE)


def exit_of(monkeypatch: pytest.MonkeyPatch, outcome: Callable[..., None], *words: str) -> Any:
    """The exit status of the command with these arguments, where its run does this."""
    monkeypatch.setattr(sys, "argv", ["run", *words])
    monkeypatch.setenv(OWNER, str(os.getpid()))
    monkeypatch.setattr("tffc.deploy.flower.run.run_app", outcome)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


LASTING = """\
import os, pathlib, sys, time
pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))
time.sleep(600)
"""
"""What stands in for Flower's command: it says who it is, and would stay."""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_flowers_command_ends_with_ours(tmp_path: pathlib.Path) -> None:
    app, number = tmp_path / "flwr" / "cli" / "app.py", tmp_path / "number"
    app.parent.mkdir(parents=True)
    app.write_text(LASTING)
    for folder in (app.parent, app.parent.parent):
        (folder / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    command = (sys.executable, "-m", "tffc.deploy.flower.run", str(number))
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as ours:
        while not (number.exists() and number.read_text()):
            assert ours.poll() is None
            time.sleep(0.05)
        watched = os.pidfd_open(int(number.read_text()))
        ours.kill()
    try:
        assert select.select([watched], [], [], 20)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        os.close(watched)


def test_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(app: str, connection: list[str], options: list[str], tell: object) -> None:
        assert (app, connection) == ("app", ["here"])
        assert options == ["--run-config", "rounds=2", "--run-config", "seed=1"]
        raise ExecutionError("E785", "run 7 has not completed: finished:failed")

    def is_interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    words = ("app", "here", "-c", "rounds=2", "--run-config", "seed=1")
    assert exit_of(monkeypatch, fails, *words) == 1
    assert capsys.readouterr().err == "run 7 has not completed: finished:failed [E785]\n"
    assert exit_of(monkeypatch, is_interrupted, "app") == 130
    assert capsys.readouterr().err == "the run goes on without this command; flwr stop ends it\n"
    assert exit_of(monkeypatch, is_interrupted) == 2
