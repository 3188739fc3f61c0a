"""A shell such as somebody has who installed tffc, with git, pytest and pre-commit."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tomllib

from tests.processes import ROOT

HOOKS = "https://github.com/OWNER/tffc"
"""Where a user's repository says that tffc's hooks are; git finds a repository of ours there."""

GIT_CONFIG = """\
[user]
    name = A user
    email = user@example.org
[init]
    defaultBranch = main
[url "file://{hooks}"]
    insteadOf = {url}
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code and what it printed, stdout and stderr as they came."""

    code: int
    output: str


class Shell:
    """Runs commands in the working directory, with a home of its own in the folder `home`."""

    def __init__(self, home: pathlib.Path) -> None:
        commands, site, hooks = home / "bin", home / "site", home / "hooks"
        for folder in (commands, site, hooks):
            folder.mkdir(parents=True)
        for name in ("tffc", "pytest"):
            script = commands / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
            script.chmod(0o755)
        write_installed(site, (ROOT / "pyproject.toml").read_text(encoding="utf-8"), "0.1.0")
        (home / ".gitconfig").write_text(GIT_CONFIG.format(hooks=hooks, url=HOOKS))
        path = (str(commands), str(pathlib.Path(sys.executable).parent), os.environ["PATH"])
        self.environment = {
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(site))),
            "HOME": str(home),
            "COLUMNS": "80",
            # What is said of work that takes long depends on the machine.
            "TFFC_PROGRESS": "off",
        }
        self._publish(hooks)

    def _publish(self, hooks: pathlib.Path) -> None:
        """Makes a repository with the definitions of our hooks, and a release in it."""
        name = ".pre-commit-hooks.yaml"
        (hooks / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
        lines = ("git init -q", f"git add {name}", "git commit -q -m Hooks", "git tag v0.1.0")
        made = self.run(f"cd {hooks} && {' && '.join(lines)}")
        assert made.code == 0, made.output

    def run(self, line: str) -> Ended:
        """Run a line."""
        ran = subprocess.run(
            ["/bin/sh", "-c", line],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ended(ran.returncode, with_one_time(ran.stdout))


def with_one_time(printed: str) -> str:
    """Return what pytest printed as if the tests had always taken the same time."""
    return re.sub(r" in \d+\.\d\ds", " in 0.10s", printed)


def forget_modules(folder: pathlib.Path) -> None:
    """Make the next command import the modules in a folder again, as they may have changed."""
    # A copy is made at once, while threads may import.
    for name, module in sys.modules.copy().items():
        if str(getattr(module, "__file__", None)).startswith(f"{folder}{os.sep}"):
            del sys.modules[name]


def write_installed(site: pathlib.Path, project: str, version: str | None = None) -> None:
    """Makes what a `pyproject.toml` describes look installed in the folder `site`."""
    about = tomllib.loads(project)["project"]
    name, version = about["name"], version or about["version"]
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    groups = about["entry-points"].items()
    lines = [line for group, entries in groups for line in (f"[{group}]", *_entries(entries))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entries(entries: dict[str, str]) -> list[str]:
    return [f"{name} = {target}" for name, target in entries.items()]
