"""`tffc doctor`: installed packages are compared with requirements."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

from tests.cli.conftest import Run
from tffc.cli.commands.doctor import Needed, packages
from tffc.support.version import VERSION


def test_requirements_are_compared_with_what_is_installed() -> None:
    click, numpy = importlib.metadata.version("click"), importlib.metadata.version("numpy")
    found = packages(
        [
            "numpy>=1.26",
            "click<1",
            "no-such-package>=2; extra == 'beam'",
            'pytest>=8.2 ; extra == "test"',
        ]
    )
    assert found == [
        Needed("click", "<1", click, False, None),
        Needed("numpy", ">=1.26", numpy, True, None),
        Needed("no-such-package", ">=2", None, False, "beam"),
    ]
    assert [each.finding for each in found] == ["does not fit", "ok", "missing"]


def test_all_that_tffc_needs_is_told(run: Run) -> None:
    ran = run("doctor")
    assert ran.code == 0
    assert ran.stdout.startswith(f"tffc        {VERSION}\npython      3.")
    assert "\nneeded\n" in ran.stdout
    assert "\ntffc[beam]\n" in ran.stdout
    assert "tffc[test]" not in ran.stdout


def test_findings_as_json(run: Run) -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert found["tffc"] == VERSION
    tensorflow = next(each for each in found["packages"] if each["name"] == "tensorflow")
    assert tensorflow["finding"] == "ok"
    assert tensorflow["extra"] is None


def test_what_is_missing_ends_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["click>=8", "no-such-package>=2", "neither-this; extra == 'beam'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needed)
    ran = run("doctor")
    assert ran.code == 1
    assert ran.stdout.partition("needed\n")[2] == (
        f"  click                    {importlib.metadata.version('click'):<12} ok"
        "             >=8\n"
        "  no-such-package          -            missing        >=2\n"
        "  to fix it: pip install 'tffc'\n"
        "\n"
        "tffc[beam]\n"
        "  neither-this             -            missing\n"
        "  to fix it: pip install 'tffc[beam]'\n"
    )
