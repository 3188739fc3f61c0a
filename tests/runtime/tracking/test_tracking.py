"""Trackers of a run that fail, and names of metrics."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

import pytest

from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.tracked import TRACKED, Tracked, read_tracked
from tffc.runtime.tracking.kind import Ending, RunFacts, TrackerKind
from tffc.runtime.tracking.mlflow import metric_names
from tffc.runtime.tracking.tracking import Tracking, numbers_of

ROWS = [MetricsRow(number, 2, 0, {"loss": number / 4}) for number in range(1, 6)]


@dataclasses.dataclass
class Server:
    """A program that watches runs: what it has, and the calls that it refuses from now on."""

    refused: frozenset[str] = frozenset()
    rounds: list[int] = dataclasses.field(default_factory=list[int])
    begun: list[str | None] = dataclasses.field(default_factory=list[str | None])
    ended: list[tuple[Ending, str | None]] = dataclasses.field(
        default_factory=list[tuple[Ending, str | None]]
    )

    def check(self, call: str) -> None:
        if call in self.refused:
            raise ConnectionError(f"no {call}\nand more about it")

    def load(self) -> type:
        server = self

        class Watcher:
            run, place = "run-7", "http://server/run-7"

            def __init__(self, facts: RunFacts, run: str | None) -> None:
                server.check("begin")
                server.begun.append(run)

            def add(self, round: int, numbers: Mapping[str, float]) -> None:
                server.check(f"round {round}")
                server.rounds.append(round)

            def end(self, ending: Ending, report: str | None) -> None:
                server.check("end")
                server.ended.append((ending, report))

        return Watcher


@dataclasses.dataclass
class Watched:
    """A server, and what is told of it while runs in a folder are tracked."""

    server: Server
    folder: pathlib.Path | None
    told: list[str] = dataclasses.field(default_factory=list[str])

    def track(self, before: list[MetricsRow], rows: list[MetricsRow]) -> None:
        kind = TrackerKind("server", "The server", self.server.load)
        tracking = Tracking([kind], self.folder, self.told.append)
        tracking.begin(RunFacts("name", {}, self.folder), before)
        for row in rows:
            tracking.add(row)
        tracking.end("finished", lambda: "<html>")


@pytest.fixture
def watched(tmp_path: pathlib.Path) -> Watched:
    return Watched(Server(), tmp_path)


def test_a_run_that_is_resumed_continues_there(watched: Watched) -> None:
    watched.track([], ROWS[:2])
    watched.track(ROWS[:2], ROWS[2:])
    assert watched.server.begun == [None, "run-7"]
    assert watched.server.rounds == [1, 2, 3, 4, 5]
    assert watched.server.ended == [("finished", "<html>")] * 2
    assert watched.told == []


def test_a_tracker_that_comes_later_gets_all_rounds(watched: Watched) -> None:
    watched.track(ROWS[:3], ROWS[3:])
    assert watched.server.rounds == [1, 2, 3, 4, 5]


def test_one_that_fails_is_tried_once_more_at_the_end(watched: Watched) -> None:
    watched.server.refused = frozenset({"round 3"})
    watched.track([], ROWS)
    assert watched.server.rounds == [1, 2]
    assert watched.told == [
        "The server fails: ConnectionError: no round 3; the rounds go on without it, and it is "
        "tried again after the last",
        "The server fails: ConnectionError: no round 3; it lacks what came after; resuming the "
        "run sends the rest",
    ]
    watched.server.refused = frozenset()
    watched.track(ROWS, [])
    assert watched.server.rounds == [1, 2, 3, 4, 5]
    assert watched.server.begun == [None, "run-7"]


def test_one_that_cannot_begin_is_begun_at_the_end(tmp_path: pathlib.Path) -> None:
    watched = Watched(Server(frozenset({"begin"})), None)
    watched.track([], ROWS)
    assert [text.partition("; ")[2] for text in watched.told] == [
        "the rounds go on without it, and it is tried again after the last",
        "it has no round",
    ]
    assert watched.server.ended == []


def test_one_that_cannot_end_has_the_rounds(watched: Watched) -> None:
    watched.server.refused = frozenset({"end"})
    watched.track([], ROWS)
    assert watched.server.rounds == [1, 2, 3, 4, 5]
    assert watched.told == [
        "The server fails: ConnectionError: no end; it has the rounds, but not their end"
    ]


DAMAGED = ["", "{", '{"tracker": "server"}', '{"tracker": "server", "run": "../x", "round": 9}']


@pytest.mark.parametrize("line", DAMAGED)
def test_damaged_lines_count_as_none(tmp_path: pathlib.Path, line: str) -> None:
    whole = '{"tracker": "server", "run": "run-7", "round": 2}\n'
    (tmp_path / TRACKED).write_text(f"{whole}{line}\n")
    assert read_tracked(tmp_path) == {"server": Tracked("server", "run-7", 2)}


def test_a_file_that_cannot_be_read_makes_the_run_a_new_one(watched: Watched) -> None:
    assert watched.folder is not None
    (watched.folder / TRACKED).mkdir()
    watched.track(ROWS, [])
    assert watched.server.begun == [None]
    assert len(watched.told) == 1
    assert watched.told[0].endswith("trackers get the run as a new one")


def test_numbers_are_what_is_sent() -> None:
    metrics = {"loss": 0.5, "ok": True, "name": "x", "counts": [1, 2], "last": float("inf")}
    row = MetricsRow(3, 20, 1, metrics, {"loss": None, "accuracy": 1})
    assert numbers_of(row) == {
        "round/clients": 20.0,
        "round/skipped": 1.0,
        "metrics/loss": 0.5,
        "metrics/ok": 1.0,
        "metrics/last": float("inf"),
        "evaluation/accuracy": 1.0,
    }


def test_names_are_as_mlflow_takes_them() -> None:
    names = ["metrics/loss", "metrics/a+b", "metrics/a*b", "metrics/../x", "m" * 300, "m" * 301]
    assert metric_names(dict.fromkeys(names)) == [
        "metrics/loss",
        "metrics/a_b",
        "metrics/a_b_2",
        "metrics_.._x",
        "m" * 250,
        "m" * 238 + "_2",
    ]
