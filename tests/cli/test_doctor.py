"""`tffc doctor`: installed packages are compared with requirements."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

from tests.cli.conftest import Run
from tffc.cli.commands import doctor
from tffc.cli.commands.doctor import Needed, packages
from tffc.support.version import VERSION
from tffc.tff import releases


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


@pytest.mark.parametrize(
    ("legacy", "installed", "finding"),
    [
        (
            None,
            {"keras": "3.12.0"},
            "Keras 3, keras 3.12.0; TF_USE_LEGACY_KERAS=1 makes it Keras 2, which needs tf_keras",
        ),
        (
            "0",
            {"keras": "3.12.0", "tf_keras": "2.20.1"},
            "Keras 3, keras 3.12.0; TF_USE_LEGACY_KERAS=1 makes it Keras 2, tf_keras 2.20.1",
        ),
        (
            "1",
            {"keras": "3.12.0", "tf_keras": "2.20.1"},
            "Keras 2, tf_keras 2.20.1, because TF_USE_LEGACY_KERAS is set",
        ),
        (
            "true",
            {"keras": "3.12.0"},
            "missing: it needs tf_keras, because TF_USE_LEGACY_KERAS is set",
        ),
        (None, {}, "missing: it needs keras"),
    ],
)
def test_which_keras_a_program_gets(
    monkeypatch: pytest.MonkeyPatch, legacy: str | None, installed: dict[str, str], finding: str
) -> None:
    monkeypatch.setattr(doctor, "_version", installed.get)
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    if legacy is not None:
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", legacy)
    assert doctor.keras()["finding"] == finding


@pytest.mark.parametrize(
    ("installed", "finding", "elsewhere"),
    [
        (
            None,
            "not installed: tff.learning and others need its files; tffc explain E181",
            "elsewhere nothing",
        ),
        (
            releases.Libraries("there", "0.87.0", releases.WHEEL),
            "0.87.0: its libraries, such as tff.learning, run on tffc",
            "elsewhere the installed package",
        ),
        (
            releases.Libraries("there", "0.86.0", None),
            "0.86.0: its libraries do not run on tffc; tffc explain E181",
            "elsewhere the installed package",
        ),
    ],
)
def test_what_the_name_of_tff_gives(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    installed: releases.Libraries | None,
    finding: str,
    elsewhere: str,
) -> None:
    monkeypatch.setattr(releases, "installed", lambda: installed)
    version = None if installed is None else installed.version
    shown = run("doctor").stdout
    assert f"\n  tensorflow-federated        {finding}\n" in shown
    assert f"in scripts under `tffc python`; {elsewhere}, unless tffc.install_as_" in shown
    assert json.loads(run("doctor", "--json").stdout)["tensorflow_federated"]["version"] == version


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
        "  to fix it: in tffc's checkout: pip install .\n"
        "\n"
        "tffc[beam]\n"
        "  neither-this             -            missing\n"
        "  to fix it: in tffc's checkout: pip install '.[beam]'\n"
    )
