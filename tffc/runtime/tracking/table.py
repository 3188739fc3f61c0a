"""The table of trackers."""

from __future__ import annotations

from collections.abc import Callable

from tffc.runtime.tracking.kind import RunFacts, Tracker, TrackerKind
from tffc.support.errors import LanguageValueError
from tffc.support.plugins import PluginGroup, PluginTable


def _tensorboard() -> Callable[[RunFacts, str | None], Tracker]:
    from tffc.runtime.tracking.tensorboard import TensorBoard

    return TensorBoard


def _mlflow() -> Callable[[RunFacts, str | None], Tracker]:
    from tffc.runtime.tracking.mlflow import MlflowRun

    return MlflowRun


def _wandb() -> Callable[[RunFacts, str | None], Tracker]:
    from tffc.runtime.tracking.wandb import WandbRun

    return WandbRun


TENSORBOARD = TrackerKind(
    "tensorboard", "TensorBoard", _tensorboard, "tensorboard", needs_folder=True
)
"""TensorBoard, which gets numbers alone."""

MLFLOW = TrackerKind("mlflow", "MLflow", _mlflow, "mlflow")
"""MLflow."""

WANDB = TrackerKind("wandb", "Weights & Biases", _wandb, "wandb")
"""Weights & Biases."""

GROUP = PluginGroup("tffc.trackers", "tracker", TrackerKind, LanguageValueError)

TRACKERS = PluginTable(GROUP, (TENSORBOARD, MLFLOW, WANDB))
"""The trackers by name."""
