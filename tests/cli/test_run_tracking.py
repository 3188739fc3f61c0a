"""Runs that other programs watch, without a network: what these have afterwards."""

from __future__ import annotations

import gc
import importlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tffc
from tests.cli.conftest import ROUND, Run
from tests.runtime.tracking.stores import mlflow_runs, wandb_runs
from tffc.runtime.tracking.tensorboard import TensorBoard
from tffc.support.errors import TffcError

STATEFUL = ("run", "bundle", "--data", "data", "--state-in", "first.npz")


@pytest.fixture
def place(run: Run, tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the test, with a bundle and the data of two clients."""
    (tmp_path / "round.py").write_text(ROUND)
    assert run("compile", "round.py:count", "--form", "mapreduce", "--out", "bundle").code == 0
    (tmp_path / "data").mkdir()
    for name, number in (("ada", 2), ("bob", 3)):
        np.savez(tmp_path / "data" / f"{name}.npz", np.int32(number))
    first: dict[str, Any] = {"0": np.int32(0)}
    np.savez(tmp_path / "first.npz", **first)
    return tmp_path


@pytest.fixture
def mlflow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a store of MLflow in the folder of the test."""
    pytest.importorskip("mlflow", reason="an optional package")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return uri


@pytest.fixture
def wandb(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The folder of offline runs of Weights & Biases."""
    pytest.importorskip("wandb", reason="an optional package")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    yield tmp_path / "wandb"
    importlib.import_module("wandb").teardown()


def twice(run: Run, tracker: str) -> None:
    """Run two rounds, and resume the run for a third one."""
    out = ("--out", "run", "--track", tracker)
    ran = run(*STATEFUL, "--rounds", "2", *out)
    assert ran.code == 0, ran.stderr
    ran = run("run", "bundle", "--data", "data", "--rounds", "3", *out, "--resume")
    assert (ran.code, ran.stdout) == (0, "round  output\n    3       5\n"), ran.stderr
    assert " has this run: " in ran.stderr


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_has_a_resumed_run_as_one(place: pathlib.Path, run: Run, mlflow: str) -> None:
    twice(run, "mlflow")
    (stored,) = mlflow_runs(mlflow)
    assert (stored.name, stored.status, stored.files) == ("bundle", "FINISHED", ["report.html"])
    assert stored.points["metrics/output"] == [(1, 5.0), (2, 5.0), (3, 5.0)]
    assert stored.points["round/clients"] == [(1, 2.0), (2, 2.0), (3, 2.0)]
    kept = {name: stored.parameters[name] for name in ("program", "form", "seed", "data")}
    assert kept == {"program": "bundle", "form": "mapreduce", "seed": "0", "data": "npz, 2 clients"}
    assert stored.parameters["command"].startswith("tffc run bundle --data data")
    digest = tffc.load("bundle").digests()["computation"]
    assert stored.parameters["sha256/computation"] == digest


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_wandb_has_a_resumed_run_as_one(place: pathlib.Path, run: Run, wandb: pathlib.Path) -> None:
    twice(run, "wandb")
    (number, begun), (same, resumed) = wandb_runs(wandb)
    assert number == same
    assert (begun.name, begun.status, begun.files) == ("bundle", 0, ["report.html"])
    assert begun.points["metrics/output"] == [(1, 5), (2, 5)]
    assert resumed.points["metrics/output"] == [(3, 5)]
    assert begun.parameters["form"] == "mapreduce"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_a_run_in_python_is_tracked_until_it_is_left(place: pathlib.Path, mlflow: str) -> None:
    rounds = tffc.run("bundle", [2, 3], 3, state=0, track="mlflow")
    next(rounds)
    (stored,) = mlflow_runs(mlflow)
    assert (stored.status, stored.points["metrics/output"]) == ("RUNNING", [(1, 5.0)])
    rounds.finish()
    (stored,) = mlflow_runs(mlflow)
    assert (stored.status, stored.files) == ("FINISHED", ["report.html"])
    next(left := tffc.run("bundle", [2, 3], 3, state=0, track=["mlflow"]))
    del left
    gc.collect()
    assert [stored.status for stored in mlflow_runs(mlflow)] == ["KILLED", "FINISHED"]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_rounds_go_on_without_a_tracker_that_fails(
    place: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="an optional package")

    def fail(*arguments: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(TensorBoard, "add", fail)
    ran = run(*STATEFUL, "--rounds", "2", "--out", "run", "--track", "tensorboard")
    assert (ran.code, ran.stdout) == (0, "round  output\n    1       5\n    2       5\n")
    assert ran.stderr == (
        "TensorBoard has this run: run/tensorboard\n"
        "warning: TensorBoard fails: OSError: the disk is full; the rounds go on without it, and "
        "it is tried again after the last\n"
        "the state after round 2 is in run/state.npz\n"
        "warning: TensorBoard fails: OSError: the disk is full; it has no round; resuming the run "
        "sends the rest\n"
    )
    with pytest.warns(RuntimeWarning, match="TensorBoard fails: OSError: the disk is full"):
        tffc.run("bundle", [2, 3], 1, state=0, out="other", track="tensorboard").finish()


@pytest.mark.parametrize(
    ("package", "title", "install"),
    [("mlflow", "MLflow", "mlflow"), ("wandb", "Weights & Biases", "wandb")],
)
def test_a_tracker_that_is_not_installed_is_refused_first(
    run: Run, monkeypatch: pytest.MonkeyPatch, package: str, title: str, install: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ran = run("run", "none", "--data", "none", "--rounds", "1", "--track", package)
    assert ran.refusal == (
        f"error[E701]: {title} is not installed, and its log is written by it\n"
        f" = help: pip install {install}\n"
    )
    with pytest.raises(TffcError, match=f"{title} is not installed"):
        tffc.run("none", [], track=package)


def test_tensorboard_needs_a_folder(run: Run) -> None:
    ran = run("run", "none", "--data", "none", "--rounds", "1", "--track", "tensorboard")
    assert ran.code == 2
    assert "--track tensorboard needs --out DIR, the run folder" in ran.stderr
    with pytest.raises(TffcError, match="writes to the folder of the run"):
        tffc.run("none", [], track=("tensorboard",))
    with pytest.raises(TffcError, match="there is no tracker 'mlfow'"):
        tffc.run("none", [], track="mlfow")
