"""Rounds in process: what they compute, who takes part, and what secure sums check."""

from __future__ import annotations

import pathlib
import threading
import time
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tests.refusals import refusal
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_bundle
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.read_ahead import READERS
from tffc.runtime.engines.rounds import Round, run_rounds
from tffc.runtime.engines.sampling import sample
from tffc.runtime.engines.shards import SHARD
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import VARIABLE, read_counts
from tffc.support.errors import BundleError, DataError, ExecutionError, FormError

NAMES = tuple(f"client_{number:02}" for number in range(40))


def bundle_of(computation: Any, initialize: Any = None) -> Bundle:
    first = None if initialize is None else initialize.node
    return compile_bundle(computation.node, "mapreduce", initialize=first)


def run_once(engine: LocalEngine, folder: pathlib.Path, **options: Any) -> Round:
    clients = open_source(folder, engine.process.data_type)
    (only,) = run_rounds(engine, engine.process.first_state(), clients, 1, **options)
    return only


class Slow:
    """Clients of whom the first cannot be read, and the others take their time."""

    clients = tuple(f"{number:03}" for number in range(200))

    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, client: str) -> Any:
        self.asked.append(client)
        if client == self.clients[0]:
            raise DataError("E626", "cannot read it")
        time.sleep(0.01)
        return np.int32(1)


class Failing:
    """Clients none of whom can be read, which is found out late of the first and at once of the
    others."""

    clients = ("first", "second", "third")

    def read(self, client: str) -> Any:
        time.sleep(0.2 if client == "first" else 0)
        raise DataError("E626", f"cannot read the {client}")


class Interrupted:
    """Clients that take their time, and an interruption while others are at work."""

    clients = tuple(f"{number:03}" for number in range(200))

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.done: list[str] = []

    def read(self, client: str) -> Any:
        if threading.current_thread() is threading.main_thread():
            self.begun.wait(timeout=10)
            raise KeyboardInterrupt
        self.begun.set()
        time.sleep(0.1)
        self.done.append(client)
        return np.int32(1)


class Letters:
    """Clients that hold their names."""

    clients = tuple(chr(ord("a") + number % 26) + str(number) for number in range(75))

    def read(self, client: str) -> Any:
        return client.encode()


def write_clients(folder: pathlib.Path, *values: Any) -> None:
    for number, value in enumerate(values):
        np.savez(folder / f"client_{number:03}.npz", value)


NONE, INT = tff.types.at_server(()), tff.types.at_clients(np.int32)


@pytest.fixture(scope="module")
def extremes() -> LocalEngine:
    """Counts, sums, and finds the least and the greatest."""

    @tff.federated_computation(NONE, INT)
    def round_(state: Any, data: Any) -> Any:
        sums = tff.federated_sum(data), tff.federated_sum(tff.federated_value(1, tff.CLIENTS))
        return state, (*sums, tff.federated_min(data), tff.federated_max(data))

    return LocalEngine(Process(bundle_of(round_)))


def test_shards_are_merged(extremes: LocalEngine, tmp_path: pathlib.Path) -> None:
    count = 2 * SHARD + 1
    write_clients(tmp_path, *np.arange(count, dtype=np.int32))
    assert run_once(extremes, tmp_path).output == (
        sum(range(count)),
        count,
        0,
        count - 1,
    )


def test_a_failure_ends_the_round_of_all_workers(extremes: LocalEngine) -> None:
    source = Slow()
    with pytest.raises(DataError, match="cannot read it"):
        LocalEngine(extremes.process, 4).run_round((), Cohort(source, source.clients))
    asked = list(source.asked)
    assert len(asked) < len(source.clients) / 2
    time.sleep(0.05)
    assert source.asked == asked


def test_the_first_client_that_fails_is_told_of(extremes: LocalEngine) -> None:
    source = Failing()
    with pytest.raises(DataError, match="cannot read the first"):
        LocalEngine(extremes.process, 2).run_round((), Cohort(source, source.clients))


def test_the_client_at_whose_data_tensorflow_failed_is_named() -> None:
    @tff.tf_computation(np.int32)
    def row(number: Any) -> Any:
        return tf.gather(tf.constant([5, 6, 7]), number)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
    def rows(state: Any, numbers: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(row, numbers))

    class Numbers:
        clients = ("ada", "bob", "eve")

        def read(self, client: str) -> Any:
            return np.int32({"ada": 0, "bob": 8, "eve": 2}[client])

    source = Numbers()
    engine = LocalEngine(Process(bundle_of(rows)), 1)
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E722"
    assert caught.value.notes[-1] == "it was at work on the data of client bob"


def test_an_interruption_leaves_nothing_running(extremes: LocalEngine) -> None:
    source = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(extremes.process, 3).run_round((), Cohort(source, source.clients))
    done = list(source.done)
    assert 0 < len(done) < len(source.clients) / 2
    time.sleep(0.3)
    assert source.done == done


def test_clients_are_aggregated_in_their_order() -> None:
    @tff.tf_computation(np.str_, np.str_)
    def join(first: Any, second: Any) -> Any:
        return first + second

    @tff.tf_computation(np.str_)
    def same(text: Any) -> Any:
        return text

    @tff.federated_computation(NONE, tff.types.at_clients(np.str_))
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_aggregate(data, "", join, join, same)

    source = Letters()
    engine = LocalEngine(Process(bundle_of(round_)), 3)
    outcome = engine.run_round((), Cohort(source, source.clients))
    assert outcome.output.decode() == "".join(source.clients)


def test_threads_stay_for_the_next_round_and_end_with_the_engine(extremes: LocalEngine) -> None:
    source, others = Slow(), set(threading.enumerate())
    engine = LocalEngine(extremes.process, 3)
    started: list[set[threading.Thread]] = []
    for _ in range(2):
        engine.run_round((), Cohort(source, source.clients[1:9]))
        started.append(set(threading.enumerate()) - others)
    assert started[0] == started[1]
    assert len(started[0]) == 2 + READERS
    del engine
    for thread in started[0]:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in started[0])


def test_who_is_left_out_does_not_count(extremes: LocalEngine) -> None:
    source = Slow()
    cohort = Cohort(source, source.clients[:3], skip_bad_clients=True)
    outcome = LocalEngine(extremes.process, 2).run_round((), cohort)
    assert (outcome.output[:2], outcome.skipped) == ((2, 2), ("000",))
    nobody = Cohort(source, source.clients[:1], skip_bad_clients=True)
    assert LocalEngine(extremes.process, 2).run_round((), nobody).output[:2] == (0, 0)


def test_progress_counts_clients(extremes: LocalEngine, tmp_path: pathlib.Path) -> None:
    write_clients(tmp_path, *np.arange(3, dtype=np.int32))
    seen: list[tuple[int, int]] = []
    run_once(extremes, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_the_state_goes_from_round_to_round(tmp_path: pathlib.Path) -> None:
    @tff.federated_computation(tff.types.at_server(np.int32), INT)
    def next_(state: Any, data: Any) -> Any:
        return tff.federated_sum(data), state

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_value(np.int32(-1), tff.SERVER)

    process = Process(bundle_of(next_, initialize))
    write_clients(tmp_path, np.int32(3), np.int32(4))
    clients = open_source(tmp_path, process.data_type)
    found = list(run_rounds(LocalEngine(process), process.first_state(), clients, 3))
    assert [each.output for each in found] == [-1, 7, 7]
    assert [each.number for each in found] == [1, 2, 3]
    assert (found[-1].state.value, found[-1].state.rounds) == (7, 3)


def test_rounds_are_counted_for_operators(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tff.federated_computation(tff.types.at_server(()), INT)
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(data)

    counted = tmp_path / "counted"
    monkeypatch.setenv(VARIABLE, str(counted))
    process = Process(bundle_of(round_))
    (tmp_path / "data").mkdir()
    write_clients(tmp_path / "data", np.int32(3), np.int32(4))
    clients = open_source(tmp_path / "data", process.data_type)
    list(run_rounds(LocalEngine(process), State((), process.program, 0), clients, 2))
    counts = read_counts(counted)
    assert counts["rounds"] == {"finished": 2}
    assert counts["clients"] == {"took_part": 4, "left_out": 0}
    assert counts["last_round"] == {"": 2}


def test_a_state_without_beginning_is_refused() -> None:
    @tff.federated_computation(tff.types.at_server(np.int32), INT)
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(data)

    assert refusal(BundleError, Process(bundle_of(round_)).first_state) == (
        "the bundle does not say how the state of type `int32` begins [E661]\n"
        "  help: give a state, or compile an iterative process, or compile with a computation of "
        "the first state"
    )


def test_a_bundle_without_all_components_is_refused(extremes: LocalEngine) -> None:
    bundle = extremes.process.bundle
    parts = dict(bundle.components)
    parts.pop("merge")
    with pytest.raises(FormError, match="found prepare, work, zero, accumulate, report"):
        Process(Bundle("mapreduce", bundle.computation, parts, None, {}))


def secured(bound: int) -> LocalEngine:
    pair = tff.types.at_clients([np.int32, np.int32])

    @tff.federated_computation(NONE, pair)
    def round_(state: Any, data: Any) -> Any:
        return state, (
            tff.federated_secure_sum(data, bound),
            tff.federated_secure_sum_bitwidth(data[0], 3),
        )

    return LocalEngine(Process(bundle_of(round_)))


def test_secure_sums_are_sums(tmp_path: pathlib.Path) -> None:
    for number, pair in enumerate([(1, 2), (3, 10)]):
        np.savez(tmp_path / f"{number}.npz", *map(np.int32, pair))
    assert run_once(secured(10), tmp_path).output == ((4, 12), 4)


def test_a_value_above_the_bound_of_a_secure_sum_is_refused(tmp_path: pathlib.Path) -> None:
    for number, pair in enumerate([(1, 2), (3, 10)]):
        np.savez(tmp_path / f"{number}.npz", *map(np.int32, pair))
    with pytest.raises(ExecutionError) as caught:
        run_once(secured(9), tmp_path)
    assert caught.value.code == "E663"
    assert caught.value.notes == ("it was at work on the data of client 1",)
    assert "10" not in str(caught.value)
    assert caught.value.whole is not None
    assert "the client 1 adds 10 to a secure sum" in str(caught.value.whole)


def test_a_value_above_the_bits_of_a_secure_sum_is_refused(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "eve.npz", np.int32(8), np.int32(0))
    with pytest.raises(ExecutionError) as caught:
        run_once(secured(9), tmp_path)
    assert "the client eve adds 8" in str(caught.value.whole)


def test_the_sample_stays_as_it_is() -> None:
    def drawn(seed: int, number: int) -> list[int]:
        return [NAMES.index(name) for name in sample(NAMES, 4, seed, number)]

    # Fixed for ever: a state that was saved is resumed with the clients it would have had.
    assert drawn(0, 1) == [9, 16, 33, 35]
    assert drawn(0, 2) == [12, 25, 31, 36]
    assert drawn(1, 1) == [0, 3, 4, 15]


@given(st.integers(1, 40), st.integers(), st.integers(1, 10**6))
def test_a_sample_is_so_many_different_clients_in_order(count: int, seed: int, number: int) -> None:
    found = sample(NAMES, count, seed, number)
    assert len(found) == len(set(found)) == count
    assert [name for name in NAMES if name in found] == list(found)


def test_every_client_is_sampled_as_often() -> None:
    drawn = [name for number in range(2000) for name in sample(NAMES, 10, 0, number)]
    counts = [drawn.count(name) for name in NAMES]
    assert 420 < min(counts) < max(counts) < 580


def test_without_a_number_all_take_part() -> None:
    assert sample(NAMES, None, 0, 1) == NAMES


def test_more_clients_than_there_are_cannot_be_sampled() -> None:
    with pytest.raises(DataError, match="cannot sample 41 clients of 40"):
        sample(NAMES, 41, 0, 1)
