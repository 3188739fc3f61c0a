"""The page of the grammar: every rule is there, with examples that parse."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.language.test_typed import GIVEN
from tffc.language import Reference
from tffc.language.notation import parse, sections, typed

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "notation.md"
BASIC = {"element type", "letter", "digit", "hex digit", "character"}
"""What the page names without a rule of its own."""


def rules() -> dict[str, tuple[str, str, list[str]]]:
    """For each rule its part of the page, its definition and its examples."""
    found = {}
    part = ""
    for piece in re.split(r"^(?=##)", PAGE.read_text(), flags=re.MULTILINE):
        if piece.startswith("## "):
            part = piece.split("\n", 1)[0].removeprefix("## ")
        if piece.startswith("### "):
            name = piece.split("\n", 1)[0].removeprefix("### ")
            blocks = dict(re.findall(r"```(ebnf|text)\n(.*?)\n```", piece, re.DOTALL))
            found[name] = part, blocks["ebnf"], blocks["text"].splitlines()
    return found


RULES = rules()
EXAMPLES = [
    (part, name, example) for name, (part, _, examples) in RULES.items() for example in examples
]


def test_every_rule_is_defined_under_its_heading_and_all_it_names_is_defined() -> None:
    for name, (_, definition, _) in RULES.items():
        left, right = re.sub(r"\s+", " ", definition).split(" = ", 1)
        assert left == name
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", right.removesuffix(";"))
        named = {word.strip() for word in re.split(r"[,|()\[\]{}]", bare)} - {""}
        assert named <= RULES.keys() | BASIC, name


@pytest.mark.parametrize(("part", "name", "example"), EXAMPLES)
def test_example(part: str, name: str, example: str) -> None:
    node = parse(f"&x:{example}" if part == "Types" else example, GIVEN)
    assert parse(typed(node), sections(node)) == node
    if part == "Types":
        assert isinstance(node, Reference)
        assert typed(node) == f"&x:{example}"


def test_program_at_the_top_is_printed_like_that() -> None:
    text = re.search(r"```text\n(\(arg.*?)\n```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    assert typed(parse(text[1], GIVEN)) == text[1]
