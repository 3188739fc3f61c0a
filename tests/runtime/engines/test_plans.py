"""What is computed in batches, and what is decided after batches were measured."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tffc as tff
from tests.runtime.engines.batches import round_of, source_of
from tffc.runtime.batching.limits import Limits
from tffc.runtime.batching.pieces import Batch
from tffc.runtime.batching.planner import Planner
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]

INTS = tff.SequenceType(np.int64)

PAIRS_OF_INTEGERS = [[1, 2], [3, 4], [5, 6]]


@pytest.fixture
def summing() -> Process:
    return round_of(lambda data: data.reduce(np.int64(0), lambda s, x: s + x), INTS)


def rounds(engine: LocalEngine, process: Process, count: int, spent: float = 0.0) -> list[int]:
    """How many clients were in batches after each round, if so much time was spent before."""
    if spent:
        engine.planner.measured_alone(3, spent)
    source = source_of(process, PAIRS_OF_INTEGERS)
    batched: list[int] = []
    for _ in range(count):
        assert engine.run_round((), Cohort(source, source.clients)).output == 21
        batched.append(engine.stopwatch.clients["computing in batches"])
        engine.planner.wait()
    return batched


def test_short_runs_compile_nothing(summing: Process) -> None:
    engine = LocalEngine(summing, 1, Batching(None))
    assert rounds(engine, summing, 3) == [0, 0, 0]
    assert engine.planner.decisions == []


def test_clients_are_measured_alone_beside_a_batch(summing: Process) -> None:
    engine = LocalEngine(summing, 1, Batching(None))
    assert rounds(engine, summing, 6, spent=100.0)[-1] > 0
    line = r"a client takes [\d.e+]+ µs in a batch, and [\d.e+]+ µs by itself"
    assert re.match(line, engine.planner.decisions[1])


def planned(
    process: Process, count: int, alone: float, workers: int = 1
) -> tuple[Planner, list[int]]:
    """A planner, and how many clients it has had in batches in each round, where a batch takes a
    second and a client by itself as long as is said."""
    planner = Planner(process.steps, Batching(None), workers)
    planner.measured_alone(3, 100.0)
    source = source_of(process, PAIRS_OF_INTEGERS)
    list(planner.pieces(Cohort(source, source.clients), source))
    planner.wait()
    batched: list[int] = []
    for _ in range(count):
        pieces = [each.piece for each in planner.pieces(Cohort(source, source.clients), source)]
        batches = [piece for piece in pieces if isinstance(piece, Batch)]
        for batch in batches:
            planner.measured(batch, 1.0, lambda: alone)
        batched.append(sum(len(batch.clients) for batch in batches))
        planner.wait()
    return planner, batched


def test_batches_are_used_where_they_take_less_time(summing: Process) -> None:
    planner, together = planned(summing, 6, alone=100.0)
    assert together == [3] * 6
    assert "by itself" in planner.decisions[-1]


@pytest.mark.parametrize(("numbers", "sizes"), [(512, [500, 500]), (0, [256, 256, 256, 232])])
def test_windows_hold_full_batches(summing: Process, numbers: int, sizes: list[int]) -> None:
    limits = Limits(most_clients=300, most_numbers=numbers)  # 4 vectors of 250, 32 loops of 32
    planner = Planner(summing.steps, Batching(None, limits=limits))
    assert [len(window) for window in planner.windows(tuple(map(str, range(1000))))] == sizes


def test_batches_are_given_up_where_they_take_more_time(summing: Process) -> None:
    planner, together = planned(summing, 12, alone=1e-9)
    assert together[:3] == [3] * 3
    assert together[-3:] == [0] * 3
    assert planner.decisions[-1].endswith("that takes less time")


@pytest.mark.parametrize(("workers", "together"), [(1, 3), (2, 3), (3, 0)])
def test_batches_are_given_up_where_workers_would_wait(
    summing: Process, workers: int, together: int
) -> None:
    # In the one batch a client takes 1/3 s, by itself 0.6 s.  Two workers are done after 1 s or
    # 2 * 0.6 s, three after 1 s or 0.6 s.
    planner, batched = planned(summing, 12, 0.6, workers)
    assert batched[-1] == together
    waits = "1 batches leave workers idle: a round takes {} times as long"
    idle = {1: [], 2: [waits.format("1.5")], 3: [waits.format("3")] * 2}[workers]
    assert [line for line in planner.decisions if "idle" in line] == idle


def test_what_is_known_is_not_measured_again(summing: Process) -> None:
    known = planned(summing, 6, alone=100.0)[0].known
    assert known == {"vectorised over the clients of a batch: sequences of 2 elements": True}
    for pays, together in ((True, 3 * 4), (False, 0)):
        known = dict.fromkeys(known, pays)
        engine = LocalEngine(summing, 1, Batching(None, known=known))
        assert rounds(engine, summing, 4)[-1] == together
        assert not any("by itself" in line for line in engine.planner.decisions)
