"""A user's repository in which git runs `tffc golden check` before each commit."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest
import yaml

from tests.cli.conftest import ROUND
from tests.shell import HOOKS, ROOT, Shell

pytestmark = pytest.mark.slow

HOOK = ROOT / ".pre-commit-hooks.yaml"


@pytest.fixture
def repository(shell: Shell, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A repository with a round and its golden files, not yet committed."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("round.py").write_text(ROUND)
    pathlib.Path("golden").mkdir()
    pathlib.Path("golden", "golden.yaml").write_text(
        "count:\n  target: round.py\n  forms: [mapreduce]\n"
    )
    updated = shell.run("tffc golden update && git init -q && git add .")
    assert updated.code == 0, updated.output
    return shell


def commits(repository: Shell) -> int:
    counted = repository.run("git rev-list --all --count")
    return int(counted.output)


Install = Callable[[Shell], None]


def install_with_pre_commit(repository: Shell) -> None:
    config = {"repos": [{"repo": HOOKS, "rev": "v0.1.0", "hooks": [{"id": "tffc-golden"}]}]}
    pathlib.Path(".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    done = repository.run("git add . && pre-commit install --install-hooks")
    assert done.code == 0, done.output


def install_alone(repository: Shell) -> None:
    (hook,) = yaml.safe_load(HOOK.read_text())
    path = pathlib.Path(".git", "hooks", "pre-commit")
    path.write_text(f"#!/bin/sh\nexec {hook['entry']}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("install", [install_with_pre_commit, install_alone])
def test_what_differs_cannot_be_committed(repository: Shell, install: Install) -> None:
    install(repository)
    first = repository.run("git commit -q -m Round")
    assert first.code == 0, first.output
    changed = ROUND.replace("federated_sum", "federated_max")
    pathlib.Path("round.py").write_text(changed)
    refused = repository.run("git commit -q -a -m Largest")
    assert refused.code == 1
    assert "-  fc_count_symbol_0=federated_sum(count_arg[1])\n" in refused.output
    assert "+  fc_count_symbol_0=federated_max(count_arg[1])\n" in refused.output
    assert commits(repository) == 1
    accepted = repository.run("yes a | tffc golden review && git commit -q -a -m Largest")
    assert accepted.code == 0, accepted.output
    assert commits(repository) == 2
    assert repository.run("git status --porcelain").output == ""


def test_update_is_the_same_in_every_process(repository: Shell) -> None:
    assert repository.run("git commit -q -m Round").code == 0
    lines = ("rm -r golden/count", "PYTHONHASHSEED=1 tffc golden update")
    assert repository.run(" && ".join(lines)).code == 0
    assert repository.run("git status --porcelain").output == ""


def test_only_changed_files_start_the_hook(repository: Shell) -> None:
    install_with_pre_commit(repository)
    assert repository.run("git commit -q -m Round").code == 0
    pathlib.Path("notes.md").write_text("Nothing of interest.")
    skipped = repository.run("git add . && git commit -q -m Notes")
    assert skipped.code == 0
    assert "(no files to check)Skipped" in skipped.output
