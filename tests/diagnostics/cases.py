"""Cases of what tffc refuses: what is run, and what is said about it, as text.

A file `*.case` holds cases of one subject.  A case is a title after `===`, what is run, and after
`==>` what comes out:

    === a name that the file does not define
    $ tffc print round.py:coumt
    --- round.py
    import tffc as tff
    ...
    ==> exit 1
    error[E439]: round.py defines nothing named 'coumt'
    ...

Lines that begin with `$ tffc` are commands.  The last one ends with the exit code, and prints the
text to stderr; those before it succeed.  What is run without a `$` is Python, and what comes out is
the exception, with its class and the classes of Python that it belongs to.  The parts after
`--- NAME` are files of the working directory.  Python and files before the first title stand for
every case of the file.

    python -m tests.diagnostics.cases [FILE ...]     writes what comes out again
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import sys
import tempfile
from unittest import mock

from click.testing import CliRunner

from tests.shell import forget_modules
from tffc.cli.application import application
from tffc.support.errors import TffcError

FOLDER = pathlib.Path(__file__).parent
COMMAND = "$ tffc "
OUTCOME = "==> "


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A case: its place, its title, its text up to the outcome, and the outcome.

    `head` is the text before the first case of its file.
    """

    place: str
    title: str
    head: str
    text: str
    outcome: str

    def run(self, folder: pathlib.Path) -> str:
        """Run the case in an empty folder; return its outcome."""
        before, files = _parts(self.head)
        script, own = _parts(self.text)
        for name, content in (files | own).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        with contextlib.chdir(folder), mock.patch.dict(os.environ, COLUMNS="100"):
            try:
                ran = _commands(script) if script.startswith(COMMAND) else _python(before, script)
            finally:
                forget_modules(folder)
        return ran.replace(f"{folder}/", "").rstrip("\n")

    def updated(self, folder: pathlib.Path) -> str:
        """Return the text of the case, with what comes out of it now."""
        return f"=== {self.title}\n{self.text}{self.run(folder)}\n"


def read_cases(text: str, name: str) -> list[Case]:
    """Return the cases in the text of a file of this name.

    Raises:
      ValueError: a case has no outcome.
    """
    head, *others = re.split(r"^=== ", text, flags=re.MULTILINE)
    cases: list[Case] = []
    line = head.count("\n") + 1
    for other in others:
        title, _, body = other.partition("\n")
        place = f"{name}:{line}"
        at = f"\n{body}".find(f"\n{OUTCOME}")
        if at < 0:
            raise ValueError(f"{place}: a case needs a line that begins with {OUTCOME.strip()}")
        cases.append(Case(place, title, head, body[:at], body[at:].rstrip("\n")))
        line += other.count("\n")
    return cases


def case_files() -> list[pathlib.Path]:
    """Return the files with cases."""
    return sorted(FOLDER.rglob("*.case"))


def write_again(path: pathlib.Path) -> None:
    """Write a file of cases with what comes out of them now."""
    cases = read_cases(path.read_text(encoding="utf-8"), path.name)
    texts: list[str] = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            texts.append(case.updated(pathlib.Path(folder)))
    path.write_text(cases[0].head + "\n".join(texts), encoding="utf-8")


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first file, and the files."""
    first, *pieces = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)
    return first, dict(zip(pieces[::2], pieces[1::2], strict=True))


def _commands(script: str) -> str:
    """Run commands; return the exit code and stderr of the last."""
    lines = script.splitlines()
    for number, line in enumerate(lines, 1):
        assert line.startswith(COMMAND), f"no command: {line}"
        arguments = shlex.split(line.removeprefix(COMMAND))
        ran = CliRunner(catch_exceptions=False).invoke(application, arguments, prog_name="tffc")
        if number < len(lines):
            assert ran.exit_code == 0, ran.output
        else:
            assert ran.exit_code == 0 or not ran.stdout, "a refusal prints to stderr alone"
            return f"{OUTCOME}exit {ran.exit_code}\n{ran.stderr}"
    raise AssertionError("there is no command")


def _python(before: str, script: str) -> str:
    """Run Python; return the exception."""
    names: dict[str, object] = {"__name__": __name__}
    exec(compile(before, "head", "exec"), names)
    try:
        exec(compile(script, "case", "exec"), names)
    except TffcError as error:
        kinds = ", ".join(kind.__name__ for kind in _kinds(type(error)))
        return f"{OUTCOME}{kinds}\n{error}"
    return f"{OUTCOME}nothing is refused"


def _kinds(kind: type[Exception]) -> list[type]:
    """Return a class of errors, and the most special classes of Python that it belongs to."""
    python = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    return [kind, *(base for base in python if not _is_above(base, python))]


def _is_above(kind: type, others: list[type]) -> bool:
    """Return whether a class is too general to name beside others."""
    return kind is Exception or any(kind in other.__mro__[1:] for other in others)


if __name__ == "__main__":
    for file in [pathlib.Path(name) for name in sys.argv[1:]] or case_files():
        write_again(file)
