"""What a round exchanged with nodes is counted, kept with the run, and told by its report."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.deploy.federation.nodes import DEAD, DOUBLED, FAILS, FLOWER, LATE, run
from tests.deploy.federation.test_engine import NAMES, together_of
from tests.runtime.engines.programs import every_aggregation, process_of
from tests.runtime.engines.test_report import after, said
from tffc.deploy.federation.messages import Record
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.rounds import Exchange
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.kept_states import FLOWER as KIND
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.observed import OBSERVED, Observed, add_observed, read_observed
from tffc.runtime.runs.report import RunReport
from tffc.runtime.runs.run_identity import RunIdentity

LATE_WORDS = "it did not answer in time"


def exchange_of(*actions: Mapping[str, str], **settings: Any) -> tuple[Exchange, Any, Any]:
    """What a round exchanged with nodes that do this, the nodes, and the round."""
    process = process_of(every_aggregation, "mapreduce")
    together = together_of(process, *actions)
    (only,) = run(process, together, secure_sums="open", **settings).rounds
    assert only.exchange is not None
    return only.exchange, together, only


def test_all_nodes_answer() -> None:
    exchange, together, only = exchange_of()
    assert exchange.attempts == 1
    assert exchange.sent == sum(record.size for record in together.asked) > 0
    assert exchange.received == sum(record.size for record in together.seen) > 0
    assert exchange.clients.keys() == set(NAMES)
    assert all(count > 0 for count in exchange.clients.values())
    assert exchange.left_out == {}
    assert only.spent.seconds > 0


def test_nodes_that_are_left_out() -> None:
    exchange, _, only = exchange_of({"south": DEAD, "west": FAILS}, min_replies=1)
    assert only.clients == ("north",)
    assert exchange.clients.keys() == {"north"}
    assert exchange.left_out == {
        "south": LATE_WORDS,
        "west": "E763, A message from another version or program",
    }


def test_attempts_add_up_and_the_last_one_says_who_took_part() -> None:
    once, _, _ = exchange_of()
    exchange, _, _ = exchange_of(
        {"south": DEAD, "west": FLOWER}, {"west": LATE, "south": LATE}, min_replies=2
    )
    assert exchange.attempts == 3
    assert exchange.sent == 3 * once.sent
    assert exchange.clients == once.clients
    assert exchange.left_out == {}


def test_an_answer_that_comes_twice_counts_once() -> None:
    once, _, _ = exchange_of()
    twice, _, _ = exchange_of({"south": DOUBLED})
    assert twice.clients == once.clients


def test_the_size_of_a_message() -> None:
    record = Record({"round": 3, "rest": b"RR"}, [np.ones((2, 3), np.float32), np.array(b"abcd")])
    assert record.size == 2 + 24 + 4


SEEN = Observed(
    2, 0.5, None, None, {}, ("eve",), None, Exchange(2, 4096, 20, {"ada": 3}, {"eve": LATE_WORDS})
)


def test_what_is_kept_is_read(tmp_path: pathlib.Path) -> None:
    add_observed(tmp_path, SEEN)
    assert read_observed(tmp_path) == {2: SEEN}
    assert (tmp_path / OBSERVED).read_text() == (
        '{"round": 2, "seconds": 0.5, "evaluation": null, "workers": null, "parts": {}, '
        '"skipped": ["eve"], "at": null, "exchange": {"attempts": 2, "sent": 4096, '
        '"received": 20, "clients": {"ada": 3}, "left_out": {"eve": "it did not answer in time"}}}'
        "\n"
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"attempts": 2', '"attempts": -2'),
        ('"sent": 4096', '"sent": "4096"'),
        ('"received": 20, ', ""),
        ('{"ada": 3}', '{"ada": 3.5}'),
        ('{"ada": 3}', "[3]"),
        (f'"{LATE_WORDS}"', "7"),
        ('"exchange": {', '"exchange": 7, "other": {'),
    ],
)
def test_a_damaged_exchange_is_ignored(right: str, wrong: str, tmp_path: pathlib.Path) -> None:
    line = SEEN.to_json()
    assert right in line
    (tmp_path / OBSERVED).write_text(line.replace(right, wrong))
    assert read_observed(tmp_path) == {}


def a_report(*observed: Observed) -> RunReport:
    source = SourceIdentity(KIND, {"fraction": "1"}, [], {})
    identity = RunIdentity("mapreduce", {"computation": "1" * 64}, Sampling(), False, source)
    rows = [MetricsRow(n, 2, 1, {"loss": 1 / n}) for n in (1, 2)]
    return RunReport.in_memory("run", identity, rows, observed)


def test_a_report_of_a_federation() -> None:
    first = Exchange(1, 2_000_000, 1_500, {"ada": 3, "bob": 4}, {"eve": "<b>E768"})
    observed = dataclasses.replace(SEEN, round=1, exchange=first), SEEN
    words = said(a_report(*observed))
    assert "mapreduce, on nodes of a Flower federation." in words
    assert after(words, "nodes a round") == ["2"]
    assert after(words, "clients a round") == ["3 to 7"]
    assert after(words, "time in all") == ["1 s"]
    assert after(words, "attempts") == ["3"]
    assert after(words, "sent") == ["2 MB"]
    assert after(words, "received") == ["1.52 kB"]
    assert after(words, "Nodes left out", 6) == ["node", "times", "rounds", "eve", "2", "1, 2"]
    table = words[words.index("Exchange with nodes") + 7 :]
    assert table[:7] == ["1", "1", "2 MB", "1.5 kB", "ada: 3", "bob: 4", "eve: <b>E768"]
    assert table[7:13] == ["2", "2", "4.1 kB", "20 bytes", "ada: 3", f"eve: {LATE_WORDS}"]
    assert "0 clients" not in " ".join(words)


def test_a_report_of_a_federation_of_an_earlier_version_does_not_make_up_times() -> None:
    old = [Observed(n, 0.0, None, None, {}, ("eve",), "2026-11-28T09:30:00Z") for n in (1, 2)]
    words = said(a_report(*old))
    for what in ("time in all", "clients a round", "attempts", "sent", "received"):
        assert after(words, what) == ["not known"], what
    assert "How long the rounds took was not kept." in words
    assert "What was exchanged was not kept." in words
    assert after(words, "Nodes left out", 6)[3:] == ["eve", "2", "1, 2"]
    assert "0 ms" not in words
