"""Our way to start Flower's node: how long it pauses, and how processes of messages begin."""

from __future__ import annotations

import inspect
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

pytest.importorskip("flwr", reason="needs tffc[flower]")

from tffc.deploy.flower import superexec, supernode
from tffc.deploy.flower.pauses import SHORTEST, Pauses
from tffc.deploy.flower.supernode import Starts


def test_pauses_grow_with_what_was_waited() -> None:
    now, pauses = 100.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append(round(seconds, 3))
        now += seconds

    waiting = Pauses(sleep, lambda: now)
    for usual, times in ((3, 2), (0.5, 1), (3, 1)):
        for _ in range(times):
            waiting.sleep(usual)
    assert pauses == [0.05] * 4
    now += 2
    waiting.sleep(3)
    assert pauses.pop() == 0.205
    now += 60
    waiting.sleep(3)
    waiting.sleep(0.5)
    now += 60
    waiting.sleep(0.5)
    assert pauses[4:] == [3, 0.05, 0.5]
    now += 60
    waiting.came()
    waiting.sleep(0.5)
    assert pauses.pop() == 0.05


def test_what_our_node_replaces_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower's node sleeps by `time`, pulls objects again after a backoff, and both its parts start
    processes by `subprocess`."""
    node: Any = supernode.start_client_internal
    loop: Any = superexec.run_superexec
    executor: Any = superexec.subprocess_executor
    assert (node.time, loop.time) == (time, time)
    assert (node.subprocess, executor.subprocess) == (subprocess, subprocess)
    began: list[str] = []
    for module, name in ((supernode, "flower_supernode"), (superexec, "flower_superexec")):
        monkeypatch.setattr(module, name, lambda name=name: began.append(name))
    for each in (node, executor):
        monkeypatch.setattr(each, "subprocess", subprocess)
    for each in (node, loop):
        monkeypatch.setattr(each, "time", time)
    monkeypatch.setattr(node, "pull_objects", node.pull_objects)
    assert "initial_backoff" in inspect.signature(node.pull_objects).parameters
    supernode.main()
    superexec.main()
    assert node.pull_objects.keywords == {"initial_backoff": SHORTEST}
    assert isinstance(node.time, Pauses)
    assert isinstance(loop.time, Pauses)
    assert isinstance(node.subprocess, Starts)
    assert isinstance(executor.subprocess, superexec.Forks)
    assert began == ["flower_supernode", "flower_superexec"]


def test_our_superexec_is_started_as_flowers(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", commands.append)
    Starts.Popen(["flower-superexec", "--insecure"])
    assert commands == [[sys.executable, "-m", "tffc.deploy.flower.superexec", "--insecure"]]


def write_process(command: list[str]) -> None:
    """What a process that is forked does in these tests: it says what it has."""
    looked_for = (
        "flwr.supernode.cli",
        "tffc.deploy.flower.sides",
        "tffc.deploy.flower.node",
        "tensorflow",
    )
    found = f"{command[1:]} {[name for name in looked_for if name in sys.modules]}"
    pathlib.Path(command[-1]).write_text(found)


@pytest.mark.slow
def test_messages_are_done_in_processes_that_are_forked(tmp_path: pathlib.Path) -> None:
    forks = superexec.Forks(Pauses(), write_process)
    said = tmp_path / "said"
    app: Any = forks.Popen(["flwr-clientapp", "--token", "t", str(said)])
    app.join()
    assert said.read_text() == (
        f"['--token', 't', '{said}'] ['flwr.supernode.cli', 'tffc.deploy.flower.sides']"
    )
    other: Any = forks.Popen(["true"], stdout=forks.DEVNULL)
    assert other.wait() == 0
