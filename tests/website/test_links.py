"""Links between the pages of the repository lead somewhere, as GitHub shows them."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from tests.processes import ROOT
from website.anchors import anchors, links, slug

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "tffc/**/*.md", "website/**/*.md")
    for path in ROOT.glob(pattern)
    if ".venv" not in path.parts
)


def broken(page: pathlib.Path, root: pathlib.Path = ROOT) -> list[str]:
    """The links of a page to files that are not there, or to headings that these do not have."""
    found: list[str] = []
    for link in links(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if re.match(r"\w+:", link):
            continue
        there = target.exists() and target.is_relative_to(root)
        if not there or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


def test_links_lead_to_what_is_there() -> None:
    assert len(PAGES) > 250
    assert {str(page): found for page in PAGES if (found := broken(page))} == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## Which `way`?\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n[a](other.md) [b](other.md#which-way) [c](other.md#twice-1) [d](#page)\n"
        "[e](https://example.org/gone) ![f](gone.svg) [g](other.md#gone) [h](#gone) [i](../x.md)\n"
        "`[no](no.md)`\n\n```text\n[no](no.md)\n# No\n```\n"
    )
    assert broken(page, tmp_path) == ["gone.svg", "other.md#gone", "#gone", "../x.md"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Try it", "try-it"),
        ("A program, from Python to numbers", "a-program-from-python-to-numbers"),
        ("tffc golden check", "tffc-golden-check"),
        ("TFF's own libraries", "tffs-own-libraries"),
        ("E1 - and E2", "e1---and-e2"),
        ("run_folder.py", "run_folderpy"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    todo, found = [settings["nav"]], set[str]()
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            found.add(item)
        else:
            todo.extend(item.values() if isinstance(item, dict) else item)
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - found == set(), "put the page under `nav` in mkdocs.yml"
