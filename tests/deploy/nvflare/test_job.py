"""What `tffc export --to nvflare` writes, and what it refuses."""

from __future__ import annotations

import ast
import json
import pathlib

import pytest

from tests.cli.conftest import Run, run, temperature
from tests.processes import ROOT
from tffc.backends.bundle.bundle import read_bundle
from tffc.deploy.federation.tasks import MASKED_STEPS, WORK
from tffc.deploy.nvflare.job_folder import CONTROLLER, EXECUTOR, job_files
from tffc.support.version import VERSION

__all__ = ["run", "temperature"]


def config(folder: pathlib.Path, side: str) -> dict[str, object]:
    return json.loads((folder / "app" / "config" / f"config_fed_{side}.json").read_text())


def test_a_job(run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path) -> None:
    ran = run("export", str(temperature), "--to", "nvflare", "-o", "Mean of 12")
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr == "wrote Mean of 12: an NVFlare job of mapreduce\n"
    job = tmp_path / "Mean of 12"
    assert json.loads((job / "meta.json").read_text()) == {
        "name": "Mean-of-12",
        "resource_spec": {},
        "min_clients": 2,
        "deploy_map": {"app": ["@ALL"]},
    }
    assert read_bundle(job / "app" / "bundle").encode() == read_bundle(temperature).encode()
    empty = {"components": [], "task_data_filters": [], "task_result_filters": []}
    settings = {
        "rounds": 1,
        "min-nodes": 2,
        "min-replies": 2,
        "fraction": 1.0,
        "timeout": 600.0,
        "pause": 10.0,
        "attempts": 5,
        "seed": 0,
        "out": "",
        "resume": False,
        "secure-sums": "",
        "allow-effects": "",
    }
    workflow = {"id": "rounds", "path": CONTROLLER, "args": {"config": settings}}
    executor = {"tasks": [WORK, *MASKED_STEPS], "executor": {"path": EXECUTOR, "args": {}}}
    assert config(job, "server") == {"format_version": 2, "workflows": [workflow], **empty}
    assert config(job, "client") == {"format_version": 2, "executors": [executor], **empty}
    readme = (job / "README.md").read_text()
    assert f"tffc-{VERSION}-py3-none-any.whl#sha256=HASH" in readme
    assert "$" not in readme


@pytest.mark.parametrize("path", [CONTROLLER, EXECUTOR])
def test_the_classes_of_a_job_are_there(path: str) -> None:
    module, _, name = path.rpartition(".")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_a_job_has_no_code(temperature: pathlib.Path) -> None:
    files = job_files(read_bundle(temperature), "job")
    assert {pathlib.PurePath(name).suffix for name in files} == {".json", ".md", ".pb", ".sexpr"}


def test_a_job_is_replaced_only_if_asked(run: Run, temperature: pathlib.Path) -> None:
    command = ("export", str(temperature), "--to", "nvflare", "-o", "job")
    assert run(*command).code == 0
    assert run(*command).refusal == (
        "error[E956]: the folder job already holds a job\n"
        " = help: replace it, or name another folder; --force replaces it\n"
    )
    assert run(*command, "--force").code == 0


def test_a_changed_job_is_noticed(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    command = ("export", str(temperature), "--to", "nvflare", "-o", "job")
    assert run(*command).code == 0
    assert run(*command, "--check").stderr == "job holds what this exports\n"
    (tmp_path / "job" / "app" / "custom").mkdir()
    (tmp_path / "job" / "app" / "custom" / "more.py").write_text("")
    ran = run(*command, "--check")
    assert (ran.code, ran.stderr.splitlines()[1]) == (
        1,
        " = note: app/custom/more.py: it is not part of the export",
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--partial",), "'--partial' has no effect: a job holds the whole bundle"),
        (("--state", "s.npz"), "a job starts from the first state: omit --state and --part"),
    ],
)
def test_options_without_effect(
    run: Run, temperature: pathlib.Path, options: tuple[str, ...], reason: str
) -> None:
    ran = run("export", str(temperature), "--to", "nvflare", "-o", "job", *options)
    assert ran.code == 2
    assert ran.stderr.endswith(f"Error: {reason}\n")
