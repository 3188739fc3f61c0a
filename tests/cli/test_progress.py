"""Progress of commands on a terminal, which never shares a line with data."""

from __future__ import annotations

import gzip
import importlib
import pathlib
import re
import threading
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run
from tests.cli.terminal import on_terminal, seen
from tests.processes import ENVIRONMENT, run_python
from tests.records import write_records
from tffc.cli import step_line
from tffc.cli.status_line import DRAW, ERASE, StatusLine
from tffc.runtime.data.location import open_data

Write = Callable[[str, str], pathlib.Path]

TALKING = """\
import os, sys
print("to stdout")
print("to stderr, without an end", end="", file=sys.stderr)
print(", and now with it", file=sys.stderr)
"""

SENSORS = """\
import sys
import numpy as np
import tensorflow as tf
import tffc as tff

def clients():
    return {name: lambda name=name: made(name) for name in "abc"}

def made(name):
    print("reading", name)
    return np.float32(len(name))

@tff.tf_computation(np.float32)
def told(reading):
    tf.print("TensorFlow got", reading)
    tf.print("line two")
    return reading

@tff.tf_computation
def zero():
    return np.float32(0)

@tff.federated_computation
def initialize():
    return tff.federated_eval(zero, tff.SERVER)

@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def next(state, readings):
    mean = tff.federated_mean(tff.federated_map(told, readings))
    return mean, mean

mean = tff.templates.IterativeProcess(initialize, next)
"""


def test_what_is_done_is_told_below_what_is_printed(write: Write, tmp_path: pathlib.Path) -> None:
    write("count.py", TALKING + ROUND)
    arguments = ("compile", "count.py", "--form", "mapreduce", "--out", "count")
    written = on_terminal(*arguments, folder=tmp_path)
    for step in ("tracing count.py", "compiling count.py to mapreduce", "writing count"):
        assert f"{step} · 0:00:0" in written
    assert seen(written) == [
        "to stdout",
        "to stderr, without an end, and now with it",
        "wrote count: mapreduce, 10 components",
    ]


@pytest.mark.slow
def test_rounds_share_no_line_with_anything(write: Write, tmp_path: pathlib.Path) -> None:
    """TensorFlow does not log either, even if the user's module imports it first."""
    write("sensors.py", SENSORS)
    arguments = ("compile", "sensors.py:mean", "--form", "mapreduce", "--out", "mean")
    on_terminal(*arguments, folder=tmp_path)
    data = ("--data", "python:sensors.py:clients", "--workers", "1", "--show-clients")
    written = on_terminal("run", "mean", *data, "--rounds", "2", "--log", "csv", folder=tmp_path)
    assert "checking the data: 0 of 3 clients" in written
    assert re.search(r"round 1 of 2 · 0/3 clients · 0:00:\d\d", written)
    assert re.search(r"round 2 of 2 · [123]/3 clients · [^·]* a second · 0:00:\d\d left", written)
    clients = [
        line for name in "abc" for line in (f"reading {name}", "TensorFlow got 1", "line two")
    ]
    table = [
        "round,clients,skipped,metrics.output",
        "1,3,0,1.0",
        "2,3,0,1.0",
        "the state was not kept; --out DIR or --state-out FILE keeps it",
    ]
    lines = seen(written)
    assert [line for line in lines if line in table] == table
    # The next clients' data may be read before a client is done, or after it.
    texts = ["reading a", "reading b", "reading c", *clients, *clients, *table]
    assert Counter(lines) == Counter(texts)


def test_nothing_is_told_where_nobody_looks(run: Run, write: Write) -> None:
    write("count.py", ROUND)
    ran = run("compile", "count.py", "--form", "mapreduce", "--out", "count")
    assert ran.stderr == "wrote count: mapreduce, 10 components\n"


class Ticks(threading.Event):
    """Time that passes at once, until so many waits have ended."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.waits: list[float | None] = []
        self._count = count

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return len(self.waits) > self._count


def test_in_a_log_a_line_is_told_ever_more_rarely(capsys: pytest.CaptureFixture[str]) -> None:
    lines, ticks = step_line.SeldomLines(), Ticks(9)
    tell = lines.show_step("verifying", "runs")
    tell(3, 4)
    lines.print_steps(ticks)
    assert ticks.waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "verifying: 3 of 4 runs · 0:00:00 left\n" * 9
    lines.show_nothing()
    lines.print_steps(Ticks(9))
    assert capsys.readouterr().err == ""


LOGGED = """\
import sys
from tffc.cli import main, step_line
step_line.FIRST_LINE = 0.001
main()
"""


@pytest.mark.slow
def test_a_log_tells_steps_beside_the_data(write: Write, tmp_path: pathlib.Path) -> None:
    write("count.py", ROUND)
    words = ("-c", LOGGED, "print", "count.py")
    ran = run_python(*words, cwd=tmp_path, env={**ENVIRONMENT, "TFFC_PROGRESS": "on"}, check=True)
    quiet = run_python(*words, cwd=tmp_path, env=ENVIRONMENT, check=True)
    assert ran.stdout == quiet.stdout
    assert re.search(r"^(loading|tracing count.py) · 0:00:\d\d$", ran.stderr, re.MULTILINE)
    assert quiet.stderr == ""


def test_the_time_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_line.time, "monotonic", lambda: 0.0)
    shown, counted = step_line.RoundsStep(3, 6), step_line.CountedStep("verifying", "runs")
    assert "".join(shown.parts()) == "preparing the first round"
    shown.tell(0, 20)
    monkeypatch.setattr(step_line.time, "monotonic", lambda: 10.0)
    assert "".join(shown.parts()) == "round 3 of 6 · 0/20 clients · 0:00:10"
    shown.tell(20, 20)
    shown.tell(0, 20)
    shown.tell(5, 20)
    assert "".join(shown.parts()) == "round 4 of 6 · 5/20 clients · 2.5 a second · 0:00:22 left"
    monkeypatch.setattr(step_line.time, "monotonic", lambda: 3600.0)
    assert "".join(counted.parts()) == "verifying · 1:00:00"
    counted.tell(3, 4)
    assert "".join(counted.parts()) == "verifying: 3 of 4 runs · 0:20:00 left"


def test_rounds_with_other_numbers_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(step_line.time, "monotonic", lambda: now[0])
    shown = step_line.RoundsStep(1, 4)
    shown.tell(0, 30)
    shown.tell(30, 30)
    shown.tell(0, 0)
    now[0] = 110.0
    assert "".join(shown.parts()) == "round 2 of 4 · 0/0 clients · 3 a second · 0:00:10 left"
    shown.tell(0, 6)
    shown.tell(6, 6)
    now[0] = 112.0
    assert "".join(shown.parts()) == "round 3 of 4 · 6/6 clients · 3 a second · 0:00:04 left"


def test_a_line_is_as_wide_as_the_terminal_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import pty

    ours, theirs = pty.openpty()
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((10, 24)))

    def shown(end: bytes) -> list[str]:
        """Return the visible text up to these bytes, which may arrive in parts."""
        written = b""
        while not written.endswith(end):
            written += os.read(ours, 100)
        return seen(written.decode())

    line = StatusLine()
    with line.on(theirs):
        line.draw("twelve chars")
        assert shown(DRAW[-2:].encode()) == ["", "twelve c…"]
        line.draw("twelve chars", " · 3")
        assert shown(DRAW[-2:].encode()) == ["", "twel… · 3"]
        line.draw("short")
    assert shown(ERASE) == [""]
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("compress", [False, True])
def test_a_long_index_is_counted_below_what_is_printed(
    write: Write, tmp_path: pathlib.Path, compress: bool
) -> None:
    rows = "client,reading\n" + "".join(f"{number % 1000},1\n" for number in range(50_000))
    path = write("long.csv", rows)
    if compress:
        path.with_name("long.csv.gz").write_bytes(gzip.compress(rows.encode()))
    write("count.py", TALKING + ROUND)
    source = f"csv:long.csv{'.gz' * compress}"
    arguments = ("data", "describe", source, "--for", "count.py")
    written = on_terminal(*arguments, folder=tmp_path)
    told = re.findall(rf"indexing {source}: (\S+) of (\S+) MB · 0:00:\d\d left", written)
    done = [float(each) for each, total in told if float(total) == round(len(rows) / 1e6, 1)]
    assert len(done) > 3
    assert done == sorted(done)
    assert done[-1] <= float(told[-1][1])
    shown = seen(written)
    assert [line for line in shown if "indexing" in line] == []
    assert f"{source}: 1000 clients" in shown
    assert "to stderr, without an end, and now with it" in shown


def write_many(scheme: str, folder: pathlib.Path) -> str:
    """Write three clients in two files, or one each, and return the location."""
    if scheme == "npz":
        for name in "abc":
            np.savez(folder / f"{name}.npz", x=np.int32(1))
        return str(folder)
    clients = [["a", "b"] * 1000, ["b", "c"] * 1000]
    for number, names in enumerate(clients):
        path = folder / f"{number}.{scheme}"
        if scheme == "tfrecord":
            write_records(path, [{"client": name} for name in names])
        else:
            parquet = importlib.import_module("pyarrow.parquet")
            table = importlib.import_module("pyarrow").table({"client": names})
            parquet.write_table(table, path, row_group_size=500)
    return f"{scheme}:{folder}?client=client"


@pytest.mark.parametrize("scheme", ["npz", "tfrecord", "parquet"])
def test_files_are_counted(scheme: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="an optional package")
    told: list[tuple[int, int, str]] = []
    location = write_many(scheme, tmp_path)
    data = open_data(location, lambda *each: told.append(each))
    assert len(data.clients) == 3
    *_, (done, total, things) = told
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert (done, total, things) == ((3, 3, "files") if scheme == "npz" else (done, size, "bytes"))
    assert 0 < done <= total
    assert [each[0] for each in told] == sorted(each[0] for each in told)
