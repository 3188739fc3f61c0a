"""The examples in the help of every command run as shown, in a folder with the files they name.

Files that one example writes and another reads are there from the start.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import shlex
import shutil
from collections.abc import Iterator

import click
import pytest
import yaml
from click.testing import CliRunner

from tests.cli.pages import DOCS
from tests.shell import Shell
from tests.signing_keys import write_keys
from tffc.cli.application import application
from tffc.cli.reproducer import Reproducer
from tffc.language.notation import parse
from website.references import command_reference

ROOT = DOCS.parent
MEAN = "examples/temperature/temperature.py:mean_temperature"
AVERAGING = "examples/digits/federated_averaging.py:training"
KERAS = "examples/keras_averaging/keras_averaging.py:training"

PREPARE = (
    f"tffc trace {MEAN} -o round.pb",
    "tffc trace examples/slides.py:simple -o before.pb",
    "tffc trace examples/slides.py:combine -o after.pb",
    "tffc opt examples/slides.py:simple --sections sections -o simple.sexpr",
    "tffc opt round.pb --sections ready/sections -o round.sexpr",
    "tffc opt round.pb --sections ready/sections -o round.txt",
    f"tffc compile {MEAN} --form mapreduce --out ready/mean",
    f"tffc compile {AVERAGING} --form mapreduce --out ready/training",
    "tffc run ready/training --data examples/digits/train --rounds 2 --clients-per-round 2 "
    "--out ready/run-of-digits",
    "tffc sign ready/training --key alice",
    "tffc sign ready/training --key bob",
    f"tffc run {KERAS} --data examples/digits/train --rounds 1 --clients-per-round 2 "
    "--state-out ready/keras.npz",
)

GOLDEN = ("simple", "combine", "temperature-mean", "temperature-share")

DIFFERS = 2


def commands(
    group: click.Group = application, name: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its name, including groups."""
    yield name, group
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*name, each))
        else:
            yield (*name, each), command


COMMANDS = {" ".join(("tffc", *name)): command for name, command in commands()}


def help_of(command: click.Command) -> str:
    # A command remembers the names of its help option from the first time it is asked.
    settings = application.context_settings
    context = click.Context(command, terminal_width=100, max_content_width=100, **settings)
    return command.get_help(context)


def examples(command: click.Command) -> list[str]:
    """Return the lines below `Examples:` in a command's help, without comments."""
    _, _, below = help_of(command).partition("\n  Examples:\n")
    block = below.partition("\n\n")[0].replace("\\\n", "")
    lines = (" ".join(line.split()) for line in block.splitlines())
    return [line for line in lines if not line.startswith("#")]


class Folder:
    """A folder with all files that the examples name."""

    def __init__(self, folder: pathlib.Path, home: pathlib.Path) -> None:
        self.folder = folder
        self.shell = Shell(home)
        (folder / "examples").symlink_to(ROOT / "examples")
        self._copy_golden()
        (folder / "readings.csv").write_text("sensor,degrees\nattic,21.5\ncellar,12.0\n")
        (folder / "policy.yaml").write_text("protection: system\n")
        (folder / "trusted").mkdir()
        for name in ("alice", "bob"):
            write_keys(folder, name)
            shutil.copy(folder / f"{name}.pub", folder / "trusted")
        (folder / "node.yaml").write_text("keys: trusted\npolicy: policy.yaml\n")
        (folder / "mine.yaml").write_text("name: mine\npasses: [call-dominant]\n")
        reproducer = Reproducer(parse("(x: int32 -> x)"), "unique-names", ("closed",))
        (folder / "tffc-reproducer-0123abcd.txt").write_text(reproducer.encode())
        for line in ("git init -q", *PREPARE):
            self.run(line)

    def _copy_golden(self) -> None:
        """Copy only the golden files that the examples name."""
        golden = self.folder / "golden"
        golden.mkdir()
        entries = yaml.safe_load((ROOT / "golden" / "golden.yaml").read_text())
        (golden / "golden.yaml").write_text(
            yaml.safe_dump({name: entries[name] for name in GOLDEN})
        )
        for name in GOLDEN:
            shutil.copytree(ROOT / "golden" / name, golden / name)

    def run(self, line: str) -> None:
        """Runs a line, in this process unless it needs a shell or has a process to itself."""
        program, *words = shlex.split(line)
        with contextlib.chdir(self.folder):
            if program == "tffc" and not {"|", ">", "&&", "python"} & set(words):
                result = CliRunner(catch_exceptions=False).invoke(application, words)
                code, output = result.exit_code, result.output
            else:
                ended = self.shell.run(line)
                code, output = ended.code, ended.output
        allowed = (0, DIFFERS) if "tffc diff" in line else (0,)
        assert code in allowed, f"$ {line}\n{output}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The folder, as it is after `PREPARE`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        return Folder(tmp_path_factory.mktemp("examples"), tmp_path_factory.mktemp("user") / "home")


@pytest.mark.parametrize("name", COMMANDS)
def test_there_are_examples_of_the_command(name: str) -> None:
    found = examples(COMMANDS[name])
    assert found
    assert any(name in line for line in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_work(folder: Folder, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    build = folder.folder / "build"
    shutil.rmtree(build, ignore_errors=True)
    if name not in ("tffc", "tffc compile"):
        shutil.copytree(folder.folder / "ready", build)
    for line in examples(COMMANDS[name]):
        folder.run(line)


SECTION = re.compile(r"^##+ (tffc[^\n]*)\n\n(```text\n.*?\n```)$", re.DOTALL | re.MULTILINE)
SECTIONS = dict(SECTION.findall(command_reference()))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_on_the_site_holds_every_command_and_option(name: str) -> None:
    options = [word for option in COMMANDS[name].params for word in option.opts if word[0] == "-"]
    assert f"Usage: {name} " in SECTIONS[name]
    assert [word for word in options if word not in SECTIONS[name]] == []
