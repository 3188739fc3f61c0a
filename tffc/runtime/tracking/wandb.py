"""Weights & Biases: a run of a project, online or offline as its own settings say."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from tffc.runtime.tracking.kind import Ending, RunFacts

PROJECT = "tffc"
"""The project of runs where the settings name none."""


class WandbRun:
    """A run at Weights & Biases, beside any other run of the process.

    What the process prints is not sent, because it may hold clients' values.
    """

    def __init__(self, facts: RunFacts, run: str | None) -> None:
        self._wandb: Any = importlib.import_module("wandb")
        self._run: Any = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=facts.name,
            id=run,
            resume=None if run is None else "allow",
            reinit="create_new",
            config=None if run is not None else dict(facts.parameters),
            save_code=False,
            settings=self._wandb.Settings(console="off", disable_git=True, silent=True),
        )
        self._run.define_metric("round")
        self._run.define_metric("*", step_metric="round")
        self.run: str = self._run.id
        is_offline = self._run.offline
        self.place: str = self._run.settings.sync_dir if is_offline else self._run.url

    def add(self, round: int, numbers: Mapping[str, float]) -> None:
        self._run.log({"round": round, **numbers}, step=round)

    def end(self, ending: Ending, report: str | None) -> None:
        if report is not None:
            page = self._wandb.Artifact(f"report-{self.run}", type="report")
            with page.new_file("report.html", encoding="utf-8") as file:
                file.write(report)
            self._run.log_artifact(page)
        self._run.finish(exit_code=0 if ending == "finished" else 1)
