"""Kills at any change to files: what goes on leaves what an undisturbed process leaves."""

from __future__ import annotations

import pytest

from tests.processes import run_python

pytestmark = pytest.mark.slow


def printed(script: str, *arguments: str) -> str:
    ran = run_python("-m", f"tests.hostile.{script}", *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.long
def test_runs_killed_at_each_change() -> None:
    count, _, rest = printed("killed_runs", "local").partition(" ")
    assert rest == "killed, wrong: []\n"
    assert int(count) > 40


@pytest.mark.parametrize("engine", ["local", pytest.param("beam", marks=pytest.mark.long)])
def test_runs_killed_twice(engine: str) -> None:
    assert printed("killed_runs", engine, "4", "1") == "4 killed, wrong: []\n"


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "beam"])
def test_two_hundred_killed_runs(engine: str) -> None:
    assert printed("killed_runs", engine, "200", "2") == "200 killed, wrong: []\n"


@pytest.mark.parametrize("kind", ["exchange", "two-renames"])
def test_bundles_killed_while_they_are_replaced(kind: str) -> None:
    old, new, wrong = printed("killed_bundles", kind).split("; ")
    assert wrong == "wrong: []\n"
    assert int(old) > 5
    assert int(new) > 5
