"""The site is built without warnings, its links lead somewhere, and it is searched from disk."""

from __future__ import annotations

import html.parser
import importlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

from tests.browser import needs_chromium, opened
from tests.processes import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("mkdocstrings") is None,
        reason="MkDocs is not installed: pip install '.[docs]'",
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The site, built as CI builds it."""
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert [line for line in ended.stderr.splitlines() if not line.startswith("INFO")] == []
    return folder


class Page(html.parser.HTMLParser):
    """What a page of HTML links to, what it loads, and the places in it that have a name."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag in ("a", "link") and "href" in given:
            (self.links if tag == "a" else self.loaded).add(given["href"])
        if "src" in given:
            self.loaded.add(given["src"])


def test_links_and_anchors_lead_somewhere(site: pathlib.Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 500
    broken: list[str] = []
    for path, page in pages.items():
        for link in page.links | page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or (path.name == "404.html" and link.startswith("/")):
                continue
            name = urllib.parse.unquote(parts.path)
            target = (path.parent / name).resolve() if name else path
            names = pages[target].names if target in pages else set()
            anchor = urllib.parse.unquote(parts.fragment)
            # An anchor that Material makes for the top of the page, and its own for colours.
            missing = anchor not in names if anchor and not anchor.startswith("__") else False
            if not target.is_file() or missing:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_pages_load_nothing_from_elsewhere(site: pathlib.Path) -> None:
    outside = {
        f"{path.relative_to(site)}: {source}"
        for path in site.rglob("*.html")
        for source in Page(path).loaded
        if urllib.parse.urlsplit(source).netloc
    }
    assert outside == set()


def test_every_public_name_is_in_the_reference(site: pathlib.Path) -> None:
    public = importlib.import_module("tffc").__all__
    names = {name for path in (site / "api").glob("*.html") for name in Page(path).names}
    found = {name.rsplit(".", 1)[-1] for name in names}
    modules = {path.stem.split(".")[1] for path in (site / "api").glob("tff.*.html")}
    assert [name for name in public if name not in found | modules] == []


def test_references_are_on_the_site(site: pathlib.Path) -> None:
    assert "tffc-golden-review" in Page(site / "commands.html").names
    assert "errors/E471.html" in Page(site / "errors.html").links
    assert (site / "errors" / "E471.html").is_file()


def test_programs_are_coloured(site: pathlib.Path) -> None:
    page = (site / "notation.html").read_text(encoding="utf-8")
    assert '<span class="nb">federated_mean</span>' in page
    plain = (site / "getting-started.html").read_text(encoding="utf-8")
    assert "error[E471]: the value to sum must be at CLIENTS" in plain


@needs_chromium
@pytest.mark.parametrize(
    ("name", "box"),
    [("explore.html", "metrics"), ("tutorials/secure-analytics.html", "seconds")],
)
def test_rounds_are_shown_in_pages(site: pathlib.Path, name: str, box: str) -> None:
    with opened(site / name) as found:
        found.page.locator("iframe.explorer").scroll_into_view_if_needed()
        round_ = found.page.frame_locator("iframe.explorer")
        round_.get_by_role("button", name=re.compile(f"{box}.*in Aggregate")).wait_for()
        assert (found.asked_for, found.complaints) == ([], [])


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_search_works_from_disk_without_a_network(
    site: pathlib.Path, width: int, scheme: str
) -> None:
    with opened(site / "index.html", width=width, scheme=scheme) as found:
        page = found.page
        if width < 1000:
            page.click("label.md-header__button[for=__search]")
        page.click("input[name=query]")
        page.keyboard.type("a value beyond the bounds of a secure sum")
        page.wait_for_selector(".md-search-result__item a")
        shown = page.locator(".md-search-result__item h1").all_inner_texts()
        assert any("E735" in title for title in shown[:3])
        page.locator(".md-search-result__item a", has_text="E735").first.click()
        page.wait_for_url("**/errors/E735.html*")
        assert "secure sum" in page.inner_text("article h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (found.asked_for, found.complaints) == ([], [])
