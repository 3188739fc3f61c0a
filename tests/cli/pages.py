"""The pages of the documentation that show what commands print: what they should show.

A page is read from top to bottom in one folder of its own, which has the examples of the
repository in it.  A block after the mark `<!-- file: NAME -->` is written to that file.  Every
line of a `sh` block is a command; a `text` block right after it holds what they print.  The folder
counts as an installed package if its `pyproject.toml` has been written.  Between the marks
`<!-- differences -->` and `<!-- end of differences -->` stands the table of what tffc answers
otherwise than TFF.

    python -m tests.cli.pages        writes all pages anew
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import click
from click.testing import CliRunner

from tests.recorded import differences
from tests.shell import Shell, write_installed
from tffc.cli.application import application

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = (
    "data-sources.md",
    "examples/embedding.md",
    "examples/heavy-hitters.md",
    "examples/kmeans.md",
    "examples/personalisation.md",
    "examples/private-averaging.md",
    "examples/quantiles.md",
    "export.md",
    "goldens.md",
    "keras.md",
    "language.md",
    "life-of-a-computation.md",
    "passes.md",
    "s-expressions.md",
    "verification.md",
    "write-a-pass.md",
)

BEAM_PAGES = ("beam.md",)
"""Pages whose commands need Apache Beam; they are written where it is installed."""

HEAD = """\
# Commands

What `tffc COMMAND --help` prints. The examples run as they stand, where the files that they name
are.

## Completion

The shell completes commands, options and choices after one line in its start-up file:

| shell | file | line |
|---|---|---|
| Bash | `~/.bashrc` | `eval "$(_TFFC_COMPLETE=bash_source tffc)"` |
| Zsh | `~/.zshrc` | `eval "$(_TFFC_COMPLETE=zsh_source tffc)"` |
| Fish | `~/.config/fish/completions/tffc.fish` | `_TFFC_COMPLETE=fish_source tffc \\| source` |
"""

DIFFERENCES = re.compile("<!-- differences -->.*<!-- end of differences -->", re.DOTALL)
BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<content>.*?)```\n", re.DOTALL
)


def rendered(page: str, shell: Shell) -> str:
    """A page with what its commands print, run in the working directory."""
    printed: str | None = None

    def render(match: re.Match[str]) -> str:
        nonlocal printed
        last, printed = printed, None
        if match["file"] is not None:
            path = pathlib.Path(match["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["content"], encoding="utf-8")
            if path.name == "pyproject.toml":
                write_installed(pathlib.Path(), match["content"])
        elif match["kind"] == "sh":
            lines = match["content"].replace("\\\n", " ").splitlines()
            printed = "".join(_run(line, shell) for line in lines)
        elif match["kind"] == "text" and last is not None:
            return f"```text\n{last}```\n"
        return match[0]

    table = f"<!-- differences -->\n\n{differences.table()}\n<!-- end of differences -->"
    return DIFFERENCES.sub(lambda _: table, BLOCK.sub(render, page))


def _run(line: str, shell: Shell) -> str:
    program, *args = shlex.split(line)
    if program == "python":
        path = os.pathsep.join((".", str(DOCS.parent)))
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, *args]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return ran.stdout
    if program != "tffc":
        output = shell.run(line).output
        _forget_modules(pathlib.Path.cwd())
        return output
    result = CliRunner(catch_exceptions=False).invoke(application, args)
    return result.output


def _forget_modules(folder: pathlib.Path) -> None:
    """Makes the next command import the modules in a folder anew, as they may have changed."""
    for name, module in list(sys.modules.items()):
        if folder in pathlib.Path(getattr(module, "__file__", None) or "/").parents:
            del sys.modules[name]


def render_in(folder: pathlib.Path, name: str) -> str:
    """The page of a name with what its commands print, run in a new folder in `folder`."""
    shell = Shell(folder / "home")
    work = folder / "work"
    work.mkdir()
    (work / "examples").symlink_to(DOCS.parent / "examples")
    before, path, ci = pathlib.Path.cwd(), list(sys.path), os.environ.pop("CI", None)
    os.chdir(work)
    sys.path.insert(0, str(work))
    try:
        return rendered((DOCS / name).read_text(encoding="utf-8"), shell)
    finally:
        if ci is not None:
            os.environ["CI"] = ci
        sys.path[:] = path
        os.chdir(before)


def reference() -> str:
    """The page about every command, from the texts of their help."""
    parts = [HEAD]
    context = click.Context(
        application,
        info_name="tffc",
        terminal_width=100,
        max_content_width=100,
        **application.context_settings,
    )
    parts.append(f"## tffc\n\n```text\n{application.get_help(context)}\n```\n")
    for name in application.list_commands(context):
        command = application.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        parts.append(f"## tffc {name}\n\n```text\n{command.get_help(inner)}\n```\n")
        below = command.commands if isinstance(command, click.Group) else {}
        for sub, part in below.items():
            text = part.get_help(click.Context(part, info_name=sub, parent=inner))
            parts.append(f"### tffc {name} {sub}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    for page in (*PAGES, *(BEAM_PAGES if importlib.util.find_spec("apache_beam") else ())):
        with tempfile.TemporaryDirectory() as folder:
            (DOCS / page).write_text(render_in(pathlib.Path(folder), page), encoding="utf-8")
    (DOCS / "commands.md").write_text(reference(), encoding="utf-8")
