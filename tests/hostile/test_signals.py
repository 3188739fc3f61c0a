"""Signals and full disks in a few commands; `python -m tests.hostile.signals` takes all."""

from __future__ import annotations

import pytest

from tests.hostile import signals
from tests.processes import ROOT, run_python
from tffc.cli.application import COMMANDS

FEW = ("--light", "--only=parse", "--only=data pack", "--only=golden update")


def test_all_commands_are_in_the_table() -> None:
    assert {case.arguments.split()[0] for case in signals.COMMANDS.values()} == set(COMMANDS)


@pytest.mark.long
@pytest.mark.parametrize("trials", ["--kills=1", "--full=1"])
def test_a_few_commands(trials: str) -> None:
    done = run_python("-m", "tests.hostile.signals", *FEW, trials, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("wrong: 0") == 3


@pytest.mark.long
@pytest.mark.parametrize("trials", ["--kills=15", "--full=5"])
def test_all_commands(trials: str) -> None:
    done = run_python("-m", "tests.hostile.signals", trials, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
