"""NVFlare's simulator, in the interpreter that has NVFlare: another one, or that of the tests."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from tests.processes import ENVIRONMENT
from tffc.deploy.nvflare.job_folder import CONTROLLER, EXECUTOR

PYTHON = os.environ.get("TFFC_NVFLARE_PYTHON") or sys.executable
"""The interpreter with NVFlare and what tffc needs."""


def is_there() -> bool:
    """Return whether the interpreter has NVFlare."""
    if sys.executable == PYTHON:
        return importlib.util.find_spec("nvflare") is not None
    ran = subprocess.run([PYTHON, "-c", "import nvflare"], capture_output=True, check=False)
    return ran.returncode == 0


class Simulation:
    """A job in a folder, and the workspace that its server and its sites get a copy of."""

    def __init__(self, folder: pathlib.Path, job: pathlib.Path) -> None:
        self.folder = folder
        self.job = job
        self.local = folder / "workspace" / "local"
        self.local.mkdir(parents=True)
        self.allow(CONTROLLER, EXECUTOR)

    @property
    def run_folder(self) -> pathlib.Path:
        """The folder of the run at the server."""
        return self.folder / "workspace" / "server" / "simulate_job" / "tffc"

    def allow(self, *classes: str) -> None:
        """Let all sites load classes of these names."""
        content = {"class_allow_list": classes}
        (self.local / "resources.json").write_text(json.dumps(content))

    def configure(self, config: Mapping[str, object]) -> None:
        """Change the configuration of the run."""
        file = self.job / "app" / "config" / "config_fed_server.json"
        content = json.loads(file.read_text())
        content["workflows"][0]["args"]["config"] |= config
        file.write_text(json.dumps(content))

    def set_sites(self, config: Mapping[str, object]) -> None:
        """Give all sites a configuration."""
        (self.local / "tffc.json").write_text(json.dumps(config))

    def start(self, sites: int) -> subprocess.CompletedProcess[str]:
        """Run the job with so many sites; its log is in the output."""
        simulator = pathlib.Path(PYTHON).with_name("nvflare")
        count = str(sites)
        command = [simulator, "simulator", "-w", "workspace", "-n", count, "-t", count, self.job]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
