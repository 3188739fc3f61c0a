"""Clocks that jump, times of files from other ages, and one processor or two."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import numpy as np
import pytest

from tests.hostile import signals
from tests.hostile.kills import contents
from tests.hostile.tampered_runs import GO_ON, prepared, ran
from tffc.cli import watch as watching
from tffc.cli.runnable import cache_folder
from tffc.language import TensorType
from tffc.runtime.batching.planner import _quotient
from tffc.runtime.data.location import open_source
from tffc.runtime.engines import engine
from tffc.support.errors import DataError

YEARS = 365 * 24 * 3600 * 10**9
AGES = {
    "before 1970": -30 * YEARS,
    "1970": 0,
    "in the future": 10_000_000_000 * 10**9,
}


@pytest.fixture
def jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock find it years away from the last one, back or forth."""
    now = time.time_ns()
    moments = itertools.cycle((now, now - 20 * YEARS, now + 30 * YEARS, 1, now - YEARS))
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    monkeypatch.setattr(time, "time", lambda: next(moments) / 1e9)
    monkeypatch.setattr(watching, "time_ns", time.time_ns)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass, as on a coarse clock."""
    for name in ("perf_counter", "thread_time", "process_time", "monotonic"):
        monkeypatch.setattr(time, name, lambda: 7.0)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    place, _ = prepared("distribute-aggregate")
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    with contextlib.chdir(tmp_path):
        yield tmp_path


def go_on(more: str = "") -> None:
    """Go on with the run, and check that it is what an undisturbed one is."""
    _, whole = prepared("distribute-aggregate")
    done = ran(f"{GO_ON} --resume --plot a.svg --report a.html --explain-speed {more}")
    assert done.exit_code == 0, done.stderr
    assert contents(pathlib.Path("run")) == whole
    assert ran("report run -o b.html").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("batching", ["", "--batching 2"])
@pytest.mark.parametrize("clock", ["jumps", "still"])
def test_runs_need_no_clock(
    request: pytest.FixtureRequest, folder: pathlib.Path, clock: str, batching: str
) -> None:
    request.getfixturevalue(clock)
    go_on(batching)


@pytest.mark.slow
@pytest.mark.parametrize("age", AGES)
def test_files_may_be_of_any_age(folder: pathlib.Path, age: str) -> None:
    for path in folder.rglob("*"):
        os.utime(path, ns=(AGES[age], AGES[age]))
    go_on()


@pytest.mark.parametrize("age", AGES)
def test_data_of_any_age_that_changes_is_noticed(tmp_path: pathlib.Path, age: str) -> None:
    path = tmp_path / "ada.npz"
    np.savez(path, np.int32(1))
    os.utime(path, ns=(AGES[age], AGES[age]))
    source = open_source(tmp_path, TensorType(np.int32))
    np.savez(path, np.int32(2))
    os.utime(path, ns=(AGES[age], AGES[age]))
    with pytest.raises(DataError, match="has changed"):
        source.read("ada")


@pytest.mark.parametrize("age", AGES)
@pytest.mark.usefixtures("jumps")
def test_watching_shows_once_what_does_not_change(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, age: str
) -> None:
    path = tmp_path / "program.txt"
    path.write_text("x")
    os.utime(path, ns=(AGES[age], AGES[age]))
    pauses = iter(range(20))

    def pause(seconds: float) -> None:
        if next(pauses, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching, "sleep", pause)
    shown: list[str] = []
    with pytest.raises(KeyboardInterrupt), click.Context(click.Command("print")):
        watching.watch(str(path), lambda: shown.append(path.read_text()))
    assert shown == ["x"]


@pytest.mark.slow
@pytest.mark.usefixtures("jumps")
def test_a_cache_needs_no_clock(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tffc.cli.runnable import read_runnable

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    pathlib.Path("light.py").write_text(signals.PROGRAM)
    first = read_runnable("light.py:total", "distribute-aggregate").bundle.digests()
    (path,) = cache_folder().iterdir()
    for age in AGES.values():
        os.utime(path, ns=(age, age))
        bundle = read_runnable("light.py:total", "distribute-aggregate").bundle
        assert bundle.digests() == first


def test_no_time_is_divided_by() -> None:
    assert sorted([(1.0, 0.0), (1.0, 2.0), (0.0, 0.0)], key=_quotient)[0] == (1.0, 2.0)


@pytest.mark.parametrize(("count", "expected"), [(None, 1), (1, 1), (2, 2)])
def test_processors(monkeypatch: pytest.MonkeyPatch, count: int | None, expected: int) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert engine.processor_count() == expected


ON = """
import os, sys
count = int(sys.argv.pop(1))
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
os.cpu_count = lambda: count
from tffc.cli import main
main()
"""


def on(processors: int, arguments: str) -> str:
    """What a command prints that has a number of processors."""
    command = [sys.executable, "-c", ON, str(processors), *arguments.split()]
    done = subprocess.run(
        command, env=signals.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_one_processor_computes_what_two_do(folder: pathlib.Path) -> None:
    pathlib.Path("heavy.py").write_text(signals.WITH_TENSORFLOW)
    left, said = [], []
    for processors in (1, 2):
        run = (
            f"run heavy.py:total --data data --rounds 3 --state-in first.npz --out run{processors}"
        )
        said.append((on(processors, run), on(processors, "verify heavy.py:total --trials 3")))
        left.append(contents(pathlib.Path(f"run{processors}")))
    assert left[0] == left[1]
    assert said[0] == said[1]
