"""Buffered rounds on Ray, in real time: what arrives when is open, what is computed is not."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.deploy.ray_sources import Kills, Waits
from tests.deploy.test_ray import TWO, cluster, needs_ray
from tests.refusals import refusal
from tests.runtime.engines.sources import SomeBad, Values
from tests.runtime.engines.test_buffered import STATE, check_by_record, summed
from tffc.deploy.engines import make_engine
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.buffered import run_buffered
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.state import State
from tffc.runtime.runs.observed import read_observed
from tffc.support.errors import DataError, ExecutionError, LanguageValueError

assert cluster

pytestmark = [
    needs_ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning"),
]

VALUES = [np.float32(1 + n / 4) for n in range(7)]


@pytest.fixture(scope="module")
def process() -> Process:
    return Process(tff.compile(summed, "mergeable"), is_own=True)


def run(
    process: Process, source: ClientSource, rounds: int, *buffering: Any, **options: Any
) -> list[Round]:
    first = State(np.float32(1), process.program, 0)
    engine = make_engine("ray", process, options=TWO)
    return list(run_buffered(engine, first, source, rounds, Buffering(*buffering), **options))


@pytest.mark.parametrize("buffering", [(1, 1), (2, 5), (3, 7, 0), (7, 7)])
def test_what_is_computed(cluster: Any, process: Process, buffering: Sequence[int]) -> None:
    rounds = run(process, Values(VALUES), 5, *buffering)
    check_by_record(rounds, VALUES, buffering[0], *buffering[2:])
    assert [one.simulated for one in rounds] == [None] * 5
    assert all(one.spent.seconds > 0 and one.spent.parts for one in rounds)


def test_everybody_together_is_a_whole_round(cluster: Any, process: Process) -> None:
    source = Values(VALUES)
    whole = LocalEngine(process).run_round(np.float32(1), Cohort(source, source.clients))
    (only,) = run(process, source, 1, 7, 7)
    np.testing.assert_allclose(only.state.value, whole.state, rtol=1e-6)
    np.testing.assert_allclose(only.output, whole.output, rtol=1e-6)


def test_a_slow_client_holds_nobody_up(
    cluster: Any, process: Process, tmp_path: pathlib.Path
) -> None:
    """It arrives after three steps that were made without it."""
    file = tmp_path / "go"
    source = Waits(VALUES, "00004", file)
    first = State(np.float32(1), process.program, 0)
    engine = make_engine("ray", process, options=TWO)
    rounds: list[Round] = []
    for one in run_buffered(engine, first, source, 10**6, Buffering(1, 7)):
        rounds.append(one)
        if one.number == 3:
            file.touch()
        if one.clients == ("00004",):
            break
    check_by_record(rounds, VALUES, 1)
    contributions = rounds[-1].contributions
    assert contributions is not None
    assert contributions.ages[0] == len(rounds) - 1 >= 3
    # What was still in flight is over.
    assert run(process, Values(VALUES), 1, 7, 7)[0].number == 1


def test_clients_with_bad_data(cluster: Any, process: Process) -> None:
    source = SomeBad(VALUES)
    rounds = run(process, source, 2, 4, 7, skip_bad_clients=True)
    assert {client for one in rounds for client in one.clients} == set(source.clients[::2])
    assert {client for one in rounds for client in one.skipped} == set(source.clients[1::2])
    with pytest.raises(DataError, match="no data of"):
        run(process, source, 2, 7, 7)
    assert refusal(ExecutionError, run, process, source, 1, 5, 7, skip_bad_clients=True) == (
        "round 1 is not released: it would aggregate 4 clients, and the buffer holds 5 [E746]\n"
        "  note: 3 clients were left out\n"
        "  help: mend the data of clients that are left out, or let the buffer hold fewer"
    )


def test_a_lost_actor_begins_again(cluster: Any, process: Process, tmp_path: pathlib.Path) -> None:
    source = Kills(VALUES, "00002", tmp_path / "killed")
    check_by_record(run(process, source, 2, 7, 7), VALUES, 7)
    assert (tmp_path / "killed").exists()
    with pytest.raises(ExecutionError) as caught:
        run(process, Kills(VALUES, "00002"), 2, 7, 7)
    assert caught.value.code == "E772"
    assert caught.value.notes[0] == "it was that of the client 00002"


@tff.federated_computation(STATE, tff.types.at_clients(np.float32))
def evaluate(state: Any, data: Any) -> Any:
    return state, tff.federated_zip((state, tff.federated_sum(data)))


def test_evaluations_take_the_same_actors(cluster: Any, process: Process) -> None:
    source = Values(VALUES)
    evaluated = Process(tff.compile(evaluate, "mapreduce"), is_own=True)
    on = make_engine("ray", evaluated, options=TWO)
    rounds = run(process, source, 4, 2, 6, evaluation=Evaluation(on, source, 1, 0))
    assert [one.evaluation[1] for one in rounds] == [sum(VALUES)] * 4
    assert [one.evaluation[0] for one in rounds] == [one.state.value for one in rounds]
    check_by_record(rounds, VALUES, 2)


def test_runs_from_python(cluster: Any, process: Process, tmp_path: pathlib.Path) -> None:
    options = {"engine": "ray", "engine_options": TWO, "buffer": 2, "in_flight": 3}
    out = tmp_path / "run"
    first = np.float32(1)
    running = tff.run(process, Values(VALUES), rounds=3, state=first, out=out, **options)
    assert len(list(running)) == 3
    assert all("ages" in row.timing and "simulated" not in row.timing for row in running.rows)
    assert [seen.seconds > 0 for seen in read_observed(out).values()] == [True] * 3
    assert refusal(
        LanguageValueError,
        tff.run,
        process,
        Values(VALUES),
        state=first,
        delays="constant:1",
        **options,
    ).startswith("the engine 'ray' runs buffered rounds in real time, without a model of delays")
