"""The folder of a job of NVIDIA FLARE that runs the rounds of a bundle."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import string
from collections.abc import Mapping

from tffc.backends.bundle.bundle import Bundle
from tffc.deploy.export.kind import Exported
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.federation.tasks import MASKED_STEPS, WORK
from tffc.support.version import VERSION

APP = "app"
"""The folder of the only app of a job, which the server and all sites get."""

BUNDLE = "bundle"
"""The folder of the bundle, in that of the app."""

CONTENT = "tffc"
"""The name of a message in what NVFlare sends."""

KINDS = (WORK, *MASKED_STEPS)
"""The kinds of requests, which are the names of tasks."""

CONTROLLER = "tffc.deploy.nvflare.controller.RoundsController"
EXECUTOR = "tffc.deploy.nvflare.executor.RoundExecutor"
"""The classes that NVFlare loads."""

README = pathlib.Path(__file__).with_name("job") / "README.md.in"

FILES = re.compile(rf"meta\.json|README\.md|{APP}/config/config_fed_\w+\.json|{APP}/{BUNDLE}/.*")
"""The files that the folder of a job may hold."""

SHOWN = ("rounds", "min-nodes", "min-replies", "fraction", "timeout", "pause", "attempts", "seed")
"""The entries of the configuration that a job says in full."""


def job_files(bundle: Bundle, name: str) -> dict[str, bytes]:
    """Return the files of the job of a bundle, by their paths in its folder."""
    usual = dataclasses.asdict(RunSettings())
    config: dict[str, object] = {entry: usual[entry.replace("-", "_")] for entry in SHOWN}
    config |= {"out": "", "resume": False, "secure-sums": "", "allow-effects": ""}
    controller: dict[str, object] = {"id": "rounds", "path": CONTROLLER, "args": {"config": config}}
    executor: dict[str, object] = {"tasks": KINDS, "executor": {"path": EXECUTOR, "args": {}}}
    files = {**bundle.encode(), **bundle.resource_files()}
    readme = string.Template(README.read_text(encoding="utf-8"))
    about = {"name": name, "version": VERSION, "form": bundle.form}
    return {
        "meta.json": _json(
            {
                "name": name,
                "resource_spec": {},
                "min_clients": usual["min_nodes"],
                "deploy_map": {APP: ["@ALL"]},
            }
        ),
        "README.md": readme.substitute(about).encode(),
        f"{APP}/config/config_fed_server.json": _json(_config(workflows=[controller])),
        f"{APP}/config/config_fed_client.json": _json(_config(executors=[executor])),
        **{f"{APP}/{BUNDLE}/{path}": bytes(content) for path, content in files.items()},
    }


def _config(**parts: object) -> Mapping[str, object]:
    filters: Mapping[str, object] = {"task_data_filters": [], "task_result_filters": []}
    return {"format_version": 2, **parts, "components": [], **filters}


def _json(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def export_job(bundle: Bundle, folder: pathlib.Path) -> Exported:
    """Return the job of a bundle, with the name of its folder."""
    name = re.sub(r"[^\w-]+", "-", folder.resolve().name, flags=re.ASCII).strip("-") or "tffc-job"
    return Exported(job_files(bundle, name), f"an NVFlare job of {bundle.form}")
