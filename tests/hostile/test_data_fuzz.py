"""A short run of damaged data files; `python -m tests.hostile.data_fuzz` makes a long one."""

from __future__ import annotations

import collections
import pathlib

import pytest

from tests.hostile.data_fuzz import DEFECT, FINE, MUTATIONS, REFUSED, mutated_files, read

CASES = {"npz": 150, "csv": 100, "parquet": 60, "tfrecord": 80}


@pytest.mark.parametrize("kind", MUTATIONS)
def test_damaged_files_are_read_or_refused(
    kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = collections.Counter(read(kind, each) for each in mutated_files(kind, 1, CASES[kind]))
    assert found[DEFECT] == 0
    assert min(found[FINE], found[REFUSED]) > 0
