"""Rounds on Ray give what they give on the local engine, bit for bit, whatever dies."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.deploy.ray_sources import Kills, Slow
from tests.processes import ROOT, run_python
from tests.refusals import refusal
from tests.runtime.engines.batches import descending, numbers_to, round_of, source_of
from tests.runtime.engines.client_state_rounds import check_states
from tests.runtime.engines.programs import (
    LIMIT,
    adding_up,
    bounded,
    every_aggregation,
    personal,
    process_of,
)
from tests.runtime.engines.sources import Breaks, Marks, SomeBad, Unsendable, Values, numbers
from tffc.backends.forms.mergeable import MergeableSteps
from tffc.deploy.engines import make_engine
from tffc.deploy.ray.engine import RayEngine
from tffc.runtime.engines import shards
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.engine import Batching, Cohort, RoundResult
from tffc.runtime.engines.groups import GroupedEngine
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.speed import ALONE, BATCHED, MERGE, SERVER, WAIT
from tffc.runtime.engines.state import State
from tffc.support.errors import (
    DataError,
    ExecutionError,
    LanguageValueError,
    MissingExtraError,
    TffcError,
)

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs tffc[ray]")
FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])

TWO = "--workers=2", "--wait=1000000"
"""Two workers, for which rounds wait however busy the machine is."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two machines with one processor each, which this process has joined."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for name, value in {**environment, "RAY_TMPDIR": folder}.items():
            patch.setenv(name, value)
        pathlib.Path(folder, "ray").mkdir()
        patch.delenv("RAY_ADDRESS", raising=False)
        import ray  # pyright: ignore[reportMissingImports]  # only where it is installed

        # Only where it is installed.
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]  # an extra

        arguments = {"num_cpus": 1, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=arguments)
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning"),
]


def both(process: Process, cohort: Cohort, *options: str) -> tuple[RoundResult, RoundResult]:
    engines = LocalEngine(process), make_engine("ray", process, options=(*TWO, *options))
    one, other = (engine.run_round((), cohort) for engine in engines)
    return one, other


def assert_same(one: RoundResult, other: RoundResult) -> None:
    """What two rounds give is the same to the last bit; how long they took is not."""
    assert given(other) == given(one)


def given(result: RoundResult) -> str:
    return repr((result.state, result.output, result.skipped))


@needs_ray
def test_clients_that_keep_states(cluster: Any) -> None:
    check_states(lambda process: make_engine("ray", process, options=TWO))


@needs_ray
@FORMS
@pytest.mark.parametrize("options", [(), ("--fanout=2",)], ids=["usual", "binary"])
def test_every_aggregation(cluster: Any, form: str, options: tuple[str, ...]) -> None:
    source = numbers(0, 75)
    process = process_of(every_aggregation, form)
    one, other = both(process, Cohort(source, source.clients), *options)
    assert_same(one, other)
    assert other.output[2:4] == (sum(range(75)), 0)


@needs_ray
def test_shards_of_another_size(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = numbers(0, 75)
    monkeypatch.setattr(shards, "SHARD", 2)
    process = process_of(every_aggregation, "mapreduce")
    assert_same(*both(process, Cohort(source, source.clients), "--shard=2"))


@needs_ray
@pytest.mark.parametrize("clients", [0, 1, 13, 75, 200])
def test_shards_that_take_no_time_are_handed_out_together(
    cluster: Any, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tffc.deploy.ray import engine as engines

    monkeypatch.setattr(engines, "LONG", 1e9)
    source = numbers(0, 200)
    process = process_of(every_aggregation, "mapreduce")
    cohort = Cohort(source, source.clients[:clients], progress=lambda done, _: told.append(done))
    expected = LocalEngine(process).run_round((), Cohort(source, cohort.clients))
    engine = make_engine("ray", process, options=TWO)
    calls: list[int] = []
    for _ in range(2):
        told: list[int] = []
        assert_same(expected, engine.run_round((), cohort))
        calls.append(len(told) - 1)
        assert max(told) == clients
    assert calls[0] == len(shards.shards_of(source.clients[:clients]))
    assert calls[1] <= min(calls[0], 4)


def in_batches(process: Process, cohort: Cohort, rounds: int = 1) -> tuple[RoundResult, ...]:
    """What the local engine and that on Ray give at last, with two clients a call."""
    batching = Batching(2)
    found: list[RoundResult] = []
    for engine in (
        LocalEngine(process, 2, batching),
        make_engine("ray", process, options=TWO, batching=batching),
    ):
        found.append([engine.run_round((), cohort) for _ in range(rounds)][-1])
    return tuple(found)


@needs_ray
@pytest.mark.parametrize("clients", [0, 1, 5, 77])
@pytest.mark.parametrize("size", [3, 600], ids=["vectorised", "in a loop"])
def test_batches_are_those_of_the_local_engine(cluster: Any, clients: int, size: int) -> None:
    process = descending(size)
    lengths = [(5 * n) % (3 if size == 3 else 8) for n in range(clients)]
    values = [numbers_to(n, length) for n, length in enumerate(lengths)]
    source = source_of(process, values)
    one, other = in_batches(process, Cohort(source, source.clients), rounds=2)
    assert_same(one, other)
    assert other.output[1] == sum(lengths)
    together = LocalEngine(process, 2, Batching(2))
    together.run_round((), Cohort(source, source.clients))
    assert together.stopwatch.clients["computing in batches"] > 0 or clients < 2


@needs_ray
def test_clients_in_batches_fail_and_are_left_out_alone(cluster: Any) -> None:
    process = descending(3)
    values = [numbers_to(n, n % 4 + 7 * (n == 15)) for n in range(20)]
    source = SomeBad(source_of(process, values).values)
    cohort = Cohort(source, tuple(f"{n:05}" for n in range(0, 20, 2)), skip_bad_clients=True)
    assert_same(*in_batches(process, cohort))
    with pytest.raises(ExecutionError) as caught:
        in_batches(process, Cohort(Values(source.values), source.clients))
    assert caught.value.notes[-1] == "it was at work on the data of client 00015"
    engine = make_engine("ray", process, options=TWO, batching=Batching(2))
    with pytest.raises(ExecutionError) as found:
        engine.run_round((), Cohort(Values(source.values), source.clients))
    assert str(found.value) == str(caught.value)


@needs_ray
def test_a_killed_actor_costs_its_batches_alone(cluster: Any, tmp_path: pathlib.Path) -> None:
    process = descending(3)
    values = source_of(process, [numbers_to(n, n % 4) for n in range(60)])
    expected, _ = in_batches(process, Cohort(values, values.clients))
    source = Kills(values.values, "00031", tmp_path / "killed")
    engine = make_engine("ray", process, options=TWO, batching=Batching(2))
    assert_same(expected, engine.run_round((), Cohort(source, source.clients)))
    assert (tmp_path / "killed").exists()


@needs_ray
def test_outputs_of_clients_in_batches(cluster: Any) -> None:
    process = round_of(lambda data: data * 2, np.int32, "broadcast")
    source = source_of(process, [np.int32(n) for n in range(9)])
    delivered: dict[str, Any] = {}
    cohort = Cohort(source, source.clients, deliver=delivered.__setitem__)
    engine = make_engine("ray", process, options=TWO, batching=Batching(4))
    engine.run_round((), cohort)
    assert delivered == {f"{n:05}": 2 * n for n in range(9)}


@needs_ray
@pytest.mark.parametrize(("size", "part"), [(1, ALONE), (2, BATCHED)])
def test_where_the_time_of_actors_and_of_the_driver_goes(
    cluster: Any, size: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tffc.deploy.ray import work

    process = descending(3)
    source = source_of(process, [numbers_to(n, n % 4) for n in range(40)])
    cohort = Cohort(source, source.clients)
    local = LocalEngine(process, 2, Batching(size))
    local.run_round((), cohort)
    for large in (work.LARGE, 0):
        monkeypatch.setattr(work, "LARGE", large)
        engine = make_engine("ray", process, options=TWO, batching=Batching(size))
        results = [engine.run_round((), cohort) for _ in range(2)]
        assert all(result.parts.keys() >= {part, MERGE, SERVER} for result in results)
        assert all(result.workers == 2 for result in results)
        assert sum(result.parts[part] for result in results) > 0
        lines = engine.explain_speed()
        told = [line.removeprefix("batching: ") for line in lines if line.startswith("batching")]
        assert told == local.planner.decisions
        titles = [line.partition(":")[0].strip() for line in lines[: -len(told)]]
        assert titles[0] == "time of 2 rounds, of 2 workers together"
        at = titles.index("time of the driver beside them")
        workers, driver = titles[1:at], titles[at + 1 : -1]
        assert {part, MERGE} <= set(workers) or large
        assert workers[-1] == "waiting, and Python between"
        assert driver[0] == SERVER
        assert driver[-2:] == [WAIT, "handing out work, and Python between"]
        assert (MERGE in driver) == bool(large)
        assert titles[-1].endswith("clients a second")
        assert f"{part}: " in "".join(lines)
        assert ", 80 clients" in next(line for line in lines if part in line)


@needs_ray
def test_nothing_measures_batches_on_ray() -> None:
    process = process_of(bounded, "mapreduce")
    for batching in (Batching(None), Batching(4, "CPU:0")):
        assert refusal(LanguageValueError, make_engine, "ray", process, batching=batching) == (
            "the engine 'ray' neither measures whether batches pay nor chooses a device for them "
            "[E747]\n  help: choose the engine local, or give how many clients are in a batch"
        )


@needs_ray
def test_large_accumulators_are_merged_by_actors(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tffc.deploy.ray import work

    def not_here(*arguments: Any) -> Any:
        raise AssertionError("it was merged by the driver")

    source = numbers(0, 75)
    process = process_of(every_aggregation, "mapreduce")
    expected = LocalEngine(process).run_round((), Cohort(source, source.clients))
    monkeypatch.setattr(work, "LARGE", 0)
    monkeypatch.setattr(work, "merged_bytes", not_here)
    found = make_engine("ray", process, options=[*TWO, "--fanout=4"])
    assert_same(expected, found.run_round((), Cohort(source, source.clients)))


@needs_ray
@FORMS
def test_rounds_without_clients(cluster: Any, form: str) -> None:
    one, other = both(process_of(every_aggregation, form), Cohort(numbers(0, 0), ()))
    assert_same(one, other)
    assert np.isnan(other.output[0])


@needs_ray
def test_clients_with_bad_data_are_left_out_or_fail_the_round(cluster: Any) -> None:
    process = process_of(every_aggregation, "mapreduce")
    source = SomeBad(numbers(0, 7).values)
    one, other = both(process, Cohort(source, source.clients, skip_bad_clients=True))
    assert_same(one, other)
    assert other.skipped == ("00001", "00003", "00005")
    assert_same(*both(process, Cohort(source, ("00001", "00003"), skip_bad_clients=True)))
    with pytest.raises(DataError) as caught:
        make_engine("ray", process, options=TWO).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == "no data of 00001 [E000]\n  note: a note\n  help: some help"


@needs_ray
@FORMS
def test_errors_are_those_of_the_first_client(cluster: Any, form: str) -> None:
    source = Values([np.int32(LIMIT - 5 + n) for n in range(9)])
    process = process_of(bounded, form)
    found = []
    for engine in (LocalEngine(process, 1), make_engine("ray", process, options=TWO)):
        found.append(refusal(ExecutionError, engine.run_round, (), Cohort(source, source.clients)))
    assert found[0] == found[1]
    assert "E663" in found[1]
    assert "client 00006" in found[1]
    assert "51" not in found[1]


@needs_ray
def test_every_client_of_a_broadcast_form_has_its_own(cluster: Any) -> None:
    source = Values([np.int32(n) for n in (5, 2, 9)])
    delivered: dict[str, Any] = {}
    told: list[tuple[int, int]] = []
    cohort = Cohort(
        source,
        source.clients,
        deliver=delivered.__setitem__,
        progress=lambda done, total: told.append((done, total)),
    )
    engine = make_engine("ray", process_of(personal, "broadcast"), options=TWO)
    outcome = engine.run_round(np.int32(4), cohort)
    assert delivered == {"00000": -1, "00001": 2, "00002": -5}
    assert (outcome.state, outcome.output) == (4, ())
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@needs_ray
@pytest.mark.parametrize(
    "sampling", [Sampling(5, seed=7), Sampling(rate=0.25, seed=7), Sampling(rate=1e-12)]
)
def test_the_same_clients_are_sampled(cluster: Any, sampling: Sampling) -> None:
    process = process_of(adding_up, "mapreduce")
    source = Values([np.int32(2**n) for n in range(20)])
    seen: list[list[tuple[Any, ...]]] = []
    for engine in (LocalEngine(process), make_engine("ray", process, options=TWO)):
        state = State(np.int32(-1), process.program, 4)
        rounds = run_rounds(engine, state, source, 3, sampling)
        seen.append([(each.number, each.clients, each.output, each.state) for each in rounds])
    assert seen[0] == seen[1]
    assert [each[0] for each in seen[0]] == [5, 6, 7]


def in_groups(count: int, make: Any, cohort: Cohort, *, skip_bad: bool = False) -> RoundResult:
    process = process_of(every_aggregation, "mergeable")
    return GroupedEngine(process, ClientGroups(count, skip_bad), make).run_round((), cohort)


def on_ray(*options: str) -> Callable[[Process], Any]:
    return lambda process: make_engine("ray", process, options=options)


@needs_ray
@pytest.mark.parametrize("count", [1, 3, 11])
def test_groups_side_by_side(cluster: Any, count: int) -> None:
    """However many actors there are, and however many results each of them merges."""
    source = Values([(np.float32(n / 3), np.int32(n)) for n in range(90)])
    told: list[tuple[int, int]] = []
    cohort = Cohort(source, source.clients, progress=lambda *numbers: told.append(numbers))
    expected = in_groups(count, LocalEngine, Cohort(source, source.clients))
    for options in (TWO, (*TWO, "--fanout=2"), ("--workers=1", "--cpus-per-worker=0")):
        told.clear()
        assert_same(expected, in_groups(count, on_ray(*options), cohort))
        assert told[-1] == (90, 90)
        assert told == sorted(told)


@needs_ray
def test_groups_of_nobody(cluster: Any) -> None:
    cohort = Cohort(numbers(0, 0), ())
    assert_same(in_groups(3, LocalEngine, cohort), in_groups(3, on_ray(*TWO), cohort))


@needs_ray
def test_actors_merge_the_results_of_groups(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver merges none of them, and an actor at most as many at once as it is told."""
    from tffc.deploy.ray import groups

    heights: list[tuple[int, int]] = []

    class Seen(groups.Merger):
        def __new__(cls, job: Any) -> Any:
            heights.append((job.height, len(job.parts)))
            return super().__new__(cls, job)

    def not_here(*arguments: Any) -> Any:
        raise AssertionError("the driver merged them")

    monkeypatch.setattr(groups, "Merger", Seen)
    monkeypatch.setattr(MergeableSteps, "join", not_here)
    source = numbers(0, 11)
    in_groups(11, on_ray(*TWO, "--fanout=2"), Cohort(source, source.clients))
    assert sorted(heights) == [(1, 1), *[(1, 2)] * 5, *[(2, 2)] * 3, (3, 1), (3, 2), (4, 2)]


@needs_ray
def test_groups_that_fail_cost_their_clients(cluster: Any) -> None:
    source = SomeBad([(np.float32(n / 3), np.int32(n)) for n in range(8)])
    clients = tuple(f"{n:05}" for n in (0, 2, 1, 4, 6, 3, 5, 7))
    for count, lost in ((4, 3), (8, 4)):
        cohort = Cohort(source, clients, round=4)
        one, other = (
            in_groups(count, make, cohort, skip_bad=True) for make in (LocalEngine, on_ray(*TWO))
        )
        assert_same(one, other)
        assert other.lost == one.lost
        assert len(other.lost) == lost


@needs_ray
@pytest.mark.parametrize(
    ("skip_bad", "least", "kind", "part"),
    [
        (False, 0, DataError, "it is of group 2 of 4"),
        (False, 3, ExecutionError, "it is of group 1 of 4"),
        (True, 3, ExecutionError, "all groups of its clients are left out [E746]"),
    ],
)
def test_rounds_in_groups_that_fail(
    cluster: Any, skip_bad: bool, least: int, kind: type[TffcError], part: str
) -> None:
    source = SomeBad(numbers(0, 8).values)
    clients = tuple(f"{n:05}" for n in (0, 2, 1, 4, 6, 3, 5, 7))
    cohort = Cohort(source, clients, round=4, least_clients=least)
    found = [
        refusal(kind, functools.partial(in_groups, 4, make, cohort, skip_bad=skip_bad))
        for make in (LocalEngine, on_ray(*TWO))
    ]
    assert found[0] == found[1]
    assert part in found[1]


@needs_ray
def test_a_group_that_kills_every_worker_costs_itself_alone(
    cluster: Any, tmp_path: pathlib.Path
) -> None:
    values = numbers(0, 40).values
    source = Kills(values, "00013")
    found = in_groups(4, on_ray(*TWO), Cohort(source, source.clients), skip_bad=True)
    assert found.skipped == source.clients[10:20]
    assert found.output[2] == sum(n for n in range(40) if n // 10 != 1)
    assert found.lost == (
        "group 2 of 4, of 10 clients, is left out: 3 workers of Ray were lost at the same work "
        "[E772]",
    )
    once = Kills(values, "00013", tmp_path / "killed")
    alive = Values(values)
    assert_same(
        in_groups(4, LocalEngine, Cohort(alive, alive.clients)),
        in_groups(4, on_ray(*TWO), Cohort(once, once.clients)),
    )
    assert (tmp_path / "killed").exists()


@needs_ray
def test_a_source_that_cannot_be_sent(cluster: Any) -> None:
    source = Unsendable([np.int32(1)])
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=TWO)
    with pytest.raises(DataError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E932"


@needs_ray
def test_a_worker_that_fails(cluster: Any) -> None:
    source = Breaks([np.int32(1)])
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=TWO)
    assert refusal(ExecutionError, engine.run_round, (), Cohort(source, source.clients)) == (
        "a worker of Ray failed [E772]\n"
        '  note: KeyError: "a defect of the user\'s"\n'
        "  help: the logs of the worker's machine, in Ray's folder session_latest/logs, tell more"
    )


DEMANDING = """\
import os, sys
import ray
# Only the workers' machine has demands.
ray.init(
    address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
)
del os.environ["TFFC_DEMANDS"]
from tests.runtime.engines.programs import every_aggregation, process_of
from tests.runtime.engines.sources import numbers
from tffc.deploy.engines import make_engine
from tffc.runtime.engines.engine import Cohort
from tffc.support.errors import TffcError
values = numbers(0, 6)
engine = make_engine("ray", process_of(every_aggregation, "mapreduce"), options=("--workers=2",))
try:
    engine.run_round((), Cohort(values, values.clients))
except TffcError as error:
    print(error)
"""


@needs_ray
def test_demands_of_a_workers_machine(tmp_path: pathlib.Path) -> None:
    (tmp_path / "demands.yaml").write_text("bytes: 10\n")
    environment = {"TFFC_DEMANDS": str(tmp_path / "demands.yaml"), "PYTHONPATH": str(ROOT)}
    ran = run_python("-c", DEMANDING, cwd=tmp_path, env={**os.environ, **environment})
    assert "the bundle that the driver sent is not admitted here [E880]" in ran.stdout, ran.stderr
    assert "bytes: " in ran.stdout


@needs_ray
def test_a_killed_actor_costs_its_shard_alone(cluster: Any, tmp_path: pathlib.Path) -> None:
    process = process_of(every_aggregation, "mapreduce")
    values = numbers(0, 60)
    expected = LocalEngine(process).run_round((), Cohort(values, values.clients))
    source = Kills(values.values, "00031", tmp_path / "killed")
    engine = make_engine("ray", process, options=TWO)
    assert_same(expected, engine.run_round((), Cohort(source, source.clients)))
    assert source.marker is not None
    assert source.marker.exists()


@needs_ray
def test_a_killed_machine_costs_its_shards_alone(cluster: Any) -> None:
    process = process_of(every_aggregation, "mapreduce")
    values = numbers(0, 60)
    expected = LocalEngine(process).run_round((), Cohort(values, values.clients))
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done >= 10 and not killed:
            killed.append(done)
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

    source = Slow(values.values, 0.02)
    engine = make_engine("ray", process, options=TWO)
    found = engine.run_round((), Cohort(source, source.clients, progress=kill))
    assert_same(expected, found)
    assert killed
    # A machine that comes later takes part.
    cluster.add_node(num_cpus=1)
    assert_same(expected, engine.run_round((), Cohort(source, source.clients)))


@needs_ray
def test_workers_that_no_machine_has_room_for(cluster: Any) -> None:
    import ray  # pyright: ignore[reportMissingImports]  # only where it is installed

    source = Values([np.int32(1)])
    process = process_of(bounded, "mapreduce")
    options = ["--workers=2", "--gpus-per-worker=2", "--wait=1"]
    with pytest.raises(ExecutionError) as caught:
        make_engine("ray", process, options=options).run_round((), Cohort(source, source.clients))
    cpus = ray.cluster_resources()["CPU"]
    assert str(caught.value) == (
        "no worker of Ray has answered in 1 seconds [E944]\n"
        f"  note: each asks for 1 CPU and 2 GPU of one machine; Ray has {cpus:g} CPU, 0 GPU\n"
        "  help: have workers ask for less by --cpus-per-worker or --gpus-per-worker, or wait "
        "longer for machines by --wait"
    )


@needs_ray
def test_work_that_kills_every_worker(cluster: Any) -> None:
    source = Kills([np.int32(n) for n in range(40)], "00003")
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=TWO)
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E772"
    assert caught.value.message == "3 workers of Ray were lost at the same work"
    assert caught.value.notes[0] == "it was that of the clients 00002 to 00003"


@needs_ray
def test_an_interruption_leaves_no_worker(cluster: Any, tmp_path: pathlib.Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    process = process_of(bounded, "mapreduce")
    source = Marks([np.int32(1)] * 4, tmp_path)
    engine = RayEngine(process, TWO)
    assert engine.run_round((), Cohort(source, source.clients)).output == 4
    with pytest.raises(KeyboardInterrupt):
        engine.run_round((), Cohort(source, source.clients, progress=interrupt))
    before = readers(tmp_path)
    assert before
    wait_for(lambda: not any(map(is_running, before)))
    assert engine.run_round((), Cohort(source, source.clients)).output == 4
    assert readers(tmp_path) > before


def readers(folder: pathlib.Path) -> set[int]:
    """The processes that `Marks` has seen."""
    return {int(path.name) for path in folder.iterdir()}


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if it does not within a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@needs_ray
@pytest.mark.parametrize(
    ("word", "note"),
    [
        ("--worker=2", "unrecognized arguments: --worker=2"),
        ("--workers=0", "argument --workers: '0' is not a positive number"),
        ("--cpus-per-worker=-1", "argument --cpus-per-worker: '-1' is not a number from 0 on"),
        ("--fanout=6", "argument --fanout: '6' is not 2, 4, 8 ..."),
        ("--shard=x", "argument --shard: 'x' is not a positive number"),
    ],
)
def test_options_that_are_refused(word: str, note: str) -> None:
    with pytest.raises(LanguageValueError) as caught:
        make_engine("ray", process_of(bounded, "mapreduce"), options=[word])
    assert str(caught.value) == (
        "the engine on Ray does not take these options [E931]\n"
        f"  note: {note}\n"
        "  help: give --address=auto, --workers=N, --cpus-per-worker=X, --gpus-per-worker=X, "
        "--shard=N, --fanout=N or --wait=SECONDS"
    )


class StandIn(types.ModuleType):
    """Stands for Ray where no process has begun it; `begin` is what its `init` does."""

    def __init__(self, begin: Callable[[], None]) -> None:
        super().__init__("ray")
        self.__spec__ = importlib.machinery.ModuleSpec("ray", None)
        self.begin = begin

    def is_initialized(self) -> bool:
        return False

    def init(self, *, log_to_driver: bool, **options: Any) -> None:
        assert not log_to_driver
        self.begin()

    def put(self, value: Any) -> Any:
        return value

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(get_node_id=lambda: "here", get_job_id=lambda: "first")


@pytest.mark.parametrize(
    ("options", "where"), [(["--address=auto"], "at auto"), ([], "here")], ids=["there", "here"]
)
def test_no_ray_is_there(options: list[str], where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin() -> None:
        raise ConnectionError("nobody answers\nat all")

    monkeypatch.setitem(sys.modules, "ray", StandIn(begin))
    process = process_of(bounded, "mapreduce")
    assert refusal(ExecutionError, make_engine, "ray", process, options=options) == (
        f"there is no Ray {where} [E944]\n"
        "  note: nobody answers\n"
        "  help: start it with ray start --head and give --address=auto, or give no address for "
        "one of this process"
    )


def test_signals_are_answered_as_before_ray_began(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def begin() -> None:
        begun.append(signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number)))

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setitem(sys.modules, "ray", StandIn(begin))
    make_engine("ray", process_of(bounded, "mapreduce"), options=["--address=stand-in"])
    assert begun == [before]
    assert signal.getsignal(signal.SIGTERM) == before


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refusal(MissingExtraError, make_engine, "ray", process_of(bounded, "mapreduce")) == (
        "Ray is not installed, and the engine 'ray' needs it [E701]\n"
        "  help: in tffc's checkout: pip install '.[ray]'"
    )


@needs_ray
def test_ray_reports_nothing_to_its_makers() -> None:
    from tffc.deploy.ray.api import load_ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
        load_ray()
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
