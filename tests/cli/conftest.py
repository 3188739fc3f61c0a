"""Fixtures of the tests of the command line: a runner in a temporary folder, and real programs."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from tests.processes import ENVIRONMENT as ENVIRONMENT
from tests.processes import ROOT
from tffc.cli.application import application

ROUND = """\
import numpy as np
import tffc as tff


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(state, data):
    return state, tff.federated_sum(data)
"""
"""A round that needs no TensorFlow to be traced and compiled."""


EXPLAIN = re.compile(r"^ *= explain: tffc explain E\d{3}\n", re.MULTILINE)
"""The last line of every error, which `test_explain` holds; other tests leave it out."""


@dataclasses.dataclass(frozen=True)
class Ran:
    """The exit code and output of a command, without the lines of `EXPLAIN`."""

    code: int
    stdout: str
    stderr: str

    @property
    def refusal(self) -> str:
        """The message of a command that refused."""
        assert (self.code, self.stdout) == (1, "")
        return self.stderr


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in the test's own folder, and removes the folder's name from the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(*args: str, input: bytes | None = None) -> Ran:
        result = CliRunner(catch_exceptions=False).invoke(application, args, input=input)
        return Ran(
            result.exit_code,
            result.stdout_bytes.decode(errors="replace"),
            EXPLAIN.sub("", result.stderr.replace(f"{tmp_path}/", "")),
        )

    return invoke


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Callable[[str, str], pathlib.Path]:
    """Writes a text file into the test's own folder."""

    def write_text(name: str, text: str) -> pathlib.Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


@pytest.fixture(scope="session")
def temperature(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The bundle of the temperature example whose state is a threshold."""
    return _compile(tmp_path_factory, "examples/temperature/temperature.py:share_over_threshold")


def _compile(factory: pytest.TempPathFactory, target: str) -> pathlib.Path:
    path = factory.mktemp("bundle")
    args = ["compile", str(ROOT / target), "--form", "mapreduce", "--out", str(path)]
    result = CliRunner(catch_exceptions=False).invoke(application, args)
    assert result.exit_code == 0, result.stderr
    return path
