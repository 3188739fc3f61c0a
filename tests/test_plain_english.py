"""What people read is written in one plain way."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

from tests.processes import ROOT

MODULES = sorted((ROOT / "tffc").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tffc/explanations/*.md")])
NAMED = {"property", "cached_property", "setter"}
"""Decorators of functions that are used, and so described, like values."""

NOT_VERBS = re.compile(
    "A|All|An|As|Both|Each|Every|For|How|It|No|Of|One|Some|That|The|These|This|Those|Two|What|When|"
    "Where|Whether|Which|Who|Why|With"
)
"""Words that docstrings begin with which say what is returned, and not that it is."""


def docstrings_of_functions(path: pathlib.Path) -> Iterator[tuple[int, str]]:
    """The lines and the docstrings of the functions of a module, those of properties left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(each).rsplit(".", 1)[-1] for each in node.decorator_list}
            text = ast.get_docstring(node)
            if text and not decorators & NAMED:
                yield node.lineno, text


def begins_with_a_verb(text: str) -> bool:
    """Whether the first word can be a verb in the imperative."""
    word = text.split()[0].rstrip(",:;.")
    third_person = word.endswith("s") and not word.endswith("ss")
    return word.isalpha() and word.istitle() and not third_person and not NOT_VERBS.fullmatch(word)


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in MODULES
        for line, text in docstrings_of_functions(path)
        if not begins_with_a_verb(text)
    ] == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Return the section.", True),
        ("Pass it on.", True),
        ("The section.", False),
        ("Whether it is one.", False),
        ("Writes the section.", False),
        ("`f` at a place.", False),
    ],
)
def test_what_can_be_a_verb(text: str, is_one: bool) -> None:
    assert begins_with_a_verb(text) is is_one


def test_cannot_is_one_word() -> None:
    assert [
        str(path.relative_to(ROOT))
        for path in (*MODULES, *PAGES)
        if re.search(r"\b[Cc]an\s+not\b(?! only)", path.read_text(encoding="utf-8"))
    ] == []


NOT_ONE = re.compile(
    r"\b(?:is|are|was|were|be)\s+no\s+(?!longer|more|less|fewer|other|wider|taller)[a-z]\w*", re.I
)
"""`is no X` for `is not an X`; `there is no X` is plain."""

THERE = re.compile(r"\b[Tt]here(\s+(can|may|has|have|is|to|would|must))*\s+$")


def test_what_is_not_something_is_said_so() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (*MODULES, *PAGES)}
    assert [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in texts.items()
        for match in NOT_ONE.finditer(text)
        if not THERE.search(text[: match.start()])
    ] == []


def test_cannot_is_one_word_in_the_names_of_tests() -> None:
    names = (
        f"{path.name}: {match[0]}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for match in re.finditer(r"def test_\w*can_not\w*", path.read_text(encoding="utf-8"))
    )
    assert list(names) == []
