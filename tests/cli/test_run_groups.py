"""`tffc run --groups`."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "data").mkdir()
    for number in range(6):
        values: dict[str, Any] = {"0": np.int32(number)}
        np.savez(tmp_path / "data" / f"c{number}.npz", **values)
    first: dict[str, Any] = {"0": np.int32(0)}
    np.savez(tmp_path / "first.npz", **first)


def test_a_group_that_is_left_out_is_told(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("compile", "round.py", "--form", "mergeable", "--out", "b").code == 0
    common = ("run", "b", "--data", "data", "--rounds", "1", "--state-in", "first.npz")
    whole, grouped = run(*common), run(*common, "--groups", "4")
    assert (grouped.code, grouped.stdout) == (0, whole.stdout)
    some = run(*common, "--groups", "4", "--least-clients", "2", "--skip-bad-groups")
    assert some.code == 0
    assert "(2 clients left out)" in some.stdout
    assert some.stderr.count("is left out: round 1 is not released: it aggregates 1 clients") == 2
