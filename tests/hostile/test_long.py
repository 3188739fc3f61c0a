"""A few cases of the long run; `python -m tests.hostile.long` makes the whole."""

from __future__ import annotations

import subprocess

import pytest

from tests.processes import ROOT, run_python

pytestmark = pytest.mark.slow

FAILING = """\
import os
from tests.hostile.long import GIB, Generator, run_cases

def run(seed, case):
    if case == 1:
        os._exit(0)
    if case == 3:
        return bytes(8 * GIB) == seed
    return 1 / (case - 5) > seed

print(list(run_cases(Generator(run, 8), 0, 0, 8).failed))
"""


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, for the run forks."""
    return run_python(*arguments, cwd=ROOT)


def test_a_few_cases_of_each_generator() -> None:
    only = ("messages", "npz", "requests", "packs", "run-folders", "reader-graph")
    done = ran(
        "-m", "tests.hostile.long", "--cases=2", "--first=1", *(f"--only={name}" for name in only)
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(" read, ")[1][:9] for line in done.stdout.splitlines()] == [
        "0 failed "
    ] * len(only)


def test_failures_are_told() -> None:
    done = ran("-c", FAILING)
    assert done.stdout == "[1, 3, 5]\n", done.stdout + done.stderr
    assert "MemoryError" in done.stderr
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.long
def test_the_long_run() -> None:
    done = ran("-m", "tests.hostile.long")
    assert done.returncode == 0, done.stdout + done.stderr
