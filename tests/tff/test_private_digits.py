"""The example that trains with TFF's own library, from its module to a bundle to rounds."""

from __future__ import annotations

import csv
import pathlib
import subprocess

import pytest

from tests.processes import run_python
from tests.tff.wheel import has_wheel, needs_wheel

pytestmark = pytest.mark.slow

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
TRAINING = f"{EXAMPLES}/tff_learning/private_digits.py:training"


def tffc(folder: pathlib.Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "tffc", *args, cwd=folder)


@pytest.mark.tensorflow
@needs_wheel
def test_it_learns(tmp_path: pathlib.Path) -> None:
    made = tffc(tmp_path, "compile", TRAINING, "--form", "mapreduce", "--out", "bundle")
    assert made.returncode == 0, made.stderr
    rounds = ("--rounds", "12", "--clients-per-round", "20", "--log", "csv")
    ran = tffc(tmp_path, "run", "bundle", "--data", f"{EXAMPLES}/digits/train", *rounds)
    assert ran.returncode == 0, ran.stderr
    rows = list(csv.DictReader(ran.stdout.splitlines()))
    accuracy = [float(row["metrics.client_work.train.accuracy"]) for row in rows]
    assert len(accuracy) == 12
    assert accuracy[-1] > 0.5
    assert accuracy[-1] > accuracy[0] + 0.1


@pytest.mark.skipif(has_wheel(), reason="needs an environment without TFF's wheel")
def test_without_the_wheel_it_says_what_to_install(tmp_path: pathlib.Path) -> None:
    ran = tffc(tmp_path, "check", TRAINING, "--form", "mapreduce")
    assert ran.returncode == 1
    assert "error[E181]: tff.learning is TFF's own, and TensorFlow Federated is not" in ran.stderr
    assert (
        "help: in tffc's checkout: pip install '.[learning]' && pip install --no-deps" in ran.stderr
    )
