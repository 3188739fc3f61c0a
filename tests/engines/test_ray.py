"""Rounds on Ray give what they give on the local engine, bit for bit, whatever dies."""

from __future__ import annotations

import importlib.util
import logging
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.cli.conftest import ROOT
from tests.engines.ray_sources import Breaks, Kills, Slow, Unsendable
from tests.engines.sources import SomeBad, Values
from tests.engines.test_rounds import every_aggregation, process_of
from tffc.engines import local
from tffc.engines.engine import Cohort, RoundResult
from tffc.engines.local import LocalEngine
from tffc.engines.process import Process
from tffc.engines.rounds import Sampling, run_rounds
from tffc.engines.state import State
from tffc.engines.table import make_engine
from tffc.errors import DataError, ExecutionError, LanguageValueError, MissingExtraError

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs tffc[ray]")
FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
NONE = tff.types.at_server(())
INT = tff.types.at_clients(np.int32)

TWO = "--workers=2"


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
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

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


def numbers(count: int) -> Values:
    return Values([(np.float32(1 / (n + 3)), np.int32(n)) for n in range(count)])


def both(process: Process, cohort: Cohort, *options: str) -> tuple[RoundResult, RoundResult]:
    engines = LocalEngine(process), make_engine("ray", process, options=(TWO, *options))
    one, other = (engine.run_round((), cohort) for engine in engines)
    return one, other


def assert_same(one: RoundResult, other: RoundResult) -> None:
    """What two rounds give is the same to the last bit; how long they took is not."""
    assert given(other) == given(one)


def given(result: RoundResult) -> str:
    return repr((result.state, result.output, result.skipped))


@needs_ray
@FORMS
@pytest.mark.parametrize("options", [(), ("--fanout=2",)], ids=["usual", "binary"])
def test_every_aggregation(cluster: Any, form: str, options: tuple[str, ...]) -> None:
    source = numbers(75)
    process = process_of(every_aggregation, form)
    one, other = both(process, Cohort(source, source.clients), *options)
    assert_same(one, other)
    assert other.output[2:4] == (sum(range(75)), 0)


@needs_ray
def test_shards_of_another_size(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = numbers(75)
    monkeypatch.setattr(local, "SHARD", 2)
    process = process_of(every_aggregation, "mapreduce")
    assert_same(*both(process, Cohort(source, source.clients), "--shard=2"))


@needs_ray
@pytest.mark.parametrize("clients", [0, 1, 13, 75, 200])
def test_shards_that_take_no_time_are_handed_out_together(
    cluster: Any, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tffc.engines import ray as engines

    monkeypatch.setattr(engines, "LONG", 1e9)
    source = numbers(200)
    process = process_of(every_aggregation, "mapreduce")
    cohort = Cohort(source, source.clients[:clients], progress=lambda done, _: told.append(done))
    expected = LocalEngine(process).run_round((), Cohort(source, cohort.clients))
    engine = make_engine("ray", process, options=[TWO])
    calls: list[int] = []
    for _ in range(2):
        told: list[int] = []
        assert_same(expected, engine.run_round((), cohort))
        calls.append(len(told) - 1)
        assert max(told) == clients
    assert calls[0] == len(shards_of(clients))
    assert calls[1] <= min(calls[0], 4)


def shards_of(clients: int) -> range:
    """As many as the local engine divides clients into."""
    return range(0, clients, min(local.SHARD, -(-clients // local.SHARDS)) or 1)


@needs_ray
def test_large_accumulators_are_merged_by_actors(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tffc.engines import ray as engine

    def not_here(*arguments: Any) -> Any:
        raise AssertionError("it was merged by the driver")

    source = numbers(75)
    process = process_of(every_aggregation, "mapreduce")
    expected = LocalEngine(process).run_round((), Cohort(source, source.clients))
    monkeypatch.setattr(engine, "LARGE", 0)
    monkeypatch.setattr(engine, "merged_bytes", not_here)
    found = make_engine("ray", process, options=[TWO, "--fanout=4"])
    assert_same(expected, found.run_round((), Cohort(source, source.clients)))


@needs_ray
@FORMS
def test_rounds_without_clients(cluster: Any, form: str) -> None:
    one, other = both(process_of(every_aggregation, form), Cohort(numbers(0), ()))
    assert_same(one, other)
    assert np.isnan(other.output[0])


@needs_ray
def test_clients_with_bad_data_are_left_out_or_fail_the_round(cluster: Any) -> None:
    process = process_of(every_aggregation, "mapreduce")
    source = SomeBad(numbers(7).values)
    one, other = both(process, Cohort(source, source.clients, skip_bad_clients=True))
    assert_same(one, other)
    assert other.skipped == ("00001", "00003", "00005")
    assert_same(*both(process, Cohort(source, ("00001", "00003"), skip_bad_clients=True)))
    with pytest.raises(DataError) as caught:
        make_engine("ray", process, options=[TWO]).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == "no data of 00001 [E000]\n  note: a note\n  help: some help"


LIMIT = 50


@tff.federated_computation(NONE, INT)
def bounded(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum(data, LIMIT)


@needs_ray
@FORMS
def test_errors_are_those_of_the_first_client(cluster: Any, form: str) -> None:
    source = Values([np.int32(LIMIT - 5 + n) for n in range(9)])
    process = process_of(bounded, form)
    found = []
    for engine in (LocalEngine(process, 1), make_engine("ray", process, options=[TWO])):
        with pytest.raises(ExecutionError) as caught:
            engine.run_round((), Cohort(source, source.clients))
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert "client 00006 adds 51" in found[1]


@tff.tf_computation(np.int32, np.int32)
def difference(key: Any, data: Any) -> Any:
    return key - data


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def personal(key: Any, data: Any) -> Any:
    return tff.federated_map(difference, (tff.federated_broadcast(key), data))


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
    engine = make_engine("ray", process_of(personal, "broadcast"), options=[TWO])
    outcome = engine.run_round(np.int32(4), cohort)
    assert delivered == {"00000": -1, "00001": 2, "00002": -5}
    assert (outcome.state, outcome.output) == (4, ())
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def next_(state: Any, data: Any) -> Any:
    return tff.federated_sum(data), state


@needs_ray
def test_the_same_clients_are_sampled(cluster: Any) -> None:
    process = process_of(next_, "mapreduce")
    source = Values([np.int32(2**n) for n in range(20)])
    seen: list[list[tuple[Any, ...]]] = []
    for engine in (LocalEngine(process), make_engine("ray", process, options=[TWO])):
        state = State(np.int32(-1), process.program, 4)
        rounds = run_rounds(engine, state, source, 3, Sampling(5, seed=7))
        seen.append([(each.number, each.clients, each.output, each.state) for each in rounds])
    assert seen[0] == seen[1]
    assert [each[0] for each in seen[0]] == [5, 6, 7]


@needs_ray
def test_a_source_that_cannot_be_sent(cluster: Any) -> None:
    source = Unsendable([np.int32(1)])
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=[TWO])
    with pytest.raises(DataError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E935"


@needs_ray
def test_a_worker_that_fails(cluster: Any) -> None:
    source = Breaks([np.int32(1)])
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=[TWO])
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert str(caught.value) == (
        "a worker of Ray failed [E949]\n"
        '  note: KeyError: "a defect of the user\'s"\n'
        "  help: the logs of the worker's machine, in Ray's folder session_latest/logs, tell more"
    )


@needs_ray
def test_a_killed_actor_costs_its_shard_alone(cluster: Any, tmp_path: pathlib.Path) -> None:
    process = process_of(every_aggregation, "mapreduce")
    values = numbers(60)
    expected = LocalEngine(process).run_round((), Cohort(values, values.clients))
    source = Kills(values.values, "00031", tmp_path / "killed")
    engine = make_engine("ray", process, options=[TWO])
    assert_same(expected, engine.run_round((), Cohort(source, source.clients)))
    assert source.marker is not None
    assert source.marker.exists()


@needs_ray
def test_a_killed_machine_costs_its_shards_alone(cluster: Any) -> None:
    process = process_of(every_aggregation, "mapreduce")
    values = numbers(60)
    expected = LocalEngine(process).run_round((), Cohort(values, values.clients))
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done >= 10 and not killed:
            killed.append(done)
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

    source = Slow(values.values, 0.02)
    engine = make_engine("ray", process, options=[TWO])
    found = engine.run_round((), Cohort(source, source.clients, progress=kill))
    assert_same(expected, found)
    assert killed
    # A machine that comes later takes part.
    cluster.add_node(num_cpus=1)
    assert_same(expected, engine.run_round((), Cohort(source, source.clients)))


@needs_ray
def test_work_that_kills_every_worker(cluster: Any) -> None:
    source = Kills([np.int32(n) for n in range(40)], "00003")
    engine = make_engine("ray", process_of(bounded, "mapreduce"), options=[TWO])
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E948"
    assert caught.value.message == "3 workers of Ray were lost at the same work"
    assert caught.value.notes[0] == "it was that of the clients 00002 to 00003"


@needs_ray
def test_an_interruption_leaves_no_actor_at_work(cluster: Any) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    process = process_of(bounded, "mapreduce")
    source = Values([np.int32(1)] * 4)
    engine = make_engine("ray", process, options=[TWO])
    with pytest.raises(KeyboardInterrupt):
        engine.run_round((), Cohort(source, source.clients, progress=interrupt))
    assert engine.run_round((), Cohort(source, source.clients)).output == 4


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
        "the engine on Ray does not take these options [E946]\n"
        f"  note: {note}\n"
        "  help: give --address=auto, --workers=N, --cpus-per-worker=X, --gpus-per-worker=X, "
        "--shard=N or --fanout=N"
    )


@needs_ray
@pytest.mark.parametrize(("address", "where"), [("auto", "at auto"), (None, "here")])
def test_no_ray_is_found(address: str | None, where: str) -> None:
    from tffc.engines import ray as engine

    class NoRay:
        def init(self, **options: Any) -> None:
            assert options["log_to_driver"] is False
            raise ConnectionError("nobody answers\nat all")

    with pytest.raises(ExecutionError) as caught:
        engine._start(NoRay(), engine.RayOptions(address=address))
    assert str(caught.value) == (
        f"there is no Ray {where} [E947]\n"
        "  note: nobody answers\n"
        "  help: start it with ray start --head and give --address=auto, or give no address for "
        "one of this process"
    )


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        make_engine("ray", process_of(bounded, "mapreduce"))
    assert str(caught.value) == (
        "Ray is not installed, and the engine 'ray' needs it [E930]\n"
        "  help: pip install 'tffc[ray]'"
    )


@needs_ray
def test_ray_reports_nothing_to_its_makers() -> None:
    from tffc.engines.ray import load_ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
        load_ray()
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
