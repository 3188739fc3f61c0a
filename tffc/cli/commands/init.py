"""`tffc init`: write a starter project."""

from __future__ import annotations

import pathlib
import shlex

import click

from tffc.cli.options import PATH
from tffc.cli.output import say
from tffc.support.errors import LoadError
from tffc.support.files import atomic

TEMPLATE = pathlib.Path(__file__).parents[1] / "project"

PLACES = {
    "README.md": "README.md",
    "line.py.in": "line.py",
    "test_line.py.in": "test_line.py",
    "gitignore": ".gitignore",
    "points.csv": "points.csv",
    "policy.yaml": "policy.yaml",
    "golden.yaml": "golden/golden.yaml",
    "pre-commit-config.yaml": ".pre-commit-config.yaml",
    "federated.yml": ".github/workflows/federated.yml",
}
"""The path in a project of each file of the template."""


@click.command("init")
@click.argument("folder", metavar="DIR", type=PATH)
def init_command(folder: pathlib.Path) -> None:
    """Write a small starter project: a program, its tests, clients' data, goldens, a policy, and
    checks for commits and pull requests.

    DIR must be a new folder.

    \b
    Examples:
      tffc init build/line
    """
    if folder.exists():
        raise LoadError("E861", f"{folder} already exists", help="name a new folder")
    files = {place: (TEMPLATE / name).read_bytes() for name, place in PLACES.items()}
    try:
        atomic.write_folder(folder, files)
    except OSError as error:
        raise LoadError(
            "E851",
            f"cannot write the folder {folder}: {error.strerror}",
            help="name a folder inside an existing, writable folder, on a disk with enough space",
        ) from None
    say(f"wrote {folder}: {len(files)} files; next:")
    say(f"  cd {shlex.quote(str(folder))}")
    for line in (TEMPLATE / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            say(f"  {line.strip()}")
