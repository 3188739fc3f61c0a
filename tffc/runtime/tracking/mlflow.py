"""MLflow: a run of an experiment, in the store that MLflow's own settings name."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import posixpath
import re
import time
from collections.abc import Generator, Mapping
from typing import Any

from tffc.runtime.tracking.kind import Ending, RunFacts

EXPERIMENT = "tffc"
"""The experiment of runs where MLflow's settings name none."""

MOST_METRICS, LONGEST_NAME, LONGEST_TEXT = 1000, 250, 6000
"""How many metrics, and how long names and parameters, MLflow takes at once."""

OTHER_CHARACTERS = re.compile(r"[^\w\-. :/]", re.ASCII)
"""Matches what no name of a metric may have."""

STATUS: Mapping[Ending, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}

PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""How long MLflow's client waits for a server, where its settings do not say; by default, minutes,
in which no round would run."""


class MlflowRun:
    """A run at MLflow, which does not become MLflow's active run."""

    def __init__(self, facts: RunFacts, run: str | None) -> None:
        mlflow: Any = importlib.import_module("mlflow")
        self._entities: Any = importlib.import_module("mlflow.entities")
        with _soon():
            self._client: Any = mlflow.MlflowClient()
            if run is None:
                run = self._create(facts)
            else:
                self._client.update_run(run, status="RUNNING")
            experiment = self._client.get_run(run).info.experiment_id
        self.run = run
        self.place = f"{self._client.tracking_uri}, experiment {experiment}, run {run}"

    def _create(self, facts: RunFacts) -> str:
        param = self._entities.Param
        run: str = self._client.create_run(self._experiment(), run_name=facts.name).info.run_id
        parameters = [param(key, text[:LONGEST_TEXT]) for key, text in facts.parameters.items()]
        self._client.log_batch(run, params=parameters)
        return run

    def _experiment(self) -> str:
        """Return the experiment of MLflow's settings, or else tffc's."""
        number = os.environ.get("MLFLOW_EXPERIMENT_ID")
        if number:
            return number
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        known = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if known is None else known.experiment_id

    def add(self, round: int, numbers: Mapping[str, float]) -> None:
        metric = self._entities.Metric
        now = time.time_ns() // 1_000_000
        metrics = [
            metric(name, number, now, round)
            for name, number in zip(metric_names(numbers), numbers.values(), strict=True)
        ]
        with _soon():
            for start in range(0, len(metrics), MOST_METRICS):
                self._client.log_batch(self.run, metrics=metrics[start : start + MOST_METRICS])

    def end(self, ending: Ending, report: str | None) -> None:
        with _soon():
            if report is not None:
                self._client.log_text(self.run, report, "report.html")
            self._client.set_terminated(self.run, STATUS[ending])


def metric_names(names: Mapping[str, object]) -> list[str]:
    """Return names as MLflow takes them, all different."""
    taken: dict[str, None] = {}
    for name in names:
        plain = OTHER_CHARACTERS.sub("_", name)[:LONGEST_NAME]
        if posixpath.normpath(plain) != plain:
            plain = plain.replace("/", "_")
        numbered = (f"{plain[: LONGEST_NAME - 12]}_{number}" for number in itertools.count(2))
        taken[next(each for each in itertools.chain([plain], numbered) if each not in taken)] = None
    return list(taken)


@contextlib.contextmanager
def _soon() -> Generator[None]:
    """Let MLflow's client give up sooner in this context, unless its settings say when."""
    added = {name: text for name, text in PATIENCE.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
