"""Runs in Python: iterated, all at once, interrupted, continued, and kept in a folder."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.api.counting import PROCESS, Count, measured
from tests.refusals import refusal
from tffc.api.progress import show_progress, silent
from tffc.runtime.engines.sampling import sample
from tffc.support.errors import DataError, ExecutionError, LanguageTypeError, LanguageValueError

pytestmark = pytest.mark.tensorflow

DATA = [1.0, 2.0, 3.0]


@pytest.fixture(scope="module")
def bundle() -> Any:
    return tff.compile(PROCESS)


def test_states_and_outputs_are_in_the_authors_containers(bundle: Any) -> None:
    run = tff.run(bundle, DATA, 2)
    first = next(run)
    assert first.state == Count(1, 2.0)
    assert type(first.state) is Count
    assert type(first.output).__name__ == "OrderedDict"
    assert first.output == {"loss": 1.0, "rounds": 0}
    assert bundle.first_state() == Count(0, 0.0)


def test_a_run_is_iterated_or_finished(bundle: Any) -> None:
    run = bundle.run(DATA, 4)
    assert (run.last, run.output, run.state) == (None, None, Count(0, 0.0))
    assert [outcome.number for outcome, _ in zip(run, range(2), strict=False)] == [1, 2]
    assert run.finish() is run
    assert run.last.number == 4
    assert run.state == Count(4, 2.0)
    assert run.metrics["rounds"] == [(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0)]
    assert list(run) == []
    assert repr(run) == "<run of 4 rounds, 4 of them finished>"


def test_an_interrupted_run_goes_on_after_the_last_finished_round(bundle: Any) -> None:
    values = Interrupting()
    run = bundle.run(values, 3)
    next(run)
    values.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    assert (run.last.number, run.state) == (1, Count(1, 2.0))
    values.interrupts = False
    assert [outcome.number for outcome in run] == [2, 3]
    assert run.state == Count(3, 2.0)


def test_a_run_that_fails_before_its_first_round_goes_on_in_its_folder(
    bundle: Any, tmp_path: pathlib.Path
) -> None:
    values = Interrupting()
    values.interrupts = True
    run = bundle.run(values, 2, out=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    values.interrupts = False
    assert [outcome.number for outcome in run] == [1, 2]
    assert tff.load_state(tmp_path / "run") == {"rounds": 2, "mean": 2.0}


class Interrupting:
    """Clients whose reading may be interrupted."""

    clients = ("a",)
    interrupts = False

    def read(self, client: str) -> Any:
        if self.interrupts:
            raise KeyboardInterrupt
        return np.float32(2)


def test_a_run_continues_another_and_its_numbers(bundle: Any, tmp_path: pathlib.Path) -> None:
    whole = bundle.run(DATA, 4, clients_per_round=1, seed=3)
    rounds = list(whole)
    clients = [outcome.clients for outcome in rounds]
    begun = bundle.run(DATA, 2, clients_per_round=1, seed=3).finish()
    begun.save_state(tmp_path / "state.npz")
    for state in (begun, begun.last, tmp_path / "state.npz"):
        rest = bundle.run(DATA, 2, clients_per_round=1, seed=3, state=state)
        assert [outcome.clients for outcome in rest] == clients[2:]
        assert rest.last.number == 4
    again = bundle.run(DATA, 1, clients_per_round=1, seed=3, state=begun.state)
    assert next(again).number == 1, "of a plain state nobody knows the round"
    asked = bundle.run(DATA, 1, clients_per_round=1, seed=3, state=begun.state, after_round=2)
    outcome = next(asked)
    assert (outcome.number, outcome.clients) == (3, sample(("0", "1", "2"), 1, 3, 3))
    assert tff.load_state(tmp_path / "state.npz") == {"rounds": 2, "mean": begun.state.mean}


def test_a_run_is_kept_in_a_folder_and_resumed(bundle: Any, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    bundle.run(DATA, 2, out=out).finish()
    said = refusal(DataError, bundle.run(DATA, 3, out=out).finish)
    assert "already holds a run" in said
    assert "resume=True continues it" in said
    resumed = bundle.run(DATA, 3, out=out, resume=True)
    assert [outcome.number for outcome in resumed] == [3]
    assert repr(resumed) == "<run of 3 rounds, 3 of them finished>"
    assert "<dt>rounds</dt><dd>3</dd>" in resumed.report()
    assert tff.load_state(out) == {"rounds": 3, "mean": 2.0}
    assert list(bundle.run(DATA, 3, out=out, resume=True)) == []
    assert sorted(path.name for path in (out / "outputs").iterdir()) == [
        f"round-{number}.npz" for number in (1, 2, 3)
    ]


def test_evaluations_are_in_the_rows(bundle: Any) -> None:
    run = bundle.run(DATA, 2, evaluate=measured, evaluate_data=[5.0], evaluate_every=2)
    assert [outcome.evaluation for outcome in run] == [None, 5.0]
    assert run.metrics["evaluation.output"] == [(2, 5.0)]
    assert "<h1>Run mine</h1>" in run.report("mine")


def test_misuse_is_refused_at_the_users_line(bundle: Any) -> None:
    with pytest.raises(LanguageTypeError, match=r"the state") as caught:
        bundle.run(DATA, state={"rounds": 1, "mean": "x"})
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    said = refusal(LanguageValueError, bundle.run, DATA, state=Count(0, 0.0), resume=True, out="r")
    assert "continued from the state in its folder" in said
    said = refusal(DataError, next, bundle.run(DATA, clients_per_round=9))
    assert "clients_per_round=... sets the number" in said


def test_progress_is_shown_where_it_is_asked_for(bundle: Any) -> None:
    import contextlib
    from collections.abc import Generator

    shown: list[Any] = []

    @contextlib.contextmanager
    def display(work: str) -> Generator[Any]:
        shown.append(work)
        yield lambda done, total: shown.append((done, total))

    show_progress(display)
    try:
        bundle.run(DATA, 2).finish()
    finally:
        show_progress(silent)
    assert shown == ["rounds 1 to 2", (0, 2), (1, 2), (2, 2)]


def test_an_error_at_the_clients_names_the_argument_that_shows_more() -> None:
    numbers = tff.types.at_clients(np.int32)
    pick = tff.tf_computation(lambda at: tf.gather([1, 2], at), np.int32)
    total = tff.federated_computation(
        lambda data: tff.federated_sum(tff.federated_map(pick, data)), numbers
    )
    with pytest.raises(ExecutionError) as hidden:
        tff.run(total, [5]).finish()
    assert str(hidden.value).endswith(
        "let the engine show clients, with show_clients=True of tffc.run"
    )
    with pytest.raises(ExecutionError, match="indices = 5") as shown:
        tff.run(total, [5], show_clients=True).finish()
    assert shown.value.notes == hidden.value.notes


def test_a_state_of_another_type_is_refused_with_the_part_that_differs(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "state.npz"
    tff.run(PROCESS, DATA, 1).finish().save_state(file)
    with pytest.raises(DataError, match=r"\[E651\]") as caught:
        tff.load_state(file, Count(np.int32, np.float64))
    assert caught.value.notes[1] == "`.mean` is of type `float32`, not `float64`"
