"""The lexer of programs has tokens for every text that tffc prints."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Token

from tests.cli import textmate
from tests.cli.terminal import COLOR, on_terminal, seen
from tests.processes import ROOT
from tffc.cli.colors import colored
from tffc.language.nodes import Node
from tffc.language.notation import compact, formatted, parse, structural, typed
from tffc.language.notation.pygments_lexer import NotationLexer

GOLDENS = sorted((ROOT / "golden").rglob("*.sexpr"))
NOTATION = (ROOT / "docs" / "notation.md").read_text()
TEXTS = [
    line
    for block in re.findall(r"```ebnf.*?```text\n(.*?)```", NOTATION, re.DOTALL)
    for line in block.splitlines()
]


def tokens(text: str) -> list[tuple[object, str]]:
    return list(NotationLexer(stripnl=False, ensurenl=False).get_tokens(text))


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: "-".join(path.parts[-3:]))
def test_all_of_a_golden_has_tokens(path: pathlib.Path) -> None:
    text = path.read_text()
    found = tokens(text)
    assert "".join(part for _, part in found) == text
    assert [part for kind, part in found if kind in (Token.Text, Token.Error)] == []


@pytest.mark.parametrize("text", TEXTS)
def test_all_of_the_notation_has_tokens(text: str) -> None:
    found = tokens(text)
    assert "".join(part for _, part in found) == text
    assert [part for kind, part in found if kind in (Token.Text, Token.Error)] == []


def test_kinds_of_tokens() -> None:
    text = "(x: int32@SERVER -> federated_broadcast(comp#a1(<x.int32s,b'in',0x1>)))"
    named = {part: kind for kind, part in tokens(text)}
    assert named["int32"] is Token.Keyword.Type
    assert named["SERVER"] is Token.Keyword.Namespace
    assert named["federated_broadcast"] is Token.Name.Builtin
    assert named["comp#a1"] is Token.Name.Label
    assert named["int32s"] is Token.Name
    assert named["b'in'"] is Token.Literal.String


@pytest.mark.parametrize("style", [compact, formatted, structural, typed])
def test_colours_change_no_text(style: Callable[[Node], str]) -> None:
    program = parse("(x: int32 -> (let a=x,b=<a,n=1.5> in b.n))")
    text = style(program)
    assert COLOR.sub("", colored(text)) == text


def test_long_texts_have_no_colours() -> None:
    text = "let " * 250_001
    assert colored(text) == text


def test_pygments_finds_the_lexer() -> None:
    assert isinstance(get_lexer_by_name("tffc"), NotationLexer)


@pytest.mark.slow
def test_programs_have_colours_on_terminals_that_have_them(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.txt").write_text("(x: int32 -> x)")
    written = on_terminal("print", "program.txt", folder=tmp_path)
    assert seen(written) == ["(x -> x)"]
    (tmp_path / "program.txt").write_text("(x: int32 -> <a=0x7fc1:bfloat16,b=x>)")
    written = on_terminal("print", "program.txt", "--style", "typed", folder=tmp_path)
    assert "\x1b[38;5;32mint32\x1b[39m" in written
    arguments = ("print", "program.txt", "--style", "typed")
    without = on_terminal(*arguments, folder=tmp_path, NO_COLOR="1")
    dumb = on_terminal(*arguments, folder=tmp_path, TERM="dumb")
    assert seen(without) == seen(dumb) == seen(written)
    assert not any(COLOR.search(plain) for plain in (without, dumb))


def test_the_grammar_for_editors_is_the_lexer() -> None:
    path = ROOT / "docs" / "editors" / "tffc.tmLanguage.json"
    assert path.read_text() == textmate.grammar() + "\n", (
        "write it again: python -m tests.cli.textmate > docs/editors/tffc.tmLanguage.json"
    )
