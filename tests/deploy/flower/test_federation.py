"""A federation of processes trains on the digits, whatever ends in the middle."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from tests.processes import ROOT
from tests.shell import Shell

flwr = pytest.importorskip("flwr", reason="needs tffc[flower]")

from tests.deploy.flower.processes import (  # noqa: E402  # after the skip
    WAIT,
    Federation,
    arrays,
    check_alike,
    rows,
    started,
    wait_for,
)

pytestmark = pytest.mark.long

DIGITS = str(ROOT / "examples/digits/train")
TRAINING = f"{ROOT / 'examples/digits/federated_averaging.py'}:training"
BUFFERED = f"{ROOT / 'examples/digits/buffered.py'}:training"
QUANTILES = f"{ROOT / 'examples/quantiles/quantiles.py'}:search"
SENSORS = str(ROOT / "examples/temperature/sensors")
VISITS = f"csv:{ROOT / 'examples/quantiles/visits.csv'}?client=person&columns=seconds"


def prepare(folder: pathlib.Path, program: str, form: str, data: str, rounds: int) -> None:
    """Write the app of a program to `app` in a folder, and what local rounds give to `local`."""
    lines = (
        f"cd {folder}",
        f"tffc compile {program} --form {form} --out bundle",
        "tffc export bundle --to flower -o app",
        f"tffc run bundle --data '{data}' --rounds {rounds} --out local",
    )
    ran = Shell(folder / "home").run(" && ".join(lines))
    assert ran.code == 0, ran.output


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the app of the digits, and the state of 20 local rounds."""
    folder = tmp_path_factory.mktemp("work")
    prepare(folder, TRAINING, "mapreduce", DIGITS, 20)
    return folder


@pytest.fixture
def federation(work: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Federation]:
    """Three nodes with a third of the digits each, and one that is always late."""
    with started(tmp_path, DIGITS, is_late=True) as made:
        yield made


def test_twenty_rounds(work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path) -> None:
    federation.kill("late")
    out = tmp_path / "run"
    run = federation.begin(work / "app", rounds=20, min_nodes=3, min_replies=3, out=str(out))
    wait_for("twenty rounds", lambda: len(rows(out)) == 20, 4 * WAIT)
    run.wait(WAIT)
    check_alike(out, work / "local")
    for one, other in zip(rows(out), rows(work / "local"), strict=True):
        assert one["clients"] == 3
        assert one["metrics"]["accuracy"] == pytest.approx(other["metrics"]["accuracy"], abs=0.005)


def test_whatever_ends(work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path) -> None:
    """A node is killed and brought back, one is always late, and the SuperLink is restarted."""
    out = tmp_path / "run"
    settings = {"min_nodes": 3, "min_replies": 2, "timeout": 25, "pause": 1, "attempts": 30}
    run = federation.begin(work / "app", rounds=6, out=str(out), **settings)
    wait_for("a round", lambda: len(rows(out)) >= 1)
    federation.kill("silo-1")
    wait_for("a round without a node", lambda: len(rows(out)) >= 3, 2 * WAIT)
    federation.start_node("silo-1")
    wait_for("another round", lambda: len(rows(out)) >= 4, 2 * WAIT)
    federation.kill("link")
    federation.start_link()
    assert run.wait(WAIT) == 1
    assert "has not completed: finished:failed [E785]" in (tmp_path / "run.log").read_text()
    before = len(rows(out))
    assert before < 6
    federation.begin(work / "app", rounds=7, out=str(out), resume=True, **settings)
    wait_for("all rounds", lambda: len(rows(out)) == 7, 4 * WAIT)
    found = rows(out)
    assert [row["round"] for row in found] == list(range(1, 8))
    assert {row["clients"] for row in found} == {2, 3}, federation.logs()
    assert all(np.isfinite(values).all() for values in arrays(out).values())
    assert found[-1]["metrics"]["accuracy"] > 0.7
    log = (tmp_path / "run.log").read_text()
    assert "late did not answer in time" in log


def test_masked_sums(tmp_path: pathlib.Path) -> None:
    """Flower's own nodes, which sign what they say, add secure sums under masks, exactly."""
    work = tmp_path / "work"
    work.mkdir()
    prepare(work, QUANTILES, "mapreduce", VISITS, 2)
    out = tmp_path / "run"
    settings = {"min_nodes": 3, "min_replies": 3, "secure_sums": "masked"}
    with started(tmp_path, VISITS, supernode=("flower-supernode",)) as federation:
        run = federation.begin(work / "app", rounds=2, out=str(out), **settings)
        wait_for("two rounds", lambda: len(rows(out)) == 2, 2 * WAIT)
        run.wait(WAIT)
    found, expected = rows(out), rows(work / "local")
    assert [row["metrics"] for row in found] == [row["metrics"] for row in expected]
    assert "does not take part" not in (tmp_path / "run.log").read_text()


WARMEST = """\
import numpy as np
import tensorflow as tf

import tffc as tff

READINGS = tff.SequenceType(np.float32)


@tff.tf_computation(READINGS)
def maximum(readings):
    return readings.reduce(np.float32(-np.inf), tf.maximum)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(READINGS))
def warmest(state, readings):
    return tff.federated_map(maximum, readings)
"""


def test_programs_of_the_distribute_aggregate_form(tmp_path: pathlib.Path) -> None:
    prepare(tmp_path, TRAINING, "distribute-aggregate", DIGITS, 2)
    out = tmp_path / "run"
    settings = {"min_nodes": 3, "min_replies": 3}
    with started(tmp_path, DIGITS) as federation:
        run = federation.begin(tmp_path / "app", rounds=2, out=str(out), **settings)
        wait_for("two rounds", lambda: len(rows(out)) == 2, 2 * WAIT)
        run.wait(WAIT)
    check_alike(out, tmp_path / "local")


def test_what_clients_have_after_a_broadcast_stays_at_the_nodes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "warmest.py").write_text(WARMEST)
    prepare(tmp_path, "warmest.py:warmest", "broadcast", SENSORS, 1)
    out = tmp_path / "run"
    with started(tmp_path, SENSORS) as federation:
        run = federation.begin(tmp_path / "app", rounds=1, min_nodes=3, min_replies=3, out=str(out))
        wait_for("a round", lambda: len(rows(out)) == 1)
        run.wait(WAIT)
    kept = {file.name: dict(np.load(file)) for file in tmp_path.glob("kept/*/clients/round-1/*")}
    local = {file.name: dict(np.load(file)) for file in tmp_path.glob("local/clients/round-1/*")}
    assert len(kept) == 12
    assert kept == local
    assert not list(out.glob("clients"))


def test_buffered_rounds(tmp_path: pathlib.Path) -> None:
    """Steps of two nodes; one node is killed in the middle, and one is always late."""
    prepare(tmp_path, BUFFERED, "mergeable", DIGITS, 1)
    out = tmp_path / "run"
    settings = {"min_nodes": 4, "buffer": 2, "in_flight": 4, "timeout": 40, "pause": 1}
    with started(tmp_path, DIGITS, is_late=True) as federation:
        run = federation.begin(tmp_path / "app", rounds=8, out=str(out), attempts=30, **settings)
        wait_for("two rounds", lambda: len(rows(out)) >= 2)
        federation.kill("silo-1")
        wait_for("eight rounds", lambda: len(rows(out)) == 8, 4 * WAIT)
        run.wait(WAIT)
        found = rows(out)
        assert [row["clients"] for row in found] == [2] * 8, federation.logs()
        assert all(len(row["ages"]) == 2 and "simulated" not in row for row in found)
        assert all(0 <= age < row["round"] for row in found for age in row["ages"])
        assert all(np.isfinite(values).all() for values in arrays(out).values())
        assert found[-1]["metrics"]["accuracy"] > found[0]["metrics"]["accuracy"]
