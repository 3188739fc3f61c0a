"""`tffc compile --kernels`: kernels made ahead of the rounds that use them."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

PROGRAM = """\
import numpy as np
import tensorflow as tf
import tffc as tff

NUMBERS = tff.SequenceType(np.float32)


@tff.tf_computation(NUMBERS)
def squares(numbers):
    return numbers.batch(4).reduce(np.float32(0), lambda s, x: s + tf.reduce_sum(x * x))


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(NUMBERS))
def total(state, numbers):
    return state, tff.federated_sum(tff.federated_map(squares, numbers))
"""

COMPILE = ("compile", "program.py:total", "--form", "mapreduce", "--out", "bundle")


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_clients(folder: pathlib.Path, *lengths: int) -> None:
    folder.mkdir()
    for number, length in enumerate(lengths):
        np.savez(folder / f"{number}.npz", np.ones(length, np.float32))


def test_rounds_use_them(run: Run, tmp_path: pathlib.Path) -> None:
    compiled = run(*COMPILE, "--kernels", "3x16")
    assert (compiled.code, compiled.stderr) == (
        0,
        "made 1 kernel, in cache/tffc/kernels\n"
        "  up to 3 clients a call, vectorised over the clients of a batch: sequences in steps of "
        "1 or 2 or 3 or 4 elements\n"
        "wrote bundle: mapreduce, 10 components\n",
    )
    kernels = [*(tmp_path / "cache" / "tffc" / "kernels").iterdir()]
    assert len(kernels) == 1
    write_clients(tmp_path / "data", 9, 0, 3, 2, 4, 5, 6)
    rounds = run("run", "bundle", "--data", "data", "--rounds", "1", "--batching", "3")
    assert rounds.stdout.split() == ["round", "output", "1", "29.00"]
    assert [*kernels[0].parent.iterdir()] == kernels
    # Other rounds make their own.
    write_clients(tmp_path / "shorter", 8, 0, 3, 2, 4, 5, 6)
    assert run("run", "bundle", "--data", "shorter", "--rounds", "1", "--batching", "3").code == 0
    assert len([*kernels[0].parent.iterdir()]) == 2


def test_the_largest_shape_costs_no_more(run: Run) -> None:
    compiled = run(*COMPILE, "--kernels", "9999999x99999")
    assert compiled.code == 0
    assert "up to 32 clients a call" in compiled.stderr


def test_a_cache_that_cannot_be_used_is_refused(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert run(*COMPILE, "--kernels", "3x16").refusal == (
        "error[E706]: no kernels can be kept in cache/tffc/kernels\n"
        " = help: make it a folder that you and nobody else can write to, or choose another by the "
        "environment variable XDG_CACHE_HOME\n"
    )
    assert not (tmp_path / "bundle").exists()
