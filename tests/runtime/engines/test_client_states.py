"""Clients that keep states: what each has in each round, on one machine and in a run's folder."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.runtime.engines.programs import process_of, tallied, totals
from tests.runtime.engines.sources import SomeBad, Values
from tffc.language.types import to_type
from tffc.runtime.data.identity import source_identity
from tffc.runtime.engines.client_states import ClientStates, StateInMemory, first_client_state
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round, run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.runs.run_folder import RunFolder
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.support.errors import DataError, ExecutionError

PROCESS = process_of(tallied, "client-state")
DATA = Values([np.int32(10**n) for n in range(5)])
FIRST = State(np.int32(3), PROCESS.program, 0)


def expected(rounds: int, sampling: Sampling) -> Iterator[tuple[int, dict[str, int]]]:
    """The sum and the states of clients after each round, in plain Python."""
    from tffc.runtime.engines.sampling import sample

    kept: dict[str, int] = {}
    for number in range(1, rounds + 1):
        clients = sample(DATA.clients, sampling.clients, sampling.seed, number)
        values = {client: int(DATA.read(client)) for client in clients}
        sent = sum(2 + number + kept.get(client, 0) + value for client, value in values.items())
        kept |= {client: kept.get(client, 0) + value for client, value in values.items()}
        yield sent, dict(kept)


def states_of(finished: Round) -> dict[str, int]:
    assert finished.client_states is not None
    return {client: int(held.read()) for client, held in finished.client_states.held.items()}


@pytest.mark.parametrize("batching", [Batching(1), Batching(2)], ids=["alone", "batched"])
@pytest.mark.parametrize("masks", [False, True], ids=["open", "masked"])
def test_each_client_begins_with_what_it_kept(batching: Batching, masks: bool) -> None:
    if masks and batching.size != 1:
        pytest.skip("masked sums are not batched")
    sampling = Sampling(3, seed=5)
    engine = LocalEngine(PROCESS, batching=batching, masks_sums=masks)
    rounds = list(run_rounds(engine, FIRST, DATA, 6, sampling))
    assert [(each.output, states_of(each)) for each in rounds] == [
        ((sent, sent), kept) for sent, kept in expected(6, sampling)
    ]


def test_the_data_of_a_client_is_without_its_state() -> None:
    assert str(PROCESS.data_type) == "int32"
    assert str(PROCESS.client_state_type) == "int32"


def test_a_client_that_is_left_out_keeps_its_state() -> None:
    engine = LocalEngine(PROCESS)
    (first,) = run_rounds(engine, FIRST, DATA, 1)
    bad = SomeBad(DATA.values)
    (second,) = run_rounds(
        engine, first.state, bad, 1, skip_bad_clients=True, client_states=first.client_states
    )
    assert second.skipped == ("00001", "00003")
    assert states_of(second) == {
        client: int(DATA.read(client)) * (1 if client in second.skipped else 2)
        for client in DATA.clients
    }


def test_a_round_that_fails_leaves_all_states() -> None:
    engine = LocalEngine(PROCESS)
    (first,) = run_rounds(engine, FIRST, DATA, 1)
    large = Values([*DATA.values[:-1], np.int32(2**21)])
    with pytest.raises(ExecutionError):
        list(run_rounds(engine, first.state, large, 1, client_states=first.client_states))
    assert states_of(first) == {client: int(DATA.read(client)) for client in DATA.clients}


def test_an_evaluation_sees_the_states_after_the_round() -> None:
    measuring = LocalEngine(process_of(totals, "client-state"))
    evaluation = Evaluation(measuring, Values(DATA.values[:2]))
    rounds = run_rounds(LocalEngine(PROCESS), FIRST, DATA, 2, evaluation=evaluation)
    assert [each.evaluation for each in rounds] == [11, 22]


def test_the_first_state_is_zeros() -> None:
    type = to_type([np.float32, (np.int32, [2, None]), np.str_, np.bool_])
    number, matrix, text, flag = first_client_state(type)
    assert (number, matrix.shape, text, flag) == (0.0, (2, 0), b"", False)


# In the folder of a run.


def begun(path: pathlib.Path, process: Process = PROCESS, *, resume: bool = False) -> Any:
    folder = RunFolder(path, process)
    identity = RunIdentity.of(
        process, Sampling(2, seed=1), source_identity(Values([])), skip_bad_clients=False
    )
    return folder, folder.begin(identity, None, resume=resume)


def run_in(path: pathlib.Path, rounds: int, *, resume: bool = False) -> list[Round]:
    folder, state = begun(path, resume=resume)
    engine = LocalEngine(folder.process)
    finished: list[Round] = []
    try:
        for each in run_rounds(
            engine,
            state or FIRST,
            DATA,
            rounds,
            Sampling(2, seed=1),
            client_states=folder.client_states,
        ):
            folder.save(each)
            finished.append(each)
    finally:
        folder.close()
    return finished


def files_in(path: pathlib.Path) -> dict[str, str]:
    return {f.stem: f.parent.name for f in sorted((path / "clients").glob("*/*.npz"))}


def test_a_folder_keeps_the_last_state_of_each_client(tmp_path: pathlib.Path) -> None:
    rounds = run_in(tmp_path / "run", 6)
    last = {client: f"round-{each.number}" for each in rounds for client in each.clients}
    assert files_in(tmp_path / "run") == last
    assert states_of(rounds[-1]) == list(expected(6, Sampling(2, seed=1)))[-1][1]


def test_going_on_is_as_if_there_had_been_no_stop(tmp_path: pathlib.Path) -> None:
    whole = run_in(tmp_path / "whole", 6)
    run_in(tmp_path / "run", 3)
    rest = run_in(tmp_path / "run", 3, resume=True)
    assert [each.output for each in rest] == [each.output for each in whole[3:]]
    assert states_of(rest[-1]) == states_of(whole[-1])
    assert files_in(tmp_path / "run") == files_in(tmp_path / "whole")


def test_a_state_that_was_replaced_is_said_to_be(tmp_path: pathlib.Path) -> None:
    first, *_ = run_in(tmp_path / "run", 6)
    with pytest.raises(DataError, match="there is no state of client 0000") as caught:
        states_of(first)
    assert "before the next round" in str(caught.value.help)


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_kill_leaves_the_states_of_the_last_committed_round(
    moment: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_in(tmp_path / "whole", 4)
    run_in(tmp_path / "run", 2)

    class Killed(BaseException):
        pass

    def die(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_commit" if moment[0] == "b" else "_replace_states", die)
        with pytest.raises(Killed):
            run_in(tmp_path / "run", 1, resume=True)
    done = 2 if moment[0] == "b" else 3
    rest = run_in(tmp_path / "run", 4 - done, resume=True)
    assert states_of(rest[-1]) == states_of(whole[-1])
    assert files_in(tmp_path / "run") == files_in(tmp_path / "whole")


def test_a_kill_at_the_beginning_loses_no_state(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever can be continued has the states that it was begun with."""
    held = {name: StateInMemory(np.int32(7)) for name in DATA.clients}
    folder = RunFolder(tmp_path / "run", PROCESS)
    identity = RunIdentity.of(
        PROCESS, Sampling(2, seed=1), source_identity(Values([])), skip_bad_clients=False
    )
    keep = RunFolder._keep_state  # pyright: ignore[reportPrivateUsage]  # what a kill interrupts

    def die_at_the_third(self: RunFolder, number: int, client: str, state: Any) -> Any:
        if client == DATA.clients[2]:
            raise KeyboardInterrupt
        return keep(self, number, client, state)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_keep_state", die_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            folder.begin(
                identity, None, resume=False, client_states=ClientStates(to_type(np.int32), held)
            )
    with pytest.raises(DataError) as caught:
        begun(tmp_path / "run", resume=True)
    assert caught.value.code == "E861"


def test_nothing_is_removed_behind_a_link(tmp_path: pathlib.Path) -> None:
    run_in(tmp_path / "run", 2)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "00000.npz").write_bytes(b"precious")
    (tmp_path / "run" / "clients" / "round-1").rename(tmp_path / "moved")
    os.symlink(elsewhere, tmp_path / "run" / "clients" / "round-1")
    with pytest.raises(DataError) as caught:
        run_in(tmp_path / "run", 1, resume=True)
    assert caught.value.code == "E938"
    assert (elsewhere / "00000.npz").read_bytes() == b"precious"


def test_a_state_of_another_type_is_refused(tmp_path: pathlib.Path) -> None:
    run_in(tmp_path / "run", 1)
    (file, *_) = (tmp_path / "run" / "clients").glob("*/*.npz")
    np.savez(file, np.zeros([2], np.float32))
    with pytest.raises(DataError):
        run_in(tmp_path / "run", 5, resume=True)


def test_clients_of_any_name_keep_states(tmp_path: pathlib.Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Values):
        @property
        def clients(self) -> tuple[str, ...]:
            return ("../up", "a/b", "ä\udcff %", "x.npz")

        def read(self, client: str) -> Any:
            return np.int32(len(client))

    folder, _ = begun(tmp_path / "run")
    named = Named(())
    for finished in run_rounds(
        LocalEngine(PROCESS), FIRST, named, 2, client_states=folder.client_states
    ):
        folder.save(finished)
    folder.close()
    folder, _ = begun(tmp_path / "run", resume=True)
    states = {client: int(folder.client_states.of(client)) for client in named.clients}
    folder.close()
    assert states == {client: 2 * len(client) for client in named.clients}
    assert not (tmp_path / "up.npz").exists()
