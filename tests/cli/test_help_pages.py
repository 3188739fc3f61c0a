"""`tffc help`: pages of the documentation, help of commands, pages about errors."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import Run
from tests.cli.terminal import on_terminal, seen
from tffc.cli import page, topics
from tffc.cli.page import without_comments
from tffc.support.explanations import read_page

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("topic", ["forms", "FORMS"])
def test_a_page(run: Run, topic: str) -> None:
    ran = run("help", topic)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == without_comments((DOCS / "forms.md").read_text(encoding="utf-8"))


def test_all_pages_are_listed_with_their_titles(run: Run) -> None:
    *groups, end = run("help").stdout.split("\n\n")
    for listed, title, folder in zip(
        groups, ("Topics", "Tutorials", "Examples"), (".", "tutorials", "examples"), strict=True
    ):
        heading, *lines = listed.splitlines()
        assert heading == title
        assert [line.split()[0] for line in lines] == sorted(
            path.stem for path in (DOCS / folder).glob("*.md")
        )
    assert "forms                  The forms" in groups[0]
    assert end.startswith("Commands: admit, approve, audit, ")


def test_no_page_hides_another() -> None:
    pages = list(DOCS.rglob("*.md"))
    assert sorted(topics.topics().values()) == sorted(pages)


@pytest.mark.parametrize("topic", ["averaging-by-hand", "kmeans"])
def test_comments_are_for_tools(run: Run, topic: str) -> None:
    ran = run("help", topic)
    assert ran.stdout.startswith("# ")
    assert "<!--" not in ran.stdout


def test_a_comment_in_code_is_code() -> None:
    text = "a <!-- b\nc -->d\n<!-- e -->\n```html\n<!-- f -->\n```\n<!-- g -->\nh\n"
    assert without_comments(text) == "a d\n```html\n<!-- f -->\n```\nh\n"


def test_on_a_terminal_pages_are_formatted(tmp_path: pathlib.Path) -> None:
    written = on_terminal("help", "examples", folder=tmp_path, columns=60)
    assert "Examples to copy" in written
    assert "# Examples" not in written
    assert "](" not in written, "links are text"
    assert max(map(len, seen(written))) <= 60


def test_long_pages_are_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr(page.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(page.click, "echo_via_pager", paged.append)
    page.show_page("# Title\n\nshort\n")
    assert paged == []
    page.show_page("# Title\n\n" + "a paragraph\n\n" * 100)
    assert paged[0].count("a paragraph") == 100


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
    monkeypatch.setattr(topics, "PLACES", (tmp_path / "docs",))
    assert run("help").stdout.startswith("Commands: admit, ")
    assert run("help", "run").code == 0
    assert run("help", "forms").code == 2
