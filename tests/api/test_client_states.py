"""Clients that keep states, from Python."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tffc
from tests.runtime.engines.programs import bounded, tallied, totals
from tffc.api.runs import Run
from tffc.support.errors import TffcError

DATA = {"ada": np.int32(1), "bob": np.int32(10)}


def begun(rounds: int = 2, **others: Any) -> Run:
    return tffc.run(tallied, list(DATA.values()), rounds, state=3, **others)


def test_a_run_has_the_states_of_its_clients() -> None:
    run = begun().finish()
    assert dict(run.client_states or {}) == {"0": 2, "1": 20}


@pytest.mark.parametrize("begin", ["run", "round", "folder", "dict"])
def test_a_run_begins_with_the_states_of_another(begin: str, tmp_path: pathlib.Path) -> None:
    first = begun(out=tmp_path / "run").finish()
    states = {
        "run": first,
        "round": first.last,
        "folder": tmp_path / "run",
        "dict": {"0": 2, "1": 20},
    }[begin]
    second = begun(1, client_states=states, out=tmp_path / "second").finish()
    assert dict(second.client_states or {}) == {"0": 3, "1": 30}
    again = begun(1, client_states=tmp_path / "second").finish()
    assert dict(again.client_states or {}) == {"0": 4, "1": 40}


def test_the_states_of_clients_belong_to_the_state_of_a_run() -> None:
    first = begun().finish()
    more = tffc.run(tallied, list(DATA.values()), 1, state=first).finish()
    assert dict(more.client_states or {}) == {"0": 3, "1": 30}
    assert dict(first.client_states or {}) == {"0": 2, "1": 20}


def test_a_state_of_the_server_alone_warns(tmp_path: pathlib.Path) -> None:
    first = begun(out=tmp_path / "run").finish()
    first.save_state(tmp_path / "alone.npz")
    with pytest.warns(RuntimeWarning, match="clients of the run begin with their first states"):
        alone = tffc.run(tallied, list(DATA.values()), 1, state=tmp_path / "alone.npz")
    assert dict(alone.finish().client_states or {}) == {"0": 1, "1": 10}
    meant = tffc.run(
        tallied, list(DATA.values()), 1, state=tmp_path / "alone.npz", client_states={}
    )
    assert dict(meant.finish().client_states or {}) == {"0": 1, "1": 10}
    # That of a run's folder is not alone.
    of_run = tffc.run(tallied, list(DATA.values()), 1, state=tmp_path / "run" / "state.npz")
    assert dict(of_run.finish().client_states or {}) == {"0": 3, "1": 30}


def test_the_first_state_of_a_process_does_not_warn() -> None:
    @tffc.federated_computation
    def initialize() -> Any:
        return tffc.federated_value(np.int32(3), tffc.SERVER)

    process = tffc.templates.IterativeProcess(initialize, tallied)
    run = tffc.run(process, list(DATA.values()), 1, state=process.initialize()).finish()
    with pytest.warns(RuntimeWarning, match="begin with their first states"):
        tffc.run(process, list(DATA.values()), 1, state=run.state)


def test_an_evaluation_has_the_states(tmp_path: pathlib.Path) -> None:
    data = list(DATA.values())
    run = tffc.run(tallied, data, 2, state=3, evaluate=totals, evaluate_data=data)
    assert [each.evaluation for each in run] == [11, 22]


def test_states_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TffcError, match="the state of client 0"):
        begun(1, client_states={"0": 1.5})
    with pytest.raises(TffcError, match=r"client_states are a list of 2 elements"):
        begun(1, client_states=[1, 2])
    with pytest.raises(TffcError, match="there is no run in nowhere"):
        begun(1, client_states="nowhere")
    with pytest.raises(TffcError, match="clients of this program keep no states"):
        tffc.run(bounded, [1, 2], 1, client_states={"0": 1})


def test_it_is_verified_on_the_data_of_clients() -> None:
    for form in (None, "client-state"):
        verification = tffc.verify(tallied, form, data=DATA, trials=6)
        assert verification.coverage.compared == 6
