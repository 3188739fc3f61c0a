"""What is published: tffc, and tffc-reader, which is the same without TensorFlow."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from typing import Any

import pytest

from tests.processes import ROOT

READS = """\
tffc --version
tffc print round.pb
tffc check round.pb --form mapreduce
tffc compile round.pb --form mapreduce --out build/round
tffc audit build/round
tffc prove build/round
tffc diff round.pb round.pb
tffc decompile build/round --out back.pb
tffc explain E471
tffc help forms
tffc doctor
"""

LARGEST_READER = 200_000_000
"""The most bytes that an environment with tffc-reader may take, pip included."""


def project(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_reader_needs_what_tffc_needs_but_tensorflow() -> None:
    needed = project(".")["dependencies"]
    assert project("reader")["dependencies"] == [
        each for each in needed if not each.startswith("tensorflow")
    ]


@pytest.mark.parametrize(
    "key", ["requires-python", "license", "scripts", "entry-points", "dynamic"]
)
def test_the_reader_is_offered_as_tffc_is(key: str) -> None:
    assert project("reader")[key] == project(".")[key]


def test_all_extras_are_in_all() -> None:
    extras = project(".")["optional-dependencies"]
    (named,) = extras["all"]
    apart = {"all", "benchmarks", "dev", "docs", "nvflare", "test"}
    assert sorted(re.findall(r"\w+", named)[1:]) == sorted(extras.keys() - apart)


def run(*arguments: str, cwd: pathlib.Path, path: str | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        arguments,
        cwd=cwd,
        env={**env, "PATH": path or env["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[pathlib.Path]:
    """Two copies of what git knows of, in folders of different names and times."""
    listed = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    copies = [tmp_path_factory.mktemp(name) for name in ("one", "another")]
    for copy in copies:
        for name in filter(None, listed):
            if (ROOT / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, copy / name)
    return copies


@pytest.fixture(scope="module")
def built(copies: list[pathlib.Path]) -> list[pathlib.Path]:
    """The folders of what is built from each copy: a source archive and two wheels."""
    pytest.importorskip("build", reason="needs the package build")
    folders: list[pathlib.Path] = []
    for copy in copies:
        build = (sys.executable, "-m", "build", "--outdir", "dist")
        run(*build, ".", cwd=copy)
        run(*build, "--wheel", "reader", cwd=copy)
        folders.append(copy / "dist")
    return folders


@pytest.mark.long
def test_the_same_bytes_each_time(built: list[pathlib.Path]) -> None:
    one, another = (
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
        for folder in built
    )
    assert len(one) == 3
    assert one == another


@pytest.mark.long
def test_all_that_is_needed_is_inside(built: list[pathlib.Path]) -> None:
    for wheel in built[0].glob("*.whl"):
        names = set(zipfile.ZipFile(wheel).namelist())
        tracked = run("git", "ls-files", "tffc", cwd=ROOT).split()
        # The source of the explorer's page is not needed where the page is.
        assert {name for name in tracked if "/explorer/web/" not in name} <= names
        assert {"tffc/docs/forms.md", "tffc/py.typed"} <= names
        assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
    (source,) = built[0].glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert any(name.endswith("/golden/golden.yaml") for name in archive.getnames())


@pytest.mark.long
def test_a_reader_reads_without_tensorflow(
    built: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    (wheel,) = built[0].glob("tffc_reader*.whl")
    run(str(python), "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    shutil.copyfile(ROOT / "examples/temperature/temperature.py", tmp_path / "temperature.py")
    trace = ("trace", "temperature.py:mean_temperature", "--out", "round.pb")
    run(sys.executable, "-m", "tffc", *trace, cwd=tmp_path)
    path = f"{python.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    said = run("bash", "-euc", READS, cwd=tmp_path, path=path)
    assert "proved" in said
    assert "tensorflow" not in said.partition("needed\n")[2]
    data = str(ROOT / "examples/temperature/sensors")
    refused = subprocess.run(
        [python.parent / "tffc", "run", "build/round", "--data", data, "--rounds", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "pip install tensorflow" in refused.stderr
    files = (tmp_path / "env").rglob("*")
    assert sum(file.lstat().st_size for file in files) < LARGEST_READER
