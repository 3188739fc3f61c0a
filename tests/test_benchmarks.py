"""What measures runs, and its page says what was measured."""

from __future__ import annotations

import contextlib
import pathlib

import numpy as np
import pytest

from benchmarks.commands import counts_instructions, python
from benchmarks.experiments import Row
from benchmarks.sides import Figure, Schedule, SideError

pytest.importorskip("matplotlib", reason="the plots of the page need it")

FIGURES = {
    ("mapreduce", "chain", 4, "tffc"): (0.001, 0.003, 0.002),
    ("mapreduce", "chain", 4, "peer"): (0.4,),
    ("mapreduce", "chain", 16, "tffc"): (0.008,),
    ("floor", "chain", 4, "floor"): (0.0005,),
    ("proving", "chain", 16, "compile"): (0.002,),
    ("proving", "chain", 16, "prove"): (0.001,),
    ("proving", "chain", 32, "compile"): (0.004,),
    ("proving", "chain", 32, "prove"): (0.002,),
    ("doubling", "doubled struct", 16, "tffc"): (0.002,),
    ("doubling", "doubled struct", 64, "tffc"): (0.008,),
    ("instructions", "tffc compile chain", 16, "tffc"): (500.0,),
    ("instructions", "tffc compile chain", 32, "tffc"): (600.0,),
    ("instructions", "tffc compile chain", 64, "tffc"): (810.0,),
}


def test_the_page_has_medians_spread_ratios_and_growth(tmp_path: pathlib.Path) -> None:
    from benchmarks.report import write_report

    rows = [Row(*key, Figure(runs)) for key, runs in FIGURES.items()]
    page = write_report(rows, tmp_path, versions={}, has_peer=True, runs=3, seconds=60)
    lines = page.read_text().splitlines()
    assert "| program | n | tffc | floor | peer | ratio | doubling |" in lines
    assert "| chain | 4 | 2 ms (1–3) | 0.5 ms | 400 ms | 200 |  |" in lines
    assert "| chain | 16 | 8 ms |  |  |  | 2.00 |" in lines
    assert "| chain | 32 | 4 ms | 2 ms | 0.5 | 2.00 |" in lines
    assert "| doubled struct | 64 | 8 ms | 2.00 |" in lines
    assert "| `tffc compile chain` | 64 | 810 | 210 | 2.10 |" in lines
    assert (tmp_path / "performance" / "mapreduce.svg").is_file()


@pytest.mark.skipif(not counts_instructions(), reason="valgrind counts the instructions")
def test_the_instructions_of_a_command_are_counted() -> None:
    assert python("pass").instructions() < python("import click").instructions()
    with pytest.raises(SideError, match="fails under valgrind"):
        python("raise SystemExit(1)").instructions()


def test_sides_are_measured_in_turn_until_the_budget_is_spent() -> None:
    asked: list[str] = []

    def fails() -> float:
        asked.append("peer")
        raise SideError("no")

    def works() -> float:
        asked.append("tffc")
        return 1.0

    figures = Schedule(runs=2, budget=60).alternate({"tffc": works, "peer": fails})
    assert asked == ["tffc", "peer", "tffc"]
    assert figures == {"tffc": Figure((1.0, 1.0))}


@pytest.mark.slow
@pytest.mark.tensorflow
def test_the_side_of_tffc_measures_everything(tmp_path: pathlib.Path) -> None:
    from benchmarks.tffc_side import Side

    with contextlib.closing(Side()) as side:
        assert side.trace("chain", 2) > 0
        assert side.compile("mapreduce") > 0
        assert {"read", "verify", "build the form", "write"} < set(side.stages("mapreduce"))
        assert side.floor() > 0
        assert side.compile_doubled(8) > 0
        side.make_large(64)
        side.save(str(tmp_path / "large.pb"))
        assert side.load(str(tmp_path / "large.pb")) > 0
        assert min(side.show(), side.write(), side.parse(), side.verify()) > 0
        side.prepare_round()
        assert side.round(2) > 0


def test_the_page_keeps_one_section_about_rounds(tmp_path: pathlib.Path) -> None:
    from benchmarks.report import write_report
    from benchmarks.rounds.page import write_page
    from benchmarks.rounds.rows import RoundRow

    row = RoundRow("W1", "tffc", "memory", Figure((0.5, 0.01)), Figure((0.02,)), "0e+00")
    other = RoundRow("W1", "jax", "scan", Figure((0.51,)), Figure((0.04,)), "1e-08")
    write_report([], tmp_path, versions={}, has_peer=False, runs=1, seconds=1)
    before = (tmp_path / "performance.md").read_text()
    write_page([row], {"jax": "1"}, 2, tmp_path)
    write_page([row, other], {"jax": "1"}, 2, tmp_path)
    page = write_report([], tmp_path, versions={}, has_peer=False, runs=1, seconds=1)
    text = page.read_text()
    assert text.startswith(before.rstrip())
    assert text.count("## Rounds compared with other libraries") == 1
    assert "| tffc, memory | 255 ms (10–500) | 20 ms (20–20) | 1 | 0e+00 |" in text
    assert "| jax, scan | 510 ms (510–510) | 40 ms (40–40) | 2 | 1e-08 |" in text


@pytest.mark.tensorflow
def test_sides_compute_the_same_rounds(tmp_path: pathlib.Path) -> None:
    from benchmarks.rounds import numpy_side, tffc_side

    found: list[list[np.ndarray]] = []
    for number, (side, way) in enumerate([(tffc_side, "folder"), (numpy_side, "loop")]):
        path = tmp_path / f"{number}.npz"
        made = side.Side()
        made.prepare(way, "W1", 0.0, str(path))
        assert min(made.round(way, "W1")) > 0
        with np.load(path) as file:
            found.append([file[name] for name in file.files])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
