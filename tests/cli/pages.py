"""Checks of the pages of the documentation that show the output of commands.

A page is read from top to bottom in a temporary folder, which has the examples of the
repository.  A block after the mark `<!-- file: NAME -->` is written to that file.  Every
line of a `sh` block is a command; a `text` block right after it holds what they print, and without
one they have to succeed.  Other `python` blocks are excerpts of the examples.  The folder counts as
an installed package if its `pyproject.toml` has been written.  Between the marks
`<!-- differences -->` and `<!-- end of differences -->` stands the table of what tffc answers
otherwise than TFF.

A block that cannot run here stands after the mark `<!-- not run: WHY -->`; one that `.ci/run` runs,
word for word, after `<!-- command: NAME -->`.

    python -m tests.cli.pages [PAGE...]    writes all pages again, or these
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings

import pytest
from click.testing import CliRunner

from tests.processes import ROOT
from tests.recorded import differences
from tests.shell import Ended, Shell, forget_modules, write_installed
from tests.tff.wheel import ABSENT
from tffc.cli.application import application
from tffc.tff import releases

DOCS = ROOT / "docs"
PAGES = (
    "audit.md",
    "buffered.md",
    "data-sources.md",
    "examples/buffered-averaging.md",
    "examples/embedding.md",
    "examples/heavy-hitters.md",
    "examples/kmeans.md",
    "examples/personalisation.md",
    "examples/private-averaging.md",
    "examples/private-heavy-hitters.md",
    "examples/private-quantiles.md",
    "examples/quantiles.md",
    "examples/scaffold.md",
    "explore.md",
    "export.md",
    "flower.md",
    "nvflare.md",
    "forms.md",
    "getting-started.md",
    "goldens.md",
    "keras.md",
    "language.md",
    "life-of-a-computation.md",
    "migrate-from-tff.md",
    "notation.md",
    "notebooks.md",
    "operating.md",
    "passes.md",
    "privacy.md",
    "proof.md",
    "python.md",
    "running.md",
    "secure-sums.md",
    "security.md",
    "todays-tff.md",
    "trust.md",
    "tutorials/averaging-by-hand.md",
    "tutorials/secure-analytics.md",
    "verification.md",
    "write-a-pass.md",
)

BEAM_PAGES = ("beam.md",)
RAY_PAGES = ("ray.md",)
"""Pages whose commands need Apache Beam; they are written where it is installed."""

JAX_PAGES = (
    "algorithms.md",
    "examples/jax.md",
)
"""Pages whose commands need JAX; likewise."""

TORCH_PAGES = (
    "examples/torch-lora.md",
    "examples/torch-text.md",
    "examples/torch.md",
    "pytorch.md",
)
"""Pages whose commands need PyTorch; likewise."""

TFF_PAGES = ("tutorials/tff-libraries.md",)
"""Pages whose commands need TFF's wheel; likewise."""

OPTIONAL_PAGES = (*BEAM_PAGES, *RAY_PAGES, *JAX_PAGES, *TORCH_PAGES, *TFF_PAGES)

ELSEWHERE = {
    "README.md": {"console", "python"},
    "docs/architecture.md": {"text"},
    "docs/getting-started.md": {"console"},
    "docs/notation.md": {"ebnf", "text"},
}
"""The kinds of blocks that tests of their own compare with what there is."""

CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
FENCE = re.compile("^ *(?:```|~~~)", re.MULTILINE)
DIFFERENCES = re.compile("<!-- differences -->.*<!-- end of differences -->", re.DOTALL)
BLOCK = re.compile(
    r"^(?: *<!-- (?P<mark>file|not run|command): (?P<said>[^\n]*) -->\n)?"
    r" *```(?P<kind>\w*)\n(?P<content>.*?)^ *```$\n",
    re.DOTALL | re.MULTILINE,
)


def rendered(page: str, shell: Shell) -> str:
    """Return a page with the output of its commands, which run in the working directory.

    Raises:
      AssertionError: a command fails, and the page does not show how.
    """
    last: Ended | None = None

    def render(match: re.Match[str]) -> str:
        nonlocal last
        before, last = last, None
        if match["kind"] == "text" and before is not None and match["mark"] is None:
            return f"```text\n{before.output}```\n"
        assert before is None or before.code == 0, before.output
        if match["mark"] == "file":
            path = pathlib.Path(match["said"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["content"], encoding="utf-8")
            if path.name == "pyproject.toml":
                write_installed(pathlib.Path(), match["content"])
        elif match["kind"] == "sh" and match["mark"] is None:
            lines = match["content"].replace("\\\n", " ").splitlines()
            ended = [_run(line, shell) for line in lines]
            codes = [each.code for each in ended]
            last = Ended(max(codes, key=abs), "".join(each.output for each in ended))
        return match[0]

    table = f"<!-- differences -->\n\n{differences.table()}\n<!-- end of differences -->"
    found = DIFFERENCES.sub(lambda _: table, BLOCK.sub(render, page))
    assert last is None or last.code == 0, last.output
    return found


def _run(line: str, shell: Shell) -> Ended:
    program, *args = shlex.split(line)
    if program == "python" and args[0].endswith(".py"):
        return _run_script(args)
    if program == "python":
        path = os.pathsep.join((".", str(ROOT)))
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, *args]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        assert ran.returncode == 0, ran.stderr
        return Ended(0, ran.stdout)
    if program != "tffc" or args[0] == "python" or _is_for_a_shell(line):
        ended = shell.run(line)
        forget_modules(pathlib.Path.cwd())
        return ended
    result = CliRunner(catch_exceptions=False).invoke(application, args)
    return Ended(result.exit_code, result.output)


def _run_script(args: list[str]) -> Ended:
    """Run a script in this process, which has loaded TensorFlow already."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")
        patch.setattr(sys, "argv", args)
        patch.syspath_prepend(str(pathlib.Path(args[0]).parent.absolute()))
        with contextlib.redirect_stdout(printed):
            runpy.run_path(args[0], run_name="__main__")
    forget_modules(pathlib.Path.cwd())
    return Ended(0, printed.getvalue())


def _is_for_a_shell(line: str) -> bool:
    """Return whether a line has a redirection, a pipe, or more than one command."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    return any(set(word) <= set("();<>|&") for word in words)


def unheld(name: str) -> list[str]:
    """Return the blocks of a page that nothing runs or compares and that do not say why."""
    page = (ROOT / name).read_text(encoding="utf-8")
    is_run = name.removeprefix("docs/") in (*PAGES, *OPTIONAL_PAGES)
    blocks = list(BLOCK.finditer(page))
    found = [] if len(FENCE.findall(page)) == 2 * len(blocks) else ["a fence without its other end"]
    commands_end: int | None = None
    for match in blocks:
        is_output = commands_end is not None and page[commands_end : match.start()].isspace()
        commands_end = match.end() if match["kind"] == "sh" else None
        match match["mark"], match["kind"]:
            case "not run", _:
                held = bool(match["said"])
            case "command", _:
                held = f"(command_of {name} {match['said']})" in CI
            case None, kind if kind in ELSEWHERE.get(name, ()):
                held = True
            case None, "python":
                held = _is_excerpt(match["content"])
            case mark, kind:
                held = is_run and (mark == "file" or kind == "sh" or (kind == "text" and is_output))
        if not held:
            found.append(match[0])
    return found


def _is_excerpt(content: str) -> bool:
    """Return whether an example has these lines, with any indentation."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py")]
    ways = [textwrap.indent(content, " " * depth) for depth in range(0, 20, 4)]
    return any(f"\n{way}" in text for way in ways for text in texts)


def render_in(folder: pathlib.Path, name: str) -> str:
    """Return a page with the output of its commands, which run in a new folder in `folder`."""
    # What is said of work that takes long depends on the machine.
    os.environ["TFFC_PROGRESS"] = "off"
    shell = Shell(folder / "home")
    work = folder / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    before, path, ci = pathlib.Path.cwd(), list(sys.path), os.environ.pop("CI", None)
    os.chdir(work)
    sys.path.insert(0, str(work))
    try:
        return rendered((DOCS / name).read_text(encoding="utf-8"), shell)
    finally:
        # Other pages have modules of the same names.
        forget_modules(work)
        if ci is not None:
            os.environ["CI"] = ci
        sys.path[:] = path
        os.chdir(before)


if __name__ == "__main__":
    with_beam = BEAM_PAGES if importlib.util.find_spec("apache_beam") else ()
    with_ray = RAY_PAGES if importlib.util.find_spec("ray") else ()
    with_jax = JAX_PAGES if importlib.util.find_spec("jax") else ()
    with_torch = TORCH_PAGES if importlib.util.find_spec("torch") else ()
    with_tff = TFF_PAGES if not ABSENT and releases.installed() else ()
    every = (*PAGES, *with_beam, *with_ray, *with_jax, *with_torch, *with_tff)
    for page in sys.argv[1:] or every:
        with tempfile.TemporaryDirectory() as folder:
            (DOCS / page).write_text(render_in(pathlib.Path(folder), page), encoding="utf-8")
