"""The workflows and the sessions of nox name what there is."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import click
import pytest
import yaml

from tests.processes import ROOT
from tffc.cli.application import application

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

PROVENANCE = "actions/attest-build-provenance"

Workflow = dict[str, Any]


def of_page() -> Workflow:
    """The workflow that the page on trust has for users."""
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    text = page.partition("<!-- file: .github/workflows/release.yml -->\n```yaml\n")[2]
    return yaml.safe_load(text.partition("```\n")[0])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_job_runs_on_a_machine_and_waits_for_jobs_that_there_are(path: pathlib.Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    assert [name for name, job in jobs.items() if not (job["runs-on"] and job["steps"])] == []
    assert {job["needs"] for job in jobs.values() if "needs" in job} <= jobs.keys()


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "noxfile.py"], ids=lambda path: path.stem)
def test_named_tests_and_sessions_exist(path: pathlib.Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"\b(?:tests|tffc)/[\w/.]+\w", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
    sessions = re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE)
    listed = " ".join(re.findall(r"nox .*?-s ([a-z ]+)", text)).split()
    assert set(listed) <= set(sessions)


@pytest.mark.parametrize("path", [*WORKFLOWS, None], ids=lambda path: path.stem if path else "page")
def test_who_attests_may_attest(path: pathlib.Path | None) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8")) if path else of_page()
    for job in workflow["jobs"].values():
        if any(step.get("uses", "").startswith(PROVENANCE) for step in job["steps"]):
            rights = job.get("permissions", workflow["permissions"])
            assert rights == {"contents": "read", "id-token": "write", "attestations": "write"}


def test_what_is_published_has_provenance() -> None:
    publish = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text())
    uses = [step.get("uses", "") for step in publish["jobs"]["build"]["steps"]]
    assert [use.partition("@")[0] for use in uses if use][-2:] == [
        PROVENANCE,
        "actions/upload-artifact",
    ]


def test_a_page_runs_commands_that_there_are() -> None:
    (job,) = of_page()["jobs"].values()
    lines = [step["run"].split() for step in job["steps"] if "run" in step]
    commands = [words[1:] for words in lines if words[0] == "tffc"]
    assert [words[0] for words in commands] == ["compile", "rebuild", "sign"]
    for name, *rest in commands:
        command = application.get_command(click.Context(application), name)
        assert command is not None
        # This reads options and arguments, and runs nothing.
        command.make_context(name, rest)
