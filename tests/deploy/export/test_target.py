"""Folders that exports may be written to."""

from __future__ import annotations

import pathlib

import pytest

from tffc.deploy.export.target import check_target
from tffc.support.errors import ExportError


@pytest.mark.parametrize("kind", ["file", "file in a folder", "empty folder", "link to a folder"])
def test_what_is_not_ours_is_not_replaced(tmp_path: pathlib.Path, kind: str) -> None:
    target, other = tmp_path / "models", tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").touch()
    target.mkdir()
    match kind:
        case "file":
            (target / "mine").touch()
        case "file in a folder":
            (target / "mine").mkdir()
            (target / "mine" / "a.tflite").touch()
        case "empty folder":
            (target / "mine").mkdir()
        case _:
            (target / "mine").symlink_to(other)
    with pytest.raises(ExportError, match="is in use: it holds mine"):
        check_target(target, replace=True)


def test_ours_are_replaced_when_that_is_asked_for(tmp_path: pathlib.Path) -> None:
    check_target(tmp_path, replace=False)
    (tmp_path / "work.tflite").touch()
    check_target(tmp_path, replace=True)
    with pytest.raises(ExportError, match="already holds models"):
        check_target(tmp_path, replace=False)
