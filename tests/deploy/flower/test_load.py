"""A federation of processes holds where processes die, a database is locked, or all is slow."""

from __future__ import annotations

import contextlib
import pathlib
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("flwr", reason="needs tffc[flower]")

from tests.deploy.flower.processes import (
    WAIT,
    Federation,
    check_alike,
    rows,
    started,
    wait_for,
)
from tests.deploy.flower.test_federation import DIGITS, QUANTILES, TRAINING, VISITS, prepare
from tests.shell import Shell
from tffc.runtime.runs.observed import read_observed

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the app of the digits."""
    folder = tmp_path_factory.mktemp("work")
    prepare(folder, TRAINING, "mapreduce", DIGITS, 1)
    return folder


@pytest.fixture
def federation(tmp_path: pathlib.Path) -> Iterator[Federation]:
    with started(tmp_path, DIGITS) as made:
        yield made


def processes(word: str) -> list[int]:
    """The processes that run and have a word in their command or in their environment."""
    numbers: list[int] = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            is_zombie = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if word.encode() in said and not is_zombie:
            numbers.append(int(folder.name))
    return numbers


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_node_has_started_ends_with_it(
    how: signal.Signals, work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path
) -> None:
    out = tmp_path / "run"
    federation.begin(work / "app", rounds=50, min_nodes=3, min_replies=2, out=str(out))
    wait_for("a round", lambda: len(rows(out)) >= 1)
    owner = f"TFFC_FLOWER_OWNER={federation.number('silo-1')}\0"
    assert len(processes(owner)) >= 3  # a SuperExec, what it forks from, and a worker
    federation.stop("silo-1", how)
    wait_for("their end", lambda: not processes(owner), 30)


def test_a_run_that_dies_is_said_to(
    work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path
) -> None:
    run = federation.begin(work / "app", rounds=1, min_nodes=5, timeout=3, attempts=1)
    assert run.wait(WAIT) == 1
    log = (tmp_path / "run.log").read_text()
    assert "has not completed: finished:failed [E785]" in log
    assert "3 nodes are there, and a round needs 5 [E770]" in log
    app = federation.begin(tmp_path, rounds=1)
    assert app.wait(WAIT) == 1
    assert "the run has not begun [E785]" in (tmp_path / "run.log").read_text()


def test_a_database_that_is_locked(
    work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path
) -> None:
    """A lock that lasts longer than Flower's own database waits does not end a run."""
    out = tmp_path / "run"
    run = federation.begin(work / "app", rounds=6, min_nodes=3, min_replies=2, out=str(out))
    wait_for("a round", lambda: len(rows(out)) >= 1)
    with sqlite3.connect(tmp_path / "link.db", isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        time.sleep(12)
        database.execute("ROLLBACK")
    assert run.wait(2 * WAIT) == 0, federation.logs()
    assert len(rows(out)) == 6
    assert "database is locked" not in (tmp_path / "link.log").read_text()


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Let so many processes use the processors."""
    # They end with the tests, however these end.
    loop = "while kill -0 $PPID; do :; done"
    loops = [subprocess.Popen(["sh", "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def test_a_busy_machine(work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path) -> None:
    """While others use the processors, a message has one process, and rounds go on."""
    out = tmp_path / "run"
    with busy(6):
        run = federation.begin(work / "app", rounds=3, min_nodes=3, min_replies=3, out=str(out))
        assert run.wait(4 * WAIT) == 0, federation.logs()
    assert [row["clients"] for row in rows(out)] == [3] * 3


SILOS = tuple(f"silo-{number}" for number in range(5))
REFUSING = "silo-5"


def test_twenty_masked_rounds_whatever_happens(tmp_path: pathlib.Path) -> None:
    """Sums under masks on a busy machine, where a node refuses, one is late, one is killed and
    comes back, and the SuperLink is killed."""
    work = tmp_path / "work"
    work.mkdir()
    prepare(work, QUANTILES, "mapreduce", VISITS, 20)
    out = tmp_path / "run"
    settings = {"min_nodes": 4, "min_replies": 3, "secure_sums": "masked", "timeout": 40}
    settings |= {"pause": 1, "attempts": 30, "out": str(out)}
    names = (*SILOS, REFUSING)
    with busy(2), started(tmp_path, VISITS, is_late=True, names=names) as federation:
        federation.kill(REFUSING)
        federation.configure(REFUSING, data=str(tmp_path / "nothing"))
        federation.start_node(REFUSING)
        run = federation.begin(work / "app", rounds=20, **settings)

        def wait_for_rounds(count: int) -> None:
            wait_for(f"{count} rounds", lambda: len(rows(out)) >= count, 4 * WAIT)

        wait_for_rounds(1)
        federation.kill("late")
        wait_for_rounds(4)
        federation.kill("silo-3")
        wait_for_rounds(7)
        federation.start_node("silo-3")
        wait_for_rounds(10)
        federation.stop("link", signal.SIGKILL)
        federation.start_link()
        assert run.wait(WAIT) == 1
        assert 10 <= len(rows(out)) < 20
        run = federation.begin(work / "app", rounds=20, resume=True, **settings)
        wait_for_rounds(20)
        assert run.wait(WAIT) == 0, federation.logs()
    found, local = rows(out), rows(work / "local")
    assert [row["round"] for row in found] == list(range(1, 21))
    assert all(3 <= row["clients"] <= 5 for row in found)
    exchanges = [each.exchange for _, each in sorted(read_observed(out).items())]
    for row, exchange in zip(found, exchanges, strict=True):
        assert exchange is not None
        assert len(exchange.clients) == row["clients"]
        assert REFUSING not in exchange.clients
    assert any(row["clients"] == 5 for row in found)
    assert found[-1]["metrics"].keys() == local[-1]["metrics"].keys()


@pytest.mark.parametrize("seed", range(10))
def test_kills_in_the_middle_of_rounds(
    work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path, seed: int
) -> None:
    """Wherever in a round the SuperLink or a node is killed, the result is that of local rounds."""
    moments = random.Random(seed)
    out = tmp_path / "run"
    settings = {"min_nodes": 3, "min_replies": 3, "timeout": 30, "pause": 1, "attempts": 30}
    run: subprocess.Popen[bytes] | None = None
    for victim in ("link", "silo-0", "silo-2", "link"):
        if run is None:
            resume = bool(rows(out))
            run = federation.begin(work / "app", rounds=12, out=str(out), resume=resume, **settings)
        before = len(rows(out))
        wait_for("another round", lambda: len(rows(out)) > before, 2 * WAIT)  # noqa: B023
        time.sleep(moments.uniform(0, 4))
        federation.stop(victim, signal.SIGKILL)
        if victim == "link":
            federation.start_link()
            assert run.wait(WAIT) == 1
            run = None
        else:
            federation.restart_node(victim)
    rounds = len(rows(out)) + 1
    last = federation.begin(work / "app", rounds=rounds, out=str(out), resume=True, **settings)
    assert last.wait(2 * WAIT) == 0, federation.logs()
    lines = (
        f"cd {work} && tffc run bundle --data '{DIGITS}' --rounds {rounds} --out {tmp_path}/same"
    )
    ran = Shell(tmp_path / "shell").run(lines)
    assert ran.code == 0, ran.output
    assert [row["clients"] for row in rows(out)] == [3] * rounds
    check_alike(out, tmp_path / "same")
