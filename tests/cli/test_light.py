"""What commands do not load, shown in fresh interpreters."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import ENVIRONMENT, ROUND, Run

HEAVY = ("tensorflow", "jax", "rich", "hypothesis", "pytest")


def loaded(folder: pathlib.Path, code: str) -> set[str]:
    """The packages that a fresh interpreter has loaded after running some code."""
    report = "import sys; print('\\n' + ' '.join({name.split('.')[0] for name in sys.modules}))"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=ENVIRONMENT
    )
    return set(ran.stdout.splitlines()[-1].split())


def command(*args: str) -> str:
    return (
        "from tffc.cli.application import application\n"
        f"application({list(args)!r}, standalone_mode=False)"
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path, run: Run, temperature: pathlib.Path) -> pathlib.Path:
    """A folder with a traced program that holds TensorFlow graphs, `x.pb`."""
    (tmp_path / "x.pb").write_bytes((temperature / "computation.pb").read_bytes())
    (tmp_path / "round.py").write_text(ROUND)
    np.savez(tmp_path / "x.npz", np.zeros([20]))
    shutil.copytree(temperature, tmp_path / "bundle")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "also_absent"),
    [
        ("import tffc", ("numpy", "google", "click")),
        ("import tffc.ir", ("numpy", "google", "click")),
        (command("--help"), ("numpy", "google", "yaml")),
        (command("print", "x.pb", "--sexpr"), ("numpy", "yaml")),
        (command("show", "x.npz"), ()),
        (command("explain", "E471"), ("numpy", "google", "yaml")),
        (command("compile", "x.pb", "--form", "mapreduce", "--out", "out"), ()),
        (command("audit", "x.pb", "--form", "mapreduce"), ()),
        (command("print", "round.py", "--sexpr"), ()),
        (command("prove", "bundle"), ()),
    ],
)
def test_stays_light(folder: pathlib.Path, code: str, also_absent: tuple[str, ...]) -> None:
    assert loaded(folder, code) & {*HEAVY, *also_absent} == set()
