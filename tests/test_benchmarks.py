"""What measures runs, and its page says what was measured."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import pathlib
from typing import Any

import numpy as np
import pytest

from benchmarks.commands import counts_instructions, python
from benchmarks.experiments import Row
from benchmarks.sides import Figure, Schedule, SideError

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
    pytest.importorskip("matplotlib", reason="the plots of the page need it")
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


@pytest.mark.slow
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
    pytest.importorskip("matplotlib", reason="the plots of the page need it")
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


@pytest.mark.slow
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


FIELD = {"cohort": 3, "rounds": 3, "clients": 5, "dropout": False}


def _small_setting(name: str, **changes: bool) -> Any:
    """Return a setting of small images and a small network."""
    from benchmarks.field.settings import SETTINGS

    setting = SETTINGS[name].changed(**{**FIELD, **changes})
    workload = dataclasses.replace(
        setting.workload, image=(8, 8, 3), filters=(3, 4), widths=(2 * 2 * 4, 6, 5), size=25
    )
    return dataclasses.replace(setting, workload=workload, held_out=50)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["cifar10", "femnist"])
def test_sides_train_the_same_in_the_settings_of_the_field(name: str) -> None:
    pytest.importorskip("jax")
    from benchmarks.field import jax_side, tffc_side
    from benchmarks.field.comparison import SAME, cohorts_of

    setting = _small_setting(name)
    assert (len(set(setting.sizes())) > 1) == (name == "femnist")
    trained: dict[str, list[np.ndarray]] = {}
    accuracies: set[float] = set()
    for module, ways in ((tffc_side, ("tensorflow", "jax")), (jax_side, ("vmap", "scan", "calls"))):
        for way in ways:
            side = module.Side()
            options = {"batching": 3} if module is tffc_side else {}
            side.prepare(way, setting.to_json(), cohorts_of(setting), options)
            side.train(1, setting.rounds)
            trained[f"{module.__name__} {way}"] = side.weights()
            accuracies.add(side.accuracy())
    first = trained.pop("benchmarks.field.tffc_side tensorflow")
    assert np.abs(first[0] - setting.workload.first_weights()[0]).max() > 10 * SAME
    for weights in trained.values():
        for one, other in zip(weights, first, strict=True):
            np.testing.assert_allclose(one, other, atol=SAME)
    assert len(accuracies) == 1


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("way", ["tensorflow", "jax"])
def test_dropout_is_drawn_again_by_the_round_and_the_client(way: str) -> None:
    pytest.importorskip("jax")
    from benchmarks.field import tffc_side
    from benchmarks.field.comparison import cohorts_of

    trained: list[list[np.ndarray]] = []
    for dropout in (False, True, True):
        setting = _small_setting("cifar10", dropout=dropout)
        side = tffc_side.Side()
        side.prepare(way, setting.to_json(), cohorts_of(setting), {})
        trained.append(side.weights())
    without, one, other = trained
    assert np.abs(without[-2] - one[-2]).max() > 1e-3
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["cifar10", "femnist"])
def test_the_settings_of_the_field_have_the_published_networks(name: str) -> None:
    from benchmarks.field.settings import SETTINGS, Setting

    setting = SETTINGS[name]
    parameters = sum(each.size for each in setting.workload.first_weights())
    assert parameters == {"cifar10": 1_626_442, "femnist": 1_206_590}[name]
    assert setting.rounds == 1500
    assert Setting.of_json(json.loads(json.dumps(setting.to_json()))) == setting


def test_the_table_of_the_field_has_ratios_and_says_what_is_left_out() -> None:
    from rich.console import Console

    from benchmarks.field.settings import SETTINGS
    from benchmarks.field.table import FieldRow, table_of

    rows = [FieldRow("tffc", 2.0, (0.5, 0.25, 0.25), 0.9), FieldRow("pfl", 1.0, (1.0,), 0.8, 1e-6)]
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(table_of("cifar10", SETTINGS["cifar10"], rows, {"jax": "no interpreter"}))
    lines = [line.strip("│ ").split("│") for line in console.export_text().splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert ["tffc", "2.0", "250", "200", "3.0", "1.00", "0.900"] in [line[:7] for line in cells]
    assert ["pfl", "1.0", "1,000", "50", "2.0", "4.00", "0.800", "1e-06"] in cells
    assert ["jax", "left out: no interpreter"] in [line[:2] for line in cells]


def test_the_table_of_a_device_has_ratios_to_tffc() -> None:
    from rich.console import Console

    from benchmarks.rounds.device_table import table_of
    from benchmarks.rounds.rows import RoundRow

    rows = [
        RoundRow("L4", "tffc", "memory", Figure((9.0,)), Figure((0.02,)), "0e+00"),
        RoundRow("L4", "jax", "vmap", Figure((9.0,)), Figure((0.03,)), "1e-08"),
    ]
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(table_of("gpu", rows))
    lines = [line.strip("│ ").split("│") for line in console.export_text().splitlines()]
    cells = [[cell.strip() for cell in line][1:] for line in lines]
    assert ["100,000", "tffc, memory", "20", "1.00", "0e+00"] in cells
    assert ["100,000", "jax, vmap", "30", "1.50", "1e-08"] in cells
