"""Clients whose reading waits are read before they are asked for, and nothing else changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import pytest

from tests.runtime.engines.batches import Outcome, round_of
from tests.runtime.engines.sources import SomeBad, Values
from tffc.runtime.engines import read_ahead
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.read_ahead import AHEAD, LEAST_WAIT, ReadAhead, Waits
from tffc.support.errors import DataError

Call: TypeAlias = Callable[[Callable[[], Any], int], Future[Any]]


@pytest.fixture
def call() -> Iterator[Call]:
    with ThreadPoolExecutor(AHEAD) as threads:
        yield lambda function, _: threads.submit(function)


class Slow(Values):
    """Clients that a network gives."""

    def read(self, client: str) -> Any:
        time.sleep(2 * LEAST_WAIT)
        return super().read(client)


class Started(Values):
    """Clients that are only given when they are let go."""

    started: set[str]
    go: threading.Event

    def read(self, client: str) -> Any:
        self.started.add(client)
        self.go.wait()
        return super().read(client)


def started_of(count: int) -> Any:
    source = Started(range(count))
    object.__setattr__(source, "started", set())
    object.__setattr__(source, "go", threading.Event())
    return source


def waiting() -> Waits:
    waits = Waits()
    waits.seconds = 1.0
    return waits


class Clock:
    """Stands for the module `time`: the seconds that passed, and of them those of computing."""

    def __init__(self) -> None:
        self.passed = self.computed = 0.0

    def perf_counter(self) -> float:
        return self.passed

    def thread_time(self) -> float:
        return self.computed


@pytest.mark.parametrize("waits", [True, False])
def test_the_time_in_which_reading_waits_is_measured(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(read_ahead, "time", clock)

    class Timed(Values):
        def read(self, client: str) -> Any:
            clock.passed += 2 * LEAST_WAIT
            clock.computed += 0 if waits else 2 * LEAST_WAIT
            return super().read(client)

    measured = Waits()
    for _ in range(20):
        assert measured.read(Timed([1]), "00000") == 1
    assert (measured.seconds > LEAST_WAIT) == waits


def test_so_many_are_read_ahead(call: Call) -> None:
    source = started_of(AHEAD + 5)
    ahead = ReadAhead(source, source.clients, waiting(), call)
    first = threading.Thread(target=ahead.read, args=(source.clients[0],), daemon=True)
    first.start()
    while len(source.started) < AHEAD + 1:
        time.sleep(0.001)
    source.go.set()
    first.join()
    assert source.started == set(source.clients[: AHEAD + 1])
    assert [ahead.read(client) for client in source.clients[1:]] == list(range(1, AHEAD + 5))


def test_nobody_is_read_ahead_where_reading_does_not_wait(call: Call) -> None:
    source = started_of(3)
    source.go.set()
    ahead = ReadAhead(source, source.clients, Waits(), call)
    assert ahead.read("00000") == 0
    assert source.started == {"00000"}


def test_what_reading_raises_is_raised_where_it_is_asked_for(call: Call) -> None:
    source = SomeBad([4, 5, 6])
    ahead = ReadAhead(source, source.clients, waiting(), call)
    assert ahead.read("00000") == 4
    with pytest.raises(DataError, match="no data of 00001"):
        ahead.read("00001")
    assert ahead.read("00002") == 6


def test_a_client_that_is_asked_for_again_is_read_again(call: Call) -> None:
    source = Values([4, 5])
    ahead = ReadAhead(source, source.clients, waiting(), call)
    assert [ahead.read("00001") for _ in range(2)] == [5, 5]
    assert ahead.read("00000") == 4


def test_nothing_is_read_after_the_end() -> None:
    source = started_of(2)
    begun: list[Callable[[], Any]] = []

    def later(function: Callable[[], Any], threads: int) -> Future[Any]:
        begun.append(function)
        return Future()

    ahead = ReadAhead(source, source.clients, waiting(), later)
    source.go.set()
    ahead.read("00000")
    ahead.close()
    begun[0]()
    assert source.started == {"00000"}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("workers", [1, 3, 12])
def test_rounds_are_the_same(size: int, workers: int) -> None:
    process = round_of(lambda x: x * 2, np.int32)
    values = [np.int32(value) for value in range(50)]
    engine = LocalEngine(process, workers, Batching(size))
    cohort = Cohort(Slow(values), Slow(values).clients)
    assert [engine.run_round((), cohort).output for _ in range(2)] == [2450] * 2


@pytest.mark.parametrize("size", [1, 3])
def test_bad_clients_are_skipped(size: int) -> None:
    class SlowBad(Slow, SomeBad):
        pass

    process = round_of(lambda x: x, np.int32)
    source = SlowBad([np.int32(1)] * 60)
    assert Outcome(process, source, size, skip_bad_clients=True).output == [30]
    with pytest.raises(DataError, match="no data of 00001"):
        Outcome(process, source, size, workers=1)
