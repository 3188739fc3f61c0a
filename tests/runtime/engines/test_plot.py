"""Pictures of metrics: axes with nice numbers and names, whatever the numbers are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.plot import plot

LARGEST = 1.7976931348623157e308


def texts(values: list[float], first: int = 1) -> list[str]:
    """Return the texts in the picture of a metric `x`, with values in rounds from `first` on."""
    rows = [MetricsRow(first + i, 1, 0, {"x": value}) for i, value in enumerate(values)]
    return [each.text or "" for each in ElementTree.fromstring(plot(rows)).iter() if each.text]


def numbers(values: list[float], first: int = 1) -> list[str]:
    return [text for text in texts(values, first) if re.fullmatch(r"[-+.e\d]+", text)]


def test_axes_have_names_and_ticks_at_nice_numbers() -> None:
    found = [text for text in texts([0.31, 0.52, 0.98]) if text.strip() and "{" not in text]
    up, across = ["0.2", "0.4", "0.6", "0.8", "1"], ["1", "2", "3"]
    assert found == ["Metrics by round", "x", *up, *across, "round", "x"]


def test_ticks_of_an_axis_are_written_alike() -> None:
    assert numbers([7000.0, 12000.0])[:-2] == ["7000", "8000", "9000", "10000", "11000", "12000"]
    assert numbers([0.0, 5e-6])[:-2] == ["0", "2e-06", "4e-06", "6e-06"]


def test_an_evaluation_shares_the_panel_of_its_name() -> None:
    rows = [MetricsRow(n, 1, 0, {"loss": 1.0}, {"loss": 0.5, "other": 1.0}) for n in (1, 2)]
    picture = plot(rows)
    assert picture.count('"curve curve-1"') == 1
    for text in ("rounds", "evaluation", "evaluation.other"):
        assert f">{text}<" in picture
    assert ">evaluation.loss<" not in picture


def test_rounds_are_whole() -> None:
    assert numbers([1.0, 2.0] * 20, first=11)[-4:] == ["20", "30", "40", "50"]


@pytest.mark.parametrize(
    "values",
    [
        [0.225],
        [0.0, 0.0],
        [LARGEST, LARGEST],
        [-LARGEST, LARGEST],
        [0.0, 5e-324],
        [1e16, 1e16 + 2],
        [1.0, 1.0 + 2**-52],
    ],
)
def test_any_numbers_can_be_drawn(values: list[float]) -> None:
    labels = numbers(values)
    assert len(labels) >= 2
    assert all(label not in ("nan", "inf") for label in labels)
    rows = [MetricsRow(i + 1, 1, 0, {"x": value}) for i, value in enumerate(values)]
    for y in re.findall(r'cy="([^"]+)"', plot(rows)):
        assert 60 <= float(y) <= 220


def test_a_run_without_numbers_says_so() -> None:
    assert "No round has put out a number" in plot([MetricsRow(1, 1, 0, {})])
