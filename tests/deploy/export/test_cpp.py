"""A client in C++ computes what tffc computes, without Python."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.processes import ROOT, run_python
from tffc.backends.bundle.bundle import read_bundle
from tffc.deploy.export.saved_model import FILE, saved_model
from tffc.language import Compiled, FunctionType
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.process import Process
from tffc.runtime.frameworks.sections import run_section

COMPILER = shutil.which("g++")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="needs g++"),
]


PAGE = (ROOT / "docs" / "export.md").read_text()


def block(mark: str, language: str) -> str:
    """The only block of the page after a mark that matches."""
    (found,) = re.findall(rf"<!-- {mark} -->\n```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


BUILDS, RUNS = re.split(
    r"^(?=\./client)", block("not run: a test of .*?", "sh"), flags=re.MULTILINE
)
"""The commands of the page that build the program, and the one that runs it."""


def bash(script: str, folder: pathlib.Path) -> None:
    """Run commands of the page in a folder."""
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(["bash", "-euc", script], cwd=folder, check=True, env=environment)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The program, built as the page says."""
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "examples").symlink_to(ROOT / "examples")
    bash(BUILDS, folder)
    return folder / "client"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, list[str]]:
    """A folder with the digits' SavedModel, a client's input and the expected results; and the
    results' names."""
    folder = tmp_path_factory.mktemp("digits")
    command = ["tffc", "compile", "examples/digits/federated_averaging.py:training"]
    command += ["--form", "mapreduce", "--out", str(folder / "bundle")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    bundle = read_bundle(folder / "bundle")
    process = Process(bundle)
    source = open_source(str(ROOT / "examples/digits/train"), process.data_type)
    _, sent = process.steps.prepare(process.first_state().value)
    work = bundle.components["work"]
    assert isinstance(work, Compiled)
    assert isinstance(work.type, FunctionType)
    assert work.type.parameter is not None
    argument = (source.read(source.clients[3]), sent)
    content, linked = saved_model({"work": work})
    for name in ("model", "in", "want"):
        (folder / name).mkdir()
    (folder / "model" / FILE).write_bytes(content)
    signature = linked.signatures["work"]
    given = ArrayLayout(work.type.parameter).encode(argument, "the argument")
    expected = ArrayLayout(work.type.result).encode(run_section(work, argument), "the result")
    for to, names, arrays in (
        ("in", signature.inputs, given),
        ("want", signature.outputs, expected),
    ):
        for name, array in zip(names, arrays.values(), strict=True):
            np.save(folder / to / f"{name}.npy", array)
    return folder, list(signature.outputs)


def run(client: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [str(client), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_digits(client: pathlib.Path, call: tuple[pathlib.Path, list[str]]) -> None:
    folder, results = call
    ran = run(client, folder / "model", "work", folder / "in", folder / "out")
    assert ran.returncode == 0, ran.stderr
    assert results
    for name in results:
        found, wanted = (np.load(folder / part / f"{name}.npy") for part in ("out", "want"))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_the_commands_of_the_page(
    client: pathlib.Path, call: tuple[pathlib.Path, list[str]], tmp_path: pathlib.Path
) -> None:
    """Its script writes the inputs, and its command runs the program on them, as they stand."""
    for name, place in (("examples", ROOT / "examples"), ("client", client)):
        (tmp_path / name).symlink_to(place)
    (tmp_path / "inputs.py").write_text(block("file: inputs.py", "python"))
    export = ("export", str(call[0] / "bundle"), "--to", "saved_model", "-o", "models/digits/1")
    run_python("-m", "tffc", *export, cwd=tmp_path, check=True)
    run_python("inputs.py", cwd=tmp_path, check=True)
    bash(RUNS, tmp_path)
    names = sorted(file.name for file in (tmp_path / "expected").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "results").iterdir())
    assert names
    for name in names:
        found, wanted = (np.load(tmp_path / part / name) for part in ("results", "expected"))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_what_it_refuses(
    client: pathlib.Path, call: tuple[pathlib.Path, list[str]], tmp_path: pathlib.Path
) -> None:
    folder, _ = call
    assert run(client).stderr.endswith("usage: client MODEL SIGNATURE IN OUT\n")
    assert run(client).returncode == 2
    ran = run(client, folder / "model", "play", folder / "in", tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.endswith(f"error: {folder / 'model'} has no signature play\n")
    shutil.copytree(folder / "in", tmp_path / "in")
    labels = tmp_path / "in" / "arg_0_label.npy"
    np.save(labels, np.load(labels).astype(np.int64))
    ran = run(client, folder / "model", "work", tmp_path / "in", tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.endswith(f"error: {labels} holds <i8, the signature takes <i4\n")
    labels.write_bytes(labels.read_bytes()[:-4])
    np.save(labels, np.zeros([15], np.int32))
    labels.write_bytes(labels.read_bytes()[:-4])
    ran = run(client, folder / "model", "work", tmp_path / "in", tmp_path)
    assert ran.stderr.endswith(f"error: {labels} is cut short\n")
