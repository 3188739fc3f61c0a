"""The workflows and the sessions of nox name what there is."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from tests.processes import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


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
