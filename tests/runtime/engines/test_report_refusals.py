"""What the report of a run refuses."""

from __future__ import annotations

import pathlib

import pytest

from tffc.runtime.runs.report import read_report
from tffc.support.errors import DataError


def test_a_folder_without_a_run(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match="is not the folder of a run") as error:
        read_report(tmp_path)
    assert error.value.code == "E856"
