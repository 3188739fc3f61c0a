"""Which data set a text names."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.runtime.data.location import open_data
from tffc.support.errors import DataError


@pytest.mark.parametrize("prefix", ["", "npz:"])
def test_a_folder(tmp_path: pathlib.Path, prefix: str) -> None:
    np.savez(tmp_path / "ada.npz", np.zeros(3, np.int32))
    data = open_data(f"{prefix}{tmp_path}")
    assert data.clients == ("ada",)
    assert data.kinds() == {"arr_0": "int32[3]"}


def test_a_folder_with_a_colon_in_its_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run:one").mkdir()
    np.savez(tmp_path / "run:one" / "ada.npz", np.int32(0))
    assert open_data("run:one").clients == ("ada",)


def test_an_unknown_kind_is_refused() -> None:
    assert refusal(DataError, open_data, "sql:visits") == (
        "sql:visits: there is no kind of data called 'sql' [E670]\n"
        "  help: give the path of a folder with .npz files, or one of npz, "
        "tfrecord, csv, parquet, packed, python before the colon"
    )


def test_an_unknown_option_is_refused() -> None:
    assert refusal(DataError, open_data, "python:clients.py:make?user=ada") == (
        "python:clients.py:make?user=ada: 'user=ada' is not an option [E639]\n"
        "  help: this kind of data takes no options"
    )
