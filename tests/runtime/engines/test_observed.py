"""What is seen of rounds is kept beside a run, and nothing depends on it."""

from __future__ import annotations

import pathlib

import pytest

from tests.refusals import refusal
from tffc.runtime.engines.rounds import Round, Spent
from tffc.runtime.engines.state import State
from tffc.runtime.runs.observed import MOST_NAMES, OBSERVED, Observed, add_observed, read_observed
from tffc.support.errors import DataError

FIRST = Observed(1, 0.25, None, 2, {"reading data": 0.125}, ("eve",), "2026-11-28T09:30:00Z")
SECOND = Observed(2, 0.5, 0.0625, None, {}, ())


def test_what_is_added_is_read(tmp_path: pathlib.Path) -> None:
    assert read_observed(tmp_path) == {}
    add_observed(tmp_path, FIRST)
    add_observed(tmp_path, SECOND)
    assert read_observed(tmp_path) == {1: FIRST, 2: SECOND}
    assert (tmp_path / OBSERVED).read_text().splitlines()[0] == (
        '{"round": 1, "seconds": 0.25, "evaluation": null, "workers": 2, '
        '"parts": {"reading data": 0.125}, "skipped": ["eve"], '
        '"at": "2026-11-28T09:30:00Z"}'
    )


def test_a_line_of_an_earlier_version_does_not_say_when(tmp_path: pathlib.Path) -> None:
    line = SECOND.to_json().replace(', "at": null', "")
    assert '"at"' not in line
    (tmp_path / OBSERVED).write_text(line)
    assert read_observed(tmp_path) == {2: SECOND}


def test_of_a_round_that_was_begun_again_the_last_line_counts(tmp_path: pathlib.Path) -> None:
    again = Observed(1, 9.0, None, None, {}, ())
    for each in (FIRST, SECOND, again):
        add_observed(tmp_path, each)
    assert read_observed(tmp_path) == {1: again, 2: SECOND}


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: pathlib.Path) -> None:
    add_observed(tmp_path, FIRST)
    with (tmp_path / OBSERVED).open("a") as file:
        file.write('{"round": 2, "sec')
    assert read_observed(tmp_path) == {1: FIRST}
    add_observed(tmp_path, SECOND)
    assert read_observed(tmp_path) == {1: FIRST, 2: SECOND}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "null",
        '{"round": 1}',
        FIRST.to_json().replace("0.25", "-1"),
        FIRST.to_json().replace("0.25", "1e400"),
        FIRST.to_json().replace("0.25", "NaN"),
        FIRST.to_json().replace("0.25", "true"),
        FIRST.to_json().replace("0.125", '"x"'),
        FIRST.to_json().replace('"workers": 2', '"workers": 0'),
        FIRST.to_json().replace('["eve"]', "[1]"),
        FIRST.to_json().replace('"2026-11-28T09:30:00Z"', '"<b>"'),
        FIRST.to_json().replace('"round": 1', '"round": -1'),
        FIRST.to_json().replace('{"round"', '{"more": 1, "round"'),
    ],
)
def test_lines_that_are_not_ours_are_left_out(tmp_path: pathlib.Path, line: str) -> None:
    (tmp_path / OBSERVED).write_text(f"{line.strip()}\n{SECOND.to_json()}\xff\n", "latin-1")
    assert read_observed(tmp_path) == {2: SECOND}


def test_only_some_clients_are_named() -> None:
    skipped = tuple(f"client {number}" for number in range(1000))
    finished = Round(3, (), State(None, "", 3), None, skipped, spent=Spent(1 / 3))
    seen = Observed.of(finished)
    assert (seen.seconds, len(seen.skipped)) == (0.333333, MOST_NAMES)


def test_what_is_no_file_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / OBSERVED).mkdir()
    assert refusal(DataError, read_observed, tmp_path) == (
        f"cannot read {tmp_path / OBSERVED}: Is a directory [E850]\n"
        "  help: let it be read, or remove it: the report then says nothing of times"
    )
