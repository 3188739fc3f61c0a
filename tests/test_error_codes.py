"""Every error has a code, a page that explains it, and a test that meets it."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re

import pytest

from tests.package_source import MODULES, nodes
from tests.processes import ROOT
from tffc.cli.flags import OPTIONS
from tffc.support.explanations import SUBJECTS, codes, read_page
from website.references import error_reference

CODE = re.compile(r"E\d{3}")


@functools.cache
def raised() -> collections.Counter[str]:
    """How often each code stands in the package as a string of its own."""
    found: collections.Counter[str] = collections.Counter()
    for path in MODULES:
        strings = (node.value for node in nodes(path) if isinstance(node, ast.Constant))
        found.update(s for s in strings if isinstance(s, str) and CODE.fullmatch(s))
    return found


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert codes() == sorted(raised())


def test_every_remedy_has_an_option_and_every_option_a_remedy() -> None:
    remedies = {
        str(node.value.value)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.keyword) and node.arg == "remedy"
        if isinstance(node.value, ast.Constant)
    }
    assert remedies == set(OPTIONS)


def test_every_code_is_met_by_a_test() -> None:
    texts = (path.read_text() for path in sorted((ROOT / "tests").rglob("*")) if is_test(path))
    met = {code for text in texts for code in CODE.findall(text)}
    assert sorted(set(raised()) - met) == []


def is_test(path: pathlib.Path) -> bool:
    return path.suffix in (".py", ".case") and path != pathlib.Path(__file__)


@pytest.mark.parametrize("code", codes())
def test_page(code: str) -> None:
    page = read_page(code)
    title, blank, *lines = page.text.splitlines()
    assert title == f"# {code}: {page.title}"
    assert blank == ""
    assert page.title
    assert not page.title.endswith(".")
    assert code[:2] in SUBJECTS
    assert max(map(len, lines)) <= 100
    assert page.text.endswith("\n")
    assert page.text.count("```") % 2 == 0


def test_the_reference_on_the_site_holds_every_code() -> None:
    lines = [line for line in error_reference().splitlines() if line.startswith("- ")]
    assert [CODE.findall(line)[0] for line in lines] == codes()
    page = (ROOT / "docs" / "errors.md").read_text()
    assert re.findall(r"^\| (E\d)xx", page, re.MULTILINE) == list(SUBJECTS)
