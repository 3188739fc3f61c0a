"""What the SuperLink fails to do is repeated for some time, and then said."""

# Flower may not be installed; then its types are unknown.
# pyright: reportMissingImports=false

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.deploy.federation.messages import Record
from tffc.support.errors import ExecutionError

pytest.importorskip("flwr", reason="needs tffc[flower]")

import httpx
from flwr.app import Message
from flwr.proto.node_pb2 import NodeInfo

from tests.deploy.flower import grid as grid_here
from tffc.deploy.federation.tasks import WORK
from tffc.deploy.flower.grid import AGAIN, REPEATING, GridFederation

assert grid_here
RECORD = Record({"round": 1}, [np.ones(2, np.float32)])


def failure(status: int) -> httpx.HTTPStatusError:
    """What Flower's client raises when the SuperLink answers with a status."""
    request = httpx.Request("POST", "https://127.0.0.1/")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status))


class FailingGrid:
    """A grid of one node that answers nothing; each call fails so many times at first."""

    def __init__(self, error: Exception, times: int, *, is_stored: bool = False) -> None:
        self.error, self.is_stored = error, is_stored
        self.left: dict[str, int] = dict.fromkeys(("nodes", "push", "pull"), times)
        self.calls: list[str] = []

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.left[name] -= 1
        if self.left[name] >= 0:
            raise self.error

    def get_nodes(self) -> list[NodeInfo]:
        self._call("nodes")
        return [NodeInfo(node_id=7, name="silo", status="online")]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        for message in messages:
            message.metadata.__dict__["_message_id"] = "m1"
        self._call("push")
        return [""] if self.is_stored else ["m1"]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        self._call("pull")
        return [types.SimpleNamespace(metadata=types.SimpleNamespace(reply_to_message_id=each))
                for each in message_ids]  # fmt: skip


class Calls:
    """A federation on a failing grid, and what it tells and waits for."""

    def __init__(self, grid: FailingGrid) -> None:
        self.told: list[str] = []
        self.waited: list[float] = []
        grid_: Any = grid
        self.federation = GridFederation(grid_, 5.0, self.told.append, self.waited.append)

    def round(self) -> list[Any]:
        assert self.federation.names() == ["silo"]
        self.federation.send(WORK, {"silo": RECORD})
        return [node for node, _ in self.federation._pull(self.federation._pending, 5.0)]


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_fails_at_first_is_repeated(*, is_stored: bool) -> None:
    """Also a request that the SuperLink has stored before it failed, which it names no more."""
    grid = FailingGrid(failure(500), 2, is_stored=is_stored)
    calls = Calls(grid)
    assert calls.round() == ["silo"]
    assert grid.calls == ["nodes"] * 3 + ["push"] * 3 + ["pull"] * 3
    assert calls.waited == [AGAIN] * 6
    assert set(calls.told) == {"the SuperLink fails with status 500: it is asked again"}


def test_a_message_that_is_refused_is_not_waited_for() -> None:
    grid = FailingGrid(failure(500), 0, is_stored=True)
    assert Calls(grid).round() == []


def test_a_superlink_that_goes_on_failing() -> None:
    calls = Calls(FailingGrid(failure(503), 10**6))
    assert refusal(ExecutionError, calls.round) == (
        "the SuperLink fails with status 503, for 60 s [E784]\n"
        "  help: see its log; if it says that the database is locked, start it with python -m "
        "tffc.deploy.flower.superlink and resume the run"
    )
    assert sum(calls.waited) == REPEATING


@pytest.mark.parametrize("error", [failure(401), KeyError("another")])
def test_other_errors_are_not_repeated(error: Exception) -> None:
    calls = Calls(FailingGrid(error, 1))
    act: Callable[[], Any] = calls.round
    with pytest.raises(type(error)):
        act()
    assert calls.waited == []
