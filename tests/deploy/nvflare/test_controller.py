"""The federation reached through NVFlare's tasks: late, failed and foreign results, and the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("nvflare", reason="needs the extra nvflare")

from nvflare.apis.controller_spec import Task, TaskCompletionStatus  # pyright: ignore[reportMissingImports]
from nvflare.apis.fl_constant import ReturnCode  # pyright: ignore[reportMissingImports]
from nvflare.apis.shareable import Shareable, make_reply  # pyright: ignore[reportMissingImports]
from nvflare.apis.signal import Signal  # pyright: ignore[reportMissingImports]

from tffc.deploy.federation.asking import Arrival
from tffc.deploy.federation.messages import Record
from tffc.deploy.nvflare.controller import StoppedError, TaskFederation
from tffc.deploy.nvflare.job_folder import CONTENT
from tffc.deploy.nvflare.packed import pack

RECORD = Record({"round": 1}, [])


class Client:
    def __init__(self, name: str) -> None:
        self.name = name


class ClientTask:
    """What NVFlare gives a callback: a task of one client, and the result."""

    def __init__(self, task: Task, result: Shareable) -> None:
        self.task = task
        self.result = result


class Context:
    """NVFlare's context and engine, with the clients that are there."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def get_engine(self) -> Context:
        return self

    def get_clients(self) -> list[Client]:
        return [Client(name) for name in self.names]


class Tasks:
    """A controller that keeps the tasks that it is given, by client."""

    def __init__(self) -> None:
        self.sent: dict[str, Task] = {}
        self.cancelled: list[Task] = []

    def send(self, task: Task, fl_ctx: object, targets: list[str]) -> None:
        (name,) = targets
        self.sent[name] = task

    def cancel_task(self, task: Task, fl_ctx: object) -> None:
        self.cancelled.append(task)
        self.end(task, TaskCompletionStatus.CANCELLED)

    def end(self, task: Task, status: TaskCompletionStatus) -> None:
        task.completion_status = status
        task.task_done_cb(task=task, fl_ctx=None)

    def answer(self, name: str, result: Shareable, task: Task | None = None) -> None:
        answered = task or self.sent[name]
        answered.result_received_cb(client_task=ClientTask(answered, result), fl_ctx=None)


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
def signal() -> Signal:
    return Signal()


@pytest.fixture
def federation(tasks: Tasks, signal: Signal) -> TaskFederation:
    context: Any = Context("b", "a", "no name of a node", "a")
    controller: Any = tasks
    return TaskFederation(controller, context, signal, 600)


def good(number: int = 2) -> Shareable:
    return Shareable({CONTENT: pack(Record({"round": number}, []))})


def test_the_names_are_those_of_valid_clients(federation: TaskFederation) -> None:
    assert federation.names() == ["a", "b"]


def test_each_site_has_a_task_of_its_own(federation: TaskFederation, tasks: Tasks) -> None:
    federation.send("work", {"a": RECORD, "b": RECORD})
    assert {name: task.name for name, task in tasks.sent.items()} == {"a": "work", "b": "work"}
    assert {task.timeout for task in tasks.sent.values()} == {630}
    assert tasks.sent["a"].data is not tasks.sent["b"].data
    tasks.answer("b", good(7))
    tasks.answer("a", good(8))
    assert [(a.node, a.record and a.record.entries) for a in federation.receive(9)] == [
        ("b", {"round": 7}),
        ("a", {"round": 8}),
    ]


def test_only_the_first_result_of_the_last_task_counts(
    federation: TaskFederation, tasks: Tasks
) -> None:
    federation.send("work", {"a": RECORD})
    earlier = tasks.sent["a"]
    federation.send("work", {"a": RECORD})
    assert tasks.cancelled == [earlier]
    tasks.answer("a", good(1), earlier)
    tasks.answer("a", good(2))
    tasks.answer("a", good(3))
    assert [a.record and a.record.entries["round"] for a in federation.receive(9)] == [2]
    assert list(federation.receive(9)) == []


def test_more_leaves_the_tasks_of_others(federation: TaskFederation, tasks: Tasks) -> None:
    federation.send("work", {"a": RECORD, "b": RECORD})
    earlier = dict(tasks.sent)
    federation.send("work", {"b": RECORD}, more=True)
    assert tasks.cancelled == [earlier["b"]]
    tasks.answer("a", good(1), earlier["a"])
    tasks.answer("b", good(2))
    assert [a.node for a in federation.receive(9)] == ["a", "b"]


def test_what_is_no_answer(federation: TaskFederation, tasks: Tasks) -> None:
    federation.send("work", {"a": RECORD, "b": RECORD, "c": RECORD})
    tasks.answer("a", make_reply(ReturnCode.EXECUTION_EXCEPTION))
    tasks.answer("b", Shareable({CONTENT: b"x"}))
    tasks.end(tasks.sent["c"], TaskCompletionStatus.CLIENT_DEAD)
    arrivals = {a.node: a for a in federation.receive(9)}
    assert arrivals["a"] == Arrival("a", None, "NVFlare reports that its task failed")
    assert arrivals["b"].problem.startswith("a message of the federation is not one of tffc's: ")
    assert arrivals["c"] == Arrival("c", None, "NVFlare ends its task: client_dead")


def test_the_wait_ends(federation: TaskFederation, tasks: Tasks) -> None:
    federation.send("work", {"a": RECORD})
    assert list(federation.receive(0.1)) == []
    tasks.answer("a", good())
    assert len(list(federation.receive(0.1))) == 1


def test_the_end_of_the_job_ends_every_wait(
    federation: TaskFederation, tasks: Tasks, signal: Signal
) -> None:
    federation.send("work", {"a": RECORD})
    threading.Timer(0.2, signal.trigger, [True]).start()
    with pytest.raises(StoppedError):
        list(federation.receive(60))
    with pytest.raises(StoppedError):
        federation.sleep(60)
