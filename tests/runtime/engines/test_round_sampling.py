"""What a run records of how its clients are drawn, who is told the seed, and how it goes on."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.hostile.kills import contents
from tests.refusals import refusal
from tests.runtime.engines.programs import adding_up, process_of
from tests.runtime.engines.sources import SomeBad, Values
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.report import read_report
from tffc.runtime.runs.report_page import report_page
from tffc.runtime.runs.round_sampling import RoundSampling, read_round_samplings
from tffc.runtime.runs.run_identity import RunIdentity, Timing
from tffc.runtime.runs.run_record import read_record
from tffc.runtime.tracking.tracking import parameters
from tffc.support.errors import DataError

PROCESS = process_of(adding_up)
SOURCE = Values([np.int32(2**n) for n in range(20)])


def running(out: pathlib.Path, rounds: int, source: Any = SOURCE, **options: Any) -> Any:
    resume = (out / "run.json").exists()
    state = {} if resume else {"state": np.int32(0)}
    return tff.run(PROCESS, source, rounds, out=out, resume=resume, **state, **options)


def sampling_of(out: pathlib.Path) -> Sampling:
    record = read_record(out)
    assert record is not None
    return record.identity.sampling


def test_a_seed_that_is_secret_is_in_the_record_alone(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    rounds = list(running(out, 3, sampling_rate=0.3))
    sampling = sampling_of(out)
    assert (sampling.rate, sampling.seed_is_secret) == (0.3, True)
    for each in rounds:
        assert each.clients == sampling.draw(SOURCE.clients, each.number)
    secret = f"{sampling.seed:032x}"
    written = json.loads((out / "run.json").read_text())
    assert written["clients_per_round"] is None
    assert written["seed"] is None
    assert written["poisson"] == {"rate": 0.3, "secret_seed": secret}
    page = report_page(read_report(out))
    assert "each with probability 0.3, drawn by a secret seed" in page
    record = read_record(out)
    assert record is not None
    told = parameters("mine", record.identity, PROCESS, None)
    assert (told["sampling_rate"], told["seed"]) == ("0.3", "secret")
    assert "clients_per_round" not in told
    for text in (page, *told.values(), *(_texts(out, but="run.json"))):
        assert secret not in text
        assert str(sampling.seed) not in text


def _texts(folder: pathlib.Path, but: str) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != but)
    return [path.read_bytes().decode(errors="replace") for path in files]


def test_runs_have_seeds_of_their_own(tmp_path: pathlib.Path) -> None:
    for name in "ab":
        running(tmp_path / name, 1, sampling_rate=0.3).finish()
    assert sampling_of(tmp_path / "a").seed != sampling_of(tmp_path / "b").seed


def test_a_run_goes_on_by_the_seed_that_it_was_begun_with(tmp_path: pathlib.Path) -> None:
    out, other = tmp_path / "run", tmp_path / "other"
    running(out, 2, sampling_rate=0.3).finish()
    shutil.copytree(out, other)
    running(out, 6, sampling_rate=0.3).finish()
    for rounds in (3, 4, 6):
        running(other, rounds, sampling_rate=0.3).finish()
    kept = (contents(folder) for folder in (out, other))
    one, two = ({k: v for k, v in each.items() if k != "observed.jsonl"} for each in kept)
    assert one == two
    sampling = sampling_of(out)
    state = 0
    for row, number in zip(read_report(out).rows, range(1, 7), strict=True):
        drawn = sampling.draw(SOURCE.clients, number)
        assert (row.clients, row.metrics) == (len(drawn), {"output": state})
        state = sum(2 ** int(name) for name in drawn)


class Interrupting(Values):
    """Clients whose reading may be interrupted."""

    interrupts = False

    def read(self, client: str) -> Any:
        if self.interrupts:
            raise KeyboardInterrupt
        return super().read(client)


def test_an_interrupted_run_goes_on_by_its_seed(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    source = Interrupting(SOURCE.values)
    run = tff.run(PROCESS, source, 6, state=np.int32(0), sampling_rate=0.5, out=out)
    finished = [next(run), next(run)]
    source.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        next(run)
    source.interrupts = False
    finished += run
    sampling = sampling_of(out)
    assert [each.number for each in finished] == [1, 2, 3, 4, 5, 6]
    for each in finished:
        assert each.clients == sampling.draw(SOURCE.clients, each.number)


def test_a_seed_that_was_given_is_recorded_as_such(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    running(out, 2, sampling_rate=0.3, seed=9).finish()
    assert sampling_of(out) == Sampling(None, 9, 0.3)
    written = json.loads((out / "run.json").read_text())
    assert (written["seed"], written["poisson"]) == (9, {"rate": 0.3, "secret_seed": None})
    assert "each with probability 0.3, drawn by the seed 9" in report_page(read_report(out))
    assert not any(each.seed_is_secret for each in read_round_samplings(out))


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a given seed": (
        {"sampling_rate": 0.3},
        {"sampling_rate": 0.3, "seed": 9},
        "its seed is secret, and here 9",
    ),
    "no given seed": (
        {"sampling_rate": 0.3, "seed": 9},
        {"sampling_rate": 0.3},
        "its seed is 9, and here secret",
    ),
    "another rate": (
        {"sampling_rate": 0.3},
        {"sampling_rate": 0.25},
        "a round takes each client with probability 0.3, and here each client with probability "
        "0.25",
    ),
    "a number": (
        {"sampling_rate": 0.3, "seed": 0},
        {"clients_per_round": 4},
        "a round takes each client with probability 0.3, and here 4 clients",
    ),
    "all": (
        {"sampling_rate": 1, "seed": 0},
        {},
        "a round takes each client with probability 1, and here all clients",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_run_with_another_sampling_is_another_run(case: str, tmp_path: pathlib.Path) -> None:
    begun, now, note = OTHERS[case]
    out = tmp_path / "run"
    running(out, 1, **begun).finish()
    said = refusal(DataError, running(out, 2, **now).finish)
    assert [line for line in said.splitlines() if "note" in line] == [f"  note: {note}"]


def test_the_rounds_of_a_folder(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    source = SomeBad(SOURCE.values)
    for rounds in (2, 4):
        running(out, rounds, source, sampling_rate=0.3, skip_bad_clients=True).finish()
    sampling = sampling_of(out)
    assert read_round_samplings(out) == tuple(
        RoundSampling(
            number,
            "poisson",
            rate=0.3,
            size=None,
            population=20,
            took_part=sum(int(name) % 2 == 0 for name in drawn),
            left_out=sum(int(name) % 2 for name in drawn),
            seed_is_secret=True,
        )
        for number in range(1, 5)
        for drawn in [sampling.draw(source.clients, number)]
    )


def test_a_round_for_which_nobody_is_drawn_is_recorded(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    running(out, 2, sampling_rate=1e-12).finish()
    assert [(each.number, each.took_part) for each in read_round_samplings(out)] == [(1, 0), (2, 0)]
    assert "each with probability 1e-12" in report_page(read_report(out))


@pytest.mark.parametrize(
    ("options", "kind", "size"), [({}, "all", None), ({"clients_per_round": 4}, "fixed", 4)]
)
def test_rounds_that_are_sampled_otherwise(
    options: dict[str, Any], kind: Any, size: int | None, tmp_path: pathlib.Path
) -> None:
    """Their records are as before there was another way."""
    out = tmp_path / "run"
    running(out, 1, **options).finish()
    written = json.loads((out / "run.json").read_text())
    assert (written["clients_per_round"], written["seed"]) == (size, 0)
    assert "poisson" not in written
    assert read_round_samplings(out) == (
        RoundSampling(1, kind, None, size, 20, size or 20, 0, seed_is_secret=False),
    )


ROW = MetricsRow(3, 4, 1, {})
BUFFERED = Timing(Buffering(4, 6, None), None)
NODES: dict[str, tuple[str, Timing | None, Any, int | None, int | None]] = {
    "1": ("flower", None, "all", None, 5),
    "0.5": ("nvflare", None, "fixed", 5, None),
    "1 buffered": ("flower", BUFFERED, "buffered", 4, None),
}


@pytest.mark.parametrize("case", NODES)
def test_rounds_of_nodes(case: str) -> None:
    federation, timing, kind, size, population = NODES[case]
    source = SourceIdentity(federation, {"fraction": case.split()[0]}, (), {})
    identity = RunIdentity("mapreduce", {}, Sampling(), False, source, timing=timing)
    assert RoundSampling.of(identity, ROW) == RoundSampling(
        3, kind, None, size, population, 4, 1, seed_is_secret=False
    )


def test_buffered_rounds_are_no_sample() -> None:
    source = SourceIdentity("npz", {}, SOURCE.clients, {})
    identity = RunIdentity("mergeable", {}, Sampling(), False, source, timing=BUFFERED)
    found = RoundSampling.of(identity, ROW)
    assert (found.kind, found.size, found.population) == ("buffered", 4, 20)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.population = 7  # pyright: ignore[reportAttributeAccessIssue]


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "a rate that is none": (
        {"poisson": {"rate": 1.5, "secret_seed": None}, "seed": 1},
        "its 'poisson' is not right",
    ),
    "a seed that is none": (
        {"poisson": {"rate": 0.5, "secret_seed": "7"}},
        "its 'poisson' is not right",
    ),
    "a rate alone": ({"poisson": {"rate": 0.5}}, "its 'poisson' is not right"),
    "two seeds": ({"seed": 1}, "its 'seed' is not right"),
    "no seed": (
        {"poisson": {"rate": 0.5, "secret_seed": None}},
        "its 'seed' is not right",
    ),
    "a number too": (
        {"clients_per_round": 4},
        "it has both a 'clients_per_round' and a 'poisson'",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_records_that_were_changed(case: str, tmp_path: pathlib.Path) -> None:
    changes, reason = DAMAGED[case]
    out = tmp_path / "run"
    running(out, 1, sampling_rate=0.3).finish()
    file = out / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    assert refusal(DataError, lambda: read_record(out)) == (
        f"{file} is not what a run writes: {reason} [E938]\n"
        "  help: put the file back as it was, or begin another run in a new folder"
    )


def test_groups_divide_the_clients_that_are_drawn() -> None:
    def rows(**options: Any) -> list[MetricsRow]:
        run = tff.run(adding_up, SOURCE, 3, form="mergeable", state=np.int32(0), **options)
        return run.finish().rows

    sampled = {"sampling_rate": 0.3, "seed": 4}
    assert rows(**sampled) == rows(**sampled, groups=3)
    assert len(rows(sampling_rate=1e-12, groups=3, skip_bad_clients=True)) == 3
