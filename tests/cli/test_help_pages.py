"""`tffc help`: pages of the documentation, help of commands, pages about errors."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import Run
from tffc.cli.commands import help as help_module
from tffc.support.explanations import read_page

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("topic", ["forms", "FORMS"])
def test_a_page(run: Run, topic: str) -> None:
    ran = run("help", topic)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (DOCS / "forms.md").read_text(encoding="utf-8")


def test_all_pages_are_listed_with_their_titles(run: Run) -> None:
    topics, _, commands = run("help").stdout.partition("\n\n")
    lines = topics.splitlines()
    assert lines[0] == "Topics"
    assert [line.split()[0] for line in lines[1:]] == sorted(
        path.stem for path in DOCS.glob("*.md")
    )
    assert any(line.split() == ["forms", "The", "three", "forms"] for line in lines)
    assert commands.startswith("Commands: audit, check, ")


@pytest.mark.parametrize("words", [("run",), ("data", "pack"), ("golden", "review")])
def test_the_help_of_a_command(run: Run, words: tuple[str, ...]) -> None:
    assert run("help", *words).stdout == run(*words, "--help").stdout


def test_the_page_of_an_error(run: Run) -> None:
    assert run("help", "e471").stdout == read_page("E471").text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("formz",), "formz; did you mean 'forms'?"),
        (("data", "pakc"), "data pakc; did you mean 'data'?"),
        (("zzz",), "zzz; `tffc help` lists them all"),
    ],
)
def test_an_unknown_topic(run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run("help", *words)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(f"Error: there is no topic, command or error code {said}\n")


def test_without_the_pages_commands_have_their_help(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(help_module, "PLACES", (tmp_path / "docs",))
    assert run("help").stdout.startswith("Topics\n\nCommands: audit, ")
    assert run("help", "run").code == 0
    assert run("help", "forms").code == 2
