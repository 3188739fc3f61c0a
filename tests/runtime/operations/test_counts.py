"""Counts add up over processes and threads, and stop no round."""

from __future__ import annotations

import concurrent.futures
import json
import logging
import pathlib

import pytest

from tests.processes import ENVIRONMENT, run_python
from tffc.runtime.operations import counts
from tffc.runtime.operations.counts import (
    FILE,
    VARIABLE,
    count_admission,
    count_bytes,
    count_refusal,
    count_repeat,
    count_round,
    read_counts,
)
from tffc.support.errors import DataError


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder that the environment names, which is not there yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "metrics"))
    counts._warn.cache_clear()
    return tmp_path / "metrics"


def test_everything_that_happens_is_counted(folder: pathlib.Path) -> None:
    count_round(7, 2.5, clients=20)
    count_round(8, 0.25, clients=19, left_out=1)
    count_repeat()
    count_bytes(sent=100)
    count_bytes(received=30, sent=1)
    count_admission(is_admitted=True)
    count_admission(is_admitted=False)
    content = dict(read_counts(folder))
    assert content.pop("last_round_time_seconds")[""] > 1.7e9
    assert content == {
        "rounds": {"finished": 2, "repeated": 1},
        "clients": {"took_part": 39, "left_out": 1},
        "round_seconds": {
            **dict.fromkeys(("3.0", "10.0", "30.0", "100.0", "300.0", "1000.0"), 2),
            "3000.0": 2,
            "+Inf": 2,
            "sum": 2.75,
            "0.3": 1,
            "1.0": 1,
        },
        "last_round": {"": 8},
        "message_bytes": {"sent": 101, "received": 30},
        "admissions": {"admitted": 1, "refused": 1},
    }


def test_codes_of_refusals_are_codes(folder: pathlib.Path) -> None:
    for code in ("E763", "E763", "E880", "E1234", "a stranger's text", "E٧٦٣", ""):
        count_refusal(code)
    assert read_counts(folder) == {"refusals": {"E763": 2, "E880": 1, "other": 4}}


def test_nothing_is_written_where_nobody_asks(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    count_round(1, 1, 1)
    assert list(tmp_path.iterdir()) == []


def test_threads_and_processes_add_to_the_same_counts(folder: pathlib.Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(100):
            pool.submit(count_repeat)
    text = "from tffc.runtime.operations.counts import *\nfor _ in range(10): count_repeat()"
    run_python("-c", text, env={**ENVIRONMENT, VARIABLE: str(folder)}, check=True)
    assert read_counts(folder) == {"rounds": {"repeated": 110}}
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_only_the_user_may_read_them(folder: pathlib.Path) -> None:
    count_repeat()
    assert folder.stat().st_mode & 0o077 == 0


def test_counting_where_nobody_can_write_is_said_once(
    folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("no folder")
    with caplog.at_level(logging.WARNING, "tffc"):
        count_repeat()
        count_repeat()
    assert caplog.messages == [f"{folder}: nothing is counted: File exists"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "it is no object"),
        ('{"guesses": {}}', "'guesses' is nothing that is counted"),
        ('{"rounds": 3}', "'rounds' is nothing that is counted"),
        ('{"rounds": {"won": 3}}', "'won' of 'rounds' is no count"),
        ('{"rounds": {"finished": -1}}', "'finished' of 'rounds' is no count"),
        ('{"rounds": {"finished": true}}', "'finished' of 'rounds' is no count"),
        ('{"last_round": {"x": 1}}', "'x' of 'last_round' is no count"),
    ],
)
def test_damaged_counts_are_refused_and_begin_again(
    folder: pathlib.Path, content: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    (folder / FILE).write_text(content)
    with pytest.raises(DataError) as refused:
        read_counts(folder)
    assert refused.value.code == "E894"
    assert refused.value.message == f"{folder / FILE} does not hold counts of tffc: {why}"
    with caplog.at_level(logging.WARNING, "tffc"):
        count_repeat()
    assert caplog.messages == [f"{refused.value.message}; counting begins again"]
    assert json.loads((folder / FILE).read_bytes()) == {"rounds": {"repeated": 1}}


def test_a_file_that_is_no_json_is_refused(folder: pathlib.Path) -> None:
    folder.mkdir()
    (folder / FILE).write_bytes(b"\0")
    with pytest.raises(DataError, match="E894"):
        read_counts(folder)
