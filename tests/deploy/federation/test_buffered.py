"""Buffered rounds on a federation: what is computed is right, whatever nodes do and when."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.deploy.federation.nodes import (
    BROKEN,
    DEAD,
    EMPTY,
    FAILS,
    FLOWER,
    GONE,
    GOOD,
    OTHER,
    Together,
    make_node,
)
from tests.refusals import refusal
from tests.runtime.engines.sources import Values
from tests.runtime.engines.test_buffered import check_by_record, summed
from tffc.deploy.federation import buffered
from tffc.deploy.federation.asking import Arrival, TooFewError
from tffc.deploy.federation.buffered import run_buffered_federation
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import Record
from tffc.deploy.federation.settings import RunSettings
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import read_counts
from tffc.support.errors import ExecutionError, FormError

VALUES = [np.float32(1 + n / 4) for n in range(5)]
NAMES = [str(n) for n in range(5)]


@pytest.fixture(scope="module")
def process() -> Process:
    return Process(tff.compile(summed, "mergeable"), is_own=True)


class Clock:
    """Time that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Paced(Together):
    """Nodes that take so many seconds for each answer, and that do what `does` says at a time."""

    def __init__(
        self,
        process: Process,
        clock: Clock,
        paces: Mapping[str, float],
        does: Callable[[float, str], str] = lambda now, name: GOOD,
        clients: Mapping[str, Values] | None = None,
    ) -> None:
        data = clients or {name: Values([VALUES[int(name)]]) for name in NAMES}
        nodes = {name: make_node(process.bundle, data[name], []) for name in paces}
        super().__init__(nodes)
        self._clock, self._paces, self._does = clock, paces, does
        self._coming: list[tuple[float, Arrival]] = []

    def names(self) -> Sequence[str]:
        return [name for name in self.nodes if self._does(self._clock.now, name) != GONE]

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        assert more
        for name, record in records.items():
            action = self._does(self._clock.now, name)
            at = self._clock.now + self._paces[name]
            answers = self._answers(kind, name, record, action)
            self._coming += [(at, answer) for answer in answers]

    def receive(self, timeout: float) -> Iterator[Arrival]:
        assert timeout == 0
        there = [answer for at, answer in self._coming if at <= self._clock.now]
        self._coming = [(at, answer) for at, answer in self._coming if at > self._clock.now]
        yield Arrival("a stranger", None, "it was not asked")
        yield from there


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(buffered, "time", made)
    return made


def run(
    process: Process, federation: Paced, log: list[str] | None = None, **settings: Any
) -> list[Round]:
    configured = RunSettings(
        **{"timeout": 100.0, "pause": 7.0, "buffer": 2, "in_flight": 5, **settings}
    )
    configured.check_buffered()
    assert configured.buffering is not None
    lines: list[str] = [] if log is None else log
    engine = FederationEngine(process, federation, configured, lines.append)
    first, sleep = State(np.float32(1), process.program, 0), federation._clock.sleep  # pyright: ignore[reportPrivateUsage]
    return list(run_buffered_federation(engine, first, configured, configured.buffering, sleep))


PACES = {"0": 1.0, "1": 2.5, "2": 1.2, "3": 3.3, "4": 20.0}


@pytest.mark.parametrize(
    ("size", "in_flight", "max_age"), [(2, 5, None), (3, 4, None), (2, 5, 1), (5, 5, None)]
)
def test_what_is_computed(
    process: Process, clock: Clock, size: int, in_flight: int, max_age: int | None
) -> None:
    federation = Paced(process, clock, PACES)
    config = {"buffer": size, "in_flight": in_flight, "max_age": max_age}
    rounds = run(process, federation, rounds=40, **config)
    assert len(rounds) == 40
    check_by_record(rounds, VALUES, size, max_age)
    late = [one for one in rounds if "4" in one.clients]
    if size < 5 and max_age is None:
        assert late
        assert all(one.contributions and max(one.contributions.ages) >= 2 for one in late)
    assert all(one.simulated is None and one.spent.seconds > 0 for one in rounds)


def test_everybody_together_is_a_whole_round(process: Process, clock: Clock) -> None:
    parts = {"0": VALUES[:2], "1": VALUES[2:3], "2": VALUES[3:]}
    data = {name: Values(values) for name, values in parts.items()}
    federation = Paced(process, clock, dict.fromkeys(parts, 1.0), clients=data)
    (only,) = run(process, federation, buffer=3, in_flight=3)
    source = Values(VALUES)
    whole = LocalEngine(process).run_round(np.float32(1), Cohort(source, source.clients))
    np.testing.assert_allclose(only.state.value, whole.state, rtol=1e-6)
    np.testing.assert_allclose(only.output, whole.output, rtol=1e-6)


@pytest.mark.parametrize("action", [DEAD, FAILS, BROKEN, FLOWER, OTHER, EMPTY])
def test_nodes_that_fail_are_left_out(process: Process, clock: Clock, action: str) -> None:
    def does(now: float, name: str) -> str:
        return action if name == "2" and now < 25 else GOOD

    log: list[str] = []
    federation = Paced(process, clock, PACES, does)
    rounds = run(process, federation, log, rounds=55, timeout=10.0)
    check_by_record(rounds, VALUES, 2)
    assert any("2" in one.skipped for one in rounds)
    assert not any("2" in one.clients for one in rounds[:8])
    # It may begin again after the next step, and takes part once it is well.
    assert any("2" in one.clients for one in rounds)
    said = "did not answer in time" if action == DEAD else "does not take part: "
    assert any(line.partition(": ")[2].startswith(f"2 {said}") for line in log)


def test_answers_that_are_too_late_do_not_count(process: Process, clock: Clock) -> None:
    log: list[str] = []
    federation = Paced(process, clock, PACES)
    rounds = run(process, federation, log, rounds=30, timeout=15.0)
    check_by_record(rounds, VALUES, 2)
    assert not any("4" in one.clients for one in rounds)
    assert any("4 did not answer in time" in line for line in log)
    assert any("4 answers too late an earlier request" in line for line in log)


def test_nodes_come_and_go(process: Process, clock: Clock) -> None:
    def does(now: float, name: str) -> str:
        gone = {"0": now > 10, "1": now < 30}
        return GONE if gone.get(name) else GOOD

    federation = Paced(process, clock, PACES, does)
    rounds = run(process, federation, rounds=40, in_flight=3)
    check_by_record(rounds, VALUES, 2)
    last_of_0 = max(at for at, one in enumerate(rounds) if "0" in one.clients)
    assert last_of_0 < 20
    assert any("1" in one.clients for one in rounds[last_of_0:])


def test_too_few_nodes(
    process: Process, clock: Clock, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_METRICS", str(tmp_path))

    def does(now: float, name: str) -> str:
        return FLOWER if name in ("1", "2", "3", "4") and now < ends else GOOD

    ends = 1e9
    log: list[str] = []
    call = lambda: run(process, Paced(process, clock, PACES, does), log, attempts=3)  # noqa: E731
    assert refusal(TooFewError, call) == (
        "1 nodes contributed to round 1, and the buffer holds 2 [E770]\n"
        "  note: that was attempt 3, the last one\n"
        "  help: see the log for what each node answered; wait longer, or let the buffer hold fewer"
    )
    again = "1 nodes contributed to round 1, and the buffer holds 2: nodes are asked again in 7 s"
    assert [line for line in log if "asked again" in line] == [again] * 2
    assert read_counts(tmp_path)["rounds"] == {"repeated": 2}
    ends = clock.now + 8
    rounds = run(process, Paced(process, clock, PACES, does), rounds=3)
    check_by_record(rounds, VALUES, 2)
    assert read_counts(tmp_path)["rounds"]["finished"] == 3
    assert rounds[0].skipped == () or set(rounds[0].skipped).isdisjoint(rounds[0].clients)


def test_runs_wait_for_all_nodes_in_flight(process: Process, clock: Clock) -> None:
    def does(now: float, name: str) -> str:
        return GONE if name == "4" and now < 150 else GOOD

    log: list[str] = []
    run(process, Paced(process, clock, PACES, does), log)
    assert log == ["4 nodes are there, and a round needs 5: they are waited for again in 7 s"]
    ended = refusal(TooFewError, run, process, Paced(process, clock, {"0": 1.0}), attempts=1)
    assert ended.startswith("1 nodes are there, and a round needs 5 [E770]")


def test_refusals(process: Process, clock: Clock) -> None:
    federation = Paced(process, clock, PACES)
    assert refusal(ExecutionError, run, process, federation, min_replies=3) == (
        "no step is released: it aggregates 2 clients, and 3 are needed [E746]\n"
        "  help: let the buffer hold more contributions, or need fewer"
    )
    other = Process(dataclasses.replace(process.bundle, discount=None))
    message = refusal(FormError, run, other, Paced(other, clock, PACES))
    assert message.startswith("the bundle does not say that its rounds may be buffered [E748]")
