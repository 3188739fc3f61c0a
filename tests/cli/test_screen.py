"""Output on terminals: lines fit the width, and colours are legible."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from tests.cli.terminal import on_terminal, seen
from tests.cli.test_help import COMMANDS
from tffc.cli import screen
from tffc.cli.application import application
from tffc.cli.screen import cells, cut, wrapped, wrapped_lines
from tffc.language.notation import parse, typed

Write = Callable[[str, str], pathlib.Path]

WIDE = """\
import numpy as np
import tffc as tff

NAMES = [f"a_feature_of_number_{number:02}" for number in range(9)]
WIDE = tff.to_type([(name, (np.float32, [784, 10])) for name in NAMES])

@tff.federated_computation(tff.types.at_server(WIDE), tff.types.at_clients(WIDE))
def wide(state, data):
    return state, tff.federated_mean(data)

@tff.federated_computation(tff.types.at_server(WIDE), tff.types.at_clients(np.float32))
def other(state, data):
    _ = "a line that is long before"; return tff.federated_mean(data), ("and", "after it", 1)[2]
"""
"""A round of long types, and one that no form takes, on a long line."""


def printed(*command: str, folder: pathlib.Path, columns: int) -> list[str]:
    return seen(on_terminal(*command, folder=folder, columns=columns))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 200])
def test_nothing_is_wider_than_the_terminal(
    columns: int, run: Run, write: Write, tmp_path: pathlib.Path
) -> None:
    write("wide.py", WIDE)
    write("readings.csv", "client,reading\nada,1\n")
    assert run("trace", "wide.py:wide", "-o", "wide.pb").code == 0
    assert run("trace", "wide.py:other", "-o", "other.pb").code == 0
    shown = [
        printed(*command.split(), folder=tmp_path, columns=columns)
        for command in (
            "print wide.pb --style typed",
            "print wide.pb",
            "trace wide.py:wide -o again.pb",
            "check wide.py:other --form mapreduce",
            "diff wide.pb other.pb",
            "data describe csv:readings.csv --for wide.pb",
        )
    ]
    assert [line for lines in shown for line in lines if cells(line) > columns] == []
    typed_text, _, traced, refused, *_ = shown
    assert parse("\n".join(typed_text)) == parse(typed(parse("\n".join(typed_text))))
    assert len(traced) == 1
    assert traced[0].endswith("…")
    carets = next(line for line in refused if "^" in line)
    marked = refused[refused.index(carets) - 1]
    assert marked[carets.index("^") : carets.rindex("^") + 1] == "tff.federated_mean(data)"


def test_a_refusal_at_eighty_columns(write: Write, tmp_path: pathlib.Path) -> None:
    write("wide.py", WIDE.replace("range(9)", "range(2)"))
    found = printed("check", "wide.py:other", "--form", "mapreduce", folder=tmp_path, columns=80)
    assert found == [
        "error[E495]: the new state of a round is of type `float32`, the state before it",
        "    of type `<a_feature_of_number_00=float32[784,10],",
        "    a_feature_of_number_01=float32[784,10]>`",
        "  --> wide.py:13:46",
        "   |",
        '13 | ... long before"; return tff.federated_mean(data), ("and", "after it", 1...',
        "   |                          ^^^^^^^^^^^^^^^^^^^^^^^^",
        "   |",
        "   = help: the new state goes into the next round: give it the type and the",
        "           names that the state has",
        "   = explain: tffc explain E495",
    ]


@pytest.mark.slow
def test_colours_are_left_out_where_they_are_not_wanted(
    write: Write, tmp_path: pathlib.Path
) -> None:
    write("wide.py", WIDE)
    write("readings.csv", "client,reading\nada,1\n")
    for command in (
        "check wide.py:other --form mapreduce",
        "data describe csv:readings.csv --for wide.py:wide",
    ):
        assert "\x1b[38;5;" in on_terminal(*command.split(), folder=tmp_path)
        plain = on_terminal(*command.split(), folder=tmp_path, NO_COLOR="1")
        assert re.findall(r"\x1b\[[0-9;]*m", plain) == []


def luminance(color: int) -> float:
    """Return the relative luminance, as in WCAG 2, of a colour of the 256-colour palette."""
    parts = [(0, 95, 135, 175, 215, 255)[(color - 16) // base % 6] / 255 for base in (36, 6, 1)]
    linear = [p / 12.92 if p <= 0.04 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


@pytest.mark.parametrize("color", [screen.RED, screen.GREEN, screen.BLUE, screen.AMBER])
def test_colours_stand_out_from_white_and_from_black(color: int) -> None:
    """The contrast is at least 3 to 1, as WCAG requires for large text."""
    found = luminance(color)
    assert min(1.05 / (found + 0.05), (found + 0.05) / 0.05) >= 3


def test_no_colour_is_one_that_themes_change(write: Write, tmp_path: pathlib.Path) -> None:
    write("wide.py", WIDE)
    args = ["check", str(tmp_path / "wide.py:other"), "--form", "mapreduce"]
    shown = CliRunner().invoke(application, args, color=True).stderr
    assert set(re.findall(r"\x1b\[([0-9;]*)m", shown)) == {"0", "1", "38;5;160", "38;5;32"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_eighty_columns(name: str) -> None:
    settings = {**application.context_settings, "terminal_width": 80}
    context = click.Context(COMMANDS[name], info_name=name, **settings)
    lines = COMMANDS[name].get_help(context).splitlines()
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("a line that fits", 16, ["a line that fits"]),
        ("one two three", 8, ["one two", "  three"]),
        ("`<aa=int32[1,2],bb=int32>` is", 16, ["`<aa=int32[1,2],", "  bb=int32>` is"]),
        ("<ab=float32>@SERVER=sum", 12, ["<ab=float32>", "  @SERVER=", "  sum"]),
        ("abcdefghij", 4, ["abcd", "  ef", "  gh", "  ij"]),
        ("表表表", 4, ["表表", "  表"]),
        ("    deep in", 8, ["    deep", "  in"]),
    ],
)
def test_lines_are_broken_between_pieces(line: str, width: int, expected: list[str]) -> None:
    assert wrapped(line, width, "  ") == expected
    assert wrapped(line, None, "  ") == [line]


def test_comments_stay_comments() -> None:
    text = "; prepare: (<a=int32,b=int32> -> <>)\ncomp#1"
    assert list(wrapped_lines(text, 24)) == [
        "; prepare: (<a=int32,",
        ";     b=int32> -> <>)",
        "comp#1",
    ]


def test_what_is_cut_says_so() -> None:
    assert [cut("表表x", width) for width in (None, 5, 4, 3)] == ["表表x", "表表x", "表…", "表…"]
