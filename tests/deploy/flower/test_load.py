"""A federation of processes holds where processes die, a database is locked, or all is slow."""

from __future__ import annotations

import pathlib
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("flwr", reason="needs tffc[flower]")

from tests.deploy.flower.processes import WAIT, Federation, rows, started, wait_for
from tests.deploy.flower.test_federation import DIGITS, TRAINING, prepare

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


def test_a_busy_machine(work: pathlib.Path, federation: Federation, tmp_path: pathlib.Path) -> None:
    """While others use the processors, a message has one process, and rounds go on."""
    out = tmp_path / "run"
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(6)]
    try:
        run = federation.begin(work / "app", rounds=3, min_nodes=3, min_replies=3, out=str(out))
        assert run.wait(4 * WAIT) == 0, federation.logs()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert [row["clients"] for row in rows(out)] == [3] * 3
