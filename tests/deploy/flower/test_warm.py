"""Tasks reach a worker over its socket, and are done without one where there is none."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.deploy.federation.test_node import request_for
from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of
from tffc.deploy.export.target import write_exported
from tffc.deploy.federation.messages import Record, Reply
from tffc.deploy.federation.tasks import Done, Memory, Task
from tffc.deploy.flower import warm
from tffc.deploy.flower.app_folder import app_files
from tffc.deploy.flower.warm import SOCKET, ask_worker, serve
from tffc.deploy.flower.worker import KEPT, KeptNodes
from tffc.runtime.engines.process import Process
from tffc.support.errors import ExecutionError

TASK = Task(
    "app/bundle.json",
    {"data": "d", "partition-id": 1},
    {"rounds": 3, "fraction": 0.5},
    Memory(2, b"secrets"),
    Record({"round": 3, "rest": b"RR"}, [np.ones((2, 3), np.float32), np.array(7)]),
    "keys",
)


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """A private folder with a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield pathlib.Path(path)


def echo(task: Task) -> Done:
    return Done(
        task.record,
        Memory(3, task.memory.participant),
        [repr(task._replace(record=Record({}, ())))],
    )


def serving(folder: pathlib.Path, work: Any, idle: float = 30.0) -> threading.Thread:
    thread = threading.Thread(target=serve, args=(folder, work, idle), daemon=True)
    thread.start()
    while not (folder / SOCKET).exists():
        pass
    return thread


def ask(folder: pathlib.Path) -> Done | None:
    """What is made of the task by a worker that serves already: no other one is started.

    The socket is there a moment before the worker listens, and another one would find it.
    """
    return ask_worker(folder, TASK, start=lambda folder: None)


def test_a_task_and_what_comes_of_it(folder: pathlib.Path) -> None:
    thread = serving(folder, echo, 1.0)
    done = ask(folder)
    assert done is not None
    assert repr(done.record) == repr(TASK.record)
    assert (done.memory, done.log) == (
        Memory(3, b"secrets"),
        [repr(TASK._replace(record=Record({}, ())))],
    )
    thread.join()
    assert os.listdir(folder) == []


def test_a_second_worker_leaves_the_folder_to_the_first(folder: pathlib.Path) -> None:
    thread = serving(folder, echo, 1.0)
    serve(folder, nobody_works)
    assert ask(folder) is not None
    thread.join()


def nobody_works(task: Task) -> Done:
    raise AssertionError("it is not asked")


def test_a_worker_that_ends_in_mid_task(folder: pathlib.Path) -> None:
    begun: list[pathlib.Path] = []

    def dies(task: Task) -> Done:
        raise EOFError("it ends")

    def start(folder: pathlib.Path) -> None:
        begun.append(folder)
        serving(folder, dies)

    assert ask_worker(folder, TASK, start=start) is None
    assert begun == [folder]


def test_a_worker_that_does_not_begin(folder: pathlib.Path) -> None:
    waited: list[float] = []
    begun: list[pathlib.Path] = []
    assert ask_worker(folder, TASK, waited.append, begun.append) is None
    assert begun == [folder] * 2
    assert sum(waited) == pytest.approx(2 * warm.STARTING)


def test_noise_on_the_socket_ends_nothing(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(folder, echo)
    for noise in (b"", b"x", (3).to_bytes(8, "little") + b"abc", (2**62).to_bytes(8, "little")):
        with socket.socket(socket.AF_UNIX) as connection:
            while connection.connect_ex(str(folder / SOCKET)):
                pass
            connection.sendall(noise)
    assert ask(folder) is not None
    assert "EOFError: the other side ended" in capsys.readouterr().err


def test_a_folder_that_is_open_to_others(folder: pathlib.Path) -> None:
    folder.chmod(0o750)
    for use in (lambda: ask_worker(folder, TASK), lambda: serve(folder, echo)):
        assert refusal(ExecutionError, use) == (
            "the folder of a node's worker is open to others [E783]\n"
            "  help: give one that nobody but the node's user may open: chmod 700"
        )


def test_a_folder_with_a_long_path(folder: pathlib.Path) -> None:
    assert refusal(ExecutionError, ask_worker, folder / ("x" * 90), TASK) == (
        "the path of the worker's folder has more bytes than a socket takes: 100 [E783]\n"
        "  help: give a folder with a shorter path"
    )


@pytest.fixture
def task(tmp_path: pathlib.Path) -> Task:
    """The task of a node with two clients."""
    process = process_of(every_aggregation, "mapreduce")
    write_exported(tmp_path / "app", app_files(process.bundle, "app"))
    (tmp_path / "data").mkdir()
    for number in range(2):
        values = {"0": np.float32(1), "1": np.int32(number)}
        np.savez(tmp_path / "data" / f"{number}.npz", **values)
    path = str(tmp_path / "app" / "tffc_app" / "bundle.json")
    config = {"data": str(tmp_path / "data")}
    return Task(path, config, {}, Memory(), request_for(Process(process.bundle)))


def test_nodes_are_kept_between_tasks(task: Task) -> None:
    nodes = KeptNodes()
    for _ in range(2):
        done = nodes.do(task)
        assert Reply.from_record(done.record).clients == 2
        assert (done.memory, done.log) == (Memory(1), [])
    for number in range(KEPT + 1):
        nodes.do(task._replace(run_config={"seed": number}))
    assert len(nodes._nodes) == KEPT


def test_what_a_node_says_is_told_once(task: Task) -> None:
    nodes = KeptNodes()
    wrong = task._replace(record=Record({}, ()))
    (line,) = nodes.do(wrong).log
    assert line.startswith("a message of the federation is not one of tffc's")
    assert nodes.do(task).log == []


@pytest.mark.slow
def test_a_worker_in_a_process_of_its_own(task: Task, folder: pathlib.Path) -> None:
    try:
        first, second = ask_worker(folder, task), ask_worker(folder, task)
        assert first is not None
        assert second is not None
        assert Reply.from_record(first.record).clients == 2
        assert repr(second.record) == repr(first.record)
        (lock,) = folder.glob("*.lock")
        assert lock.exists()
    finally:
        for process in _workers(folder):
            os.kill(process, 15)


def _workers(folder: pathlib.Path) -> list[int]:
    found = subprocess.run(
        ["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 1) for line in found.stdout.splitlines()]
    return [int(pid) for pid, args in lines if args.endswith(f"tffc.deploy.flower.worker {folder}")]
