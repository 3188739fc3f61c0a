"""Our way to start Flower's node: how long it pauses, and how processes of messages begin."""

from __future__ import annotations

import inspect
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("flwr", reason="needs tffc[flower]")

from tffc.deploy.federation.pauses import SHORTEST
from tffc.deploy.flower import superexec, supernode
from tffc.deploy.flower.owner import OWNER
from tffc.deploy.flower.pauses import Pauses

FLOWER: tuple[Any, Any, Any] = (
    supernode.start_client_internal,
    superexec.run_superexec,
    superexec.subprocess_executor,
)
"""The modules of Flower where its node and its SuperExec wait, and where that starts processes."""


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


@pytest.fixture
def flower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets our programs end where Flower's would begin, and gives Flower its own modules back."""
    node, loop, executor = FLOWER
    for module, name in (
        *((each, "time") for each in (node, loop)),
        *((each, "subprocess") for each in (node, executor)),
        (node, "pull_objects"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setenv(OWNER, str(os.getpid()))
    monkeypatch.setattr(superexec.Forks, "prepare", lambda forks: None)
    monkeypatch.setattr(supernode, "flower_supernode", lambda: None)
    monkeypatch.setattr(superexec, "flower_superexec", lambda: None)


def seconds_of(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


@pytest.mark.usefixtures("flower")
@pytest.mark.parametrize(("main", "part"), [(supernode.main, 0), (superexec.main, 1)])
def test_where_flower_pauses_long_we_do_not(main: Callable[[], None], part: int) -> None:
    assert FLOWER[part].time is time
    main()
    assert seconds_of(lambda: FLOWER[part].time.sleep(3)) < 1


@pytest.mark.usefixtures("flower")
def test_missing_parts_of_a_message_are_pulled_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    node = FLOWER[0]
    inspect.signature(node.pull_objects).bind_partial(initial_backoff=SHORTEST)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(node, "pull_objects", lambda *names, **options: asked.append(options))
    supernode.main()
    node.pull_objects(["one"])
    assert asked == [{"initial_backoff": SHORTEST}]


@pytest.mark.usefixtures("flower")
def test_our_superexec_is_started_in_place_of_flowers(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: commands.append(command))
    assert FLOWER[0].subprocess is subprocess
    supernode.main()
    FLOWER[0].subprocess.Popen(["flower-superexec", "--insecure"])
    assert commands == [[sys.executable, "-m", "tffc.deploy.flower.superexec", "--insecure"]]


@pytest.mark.usefixtures("flower")
def test_our_superexec_starts_other_commands_as_they_are() -> None:
    assert FLOWER[2].subprocess is subprocess
    superexec.main()
    process = FLOWER[2].subprocess.Popen(["sh", "-c", "exit 3"])
    assert process.wait() == 3


def write_process(command: list[str]) -> None:
    """What a process that is forked does in these tests: it says what it has."""
    looked_for = (
        "flwr.supernode.cli",
        "tffc.deploy.flower.sides",
        "tffc.deploy.federation.node",
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
