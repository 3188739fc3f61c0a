"""The rounds whose pages are tested in a browser."""

from __future__ import annotations

import pathlib

from tests.explorer import programs
from tests.explorer.conftest import LATE, ROUND
from tests.processes import ROOT
from tffc.cli.sources import read_round
from tffc.explorer.description import describe
from tffc.explorer.page import page

NAMES = ("sensors", "small", "many", "large", "late")


def write_pages(folder: pathlib.Path) -> None:
    """Write the pages of five rounds: one with functions in graphs, a small one, one of 400 calls,
    one with a graph of 20,000 nodes, and one that is refused."""
    sensors = f"{ROOT}/examples/temperature/temperature.py:mean_temperature"
    rounds = {
        "sensors": read_round(sensors, None).computation,
        "many": programs.many_bindings(),
        "large": programs.large_graph(),
    }
    for name, text in (("small", ROUND), ("late", LATE)):
        (folder / f"{name}.py").write_text(text)
        rounds[name] = read_round(str(folder / f"{name}.py"), None).computation
    for name in NAMES:
        described = describe(rounds[name], "mapreduce", f"{name}.py:round")
        (folder / f"{name}.html").write_text(page(described.plain))
