"""The page of an audit in a real browser: on a phone, on paper, in the dark."""

from __future__ import annotations

import datetime
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.assurance.audit.test_page import report, strict
from tests.browser import Opened, chromium, needs_chromium
from tests.explorer.pages import FIELDS, LONG, ROOT
from tests.explorer.test_browser import AXE
from tffc.assurance.audit.audit import Protection, audit
from tffc.assurance.audit.documents import audit_html
from tffc.assurance.audit.policy import Policy, violations
from tffc.assurance.audit.report import Report
from tffc.cli.sources import read_round

pytestmark = [pytest.mark.slow, needs_chromium]

NARROW = {"width": 360, "height": 780}
A4 = {"format": "A4", "prefer_css_page_size": True}
EXAMPLES = (
    "temperature/temperature.py:mean_temperature",
    "quantiles/quantiles.py:search",
    "digits/federated_averaging.py:training",
)
POLICY = Policy(
    largest_bytes=20_000,
    least_clients=3,
    effects={"clients": (), "server": ()},
    protection=Protection.SYSTEM,
    path="policy.yaml",
    digest="0123456789abcdef" * 4,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def judged(source: str, policy: Policy) -> str:
    """Return the page of the audit of a round under a policy."""
    audited = audit(read_round(source, "mapreduce").computation, "mapreduce")
    broken = violations(audited, policy, datetime.date(2030, 1, 1))
    digests = {"computation": "0123456789abcdef" * 4}
    return audit_html(Report(source, audited, digests, policy=policy, violations=broken))


@pytest.fixture
def long(tmp_path: pathlib.Path) -> pathlib.Path:
    """The page of a round of twelve channels with long names, which violates its policy."""
    (tmp_path / "long.py").write_text(LONG)
    path = tmp_path / "long.html"
    policy = Policy(protection=Protection.SECURE, path=f"{'policy_of_' * 8}.yaml")
    path.write_text(judged(str(tmp_path / "long.py"), policy))
    return path


@pytest.mark.parametrize("size", [NARROW, {"width": 1280, "height": 900}])
def test_nothing_is_wider_than_the_screen(
    browser: Any, long: pathlib.Path, size: dict[str, int]
) -> None:
    shown = Opened(browser, long, viewport=size)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    cut = shown.page.evaluate(
        "() => [...document.querySelectorAll('main *')].filter((each) =>"
        " each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML)"
    )
    assert cut == []
    assert all(field in shown.page.locator("main").text_content() for field in FIELDS)
    assert shown.said == []
    assert len(shown.requests) == 1
    shown.context.close()


def test_entries_have_one_width(browser: Any, long: pathlib.Path) -> None:
    shown = Opened(browser, long, viewport={"width": 1280, "height": 900})
    widths = {
        round(each.bounding_box()["width"])
        for each in shown.page.locator(".entry, .rules, table, .verdict, .approval").all()
    }
    assert len(widths) == 1
    shown.context.close()


def test_an_exception_that_has_ended_is_red(browser: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(audit_html(report(strict())))
    shown = Opened(browser, path, color_scheme="light")
    colors = {
        name: shown.page.locator(f".rules .state:has-text('{name}')").first.evaluate(
            "(each) => getComputedStyle(each).color"
        )
        for name in ("ended on", "in use")
    }
    red, green = (tuple(map(int, re.findall(r"\d+", color))) for color in colors.values())
    assert red[0] > 2 * max(red[1:])
    assert green[1] > max(green[0], green[2])
    shown.context.close()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_ordinary_program_prints_on_one_page(
    browser: Any, tmp_path: pathlib.Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "page.html"
    path.write_text(judged(f"examples/{name}", POLICY))
    shown = Opened(browser, path)
    printed = shown.page.pdf(**A4)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    shown.page.emulate_media(media="print")
    for label in ("Name", "Date", "Signature"):
        assert shown.page.locator(".signed div", has_text=label).is_visible()
    shown.context.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: npm ci in tffc/explorer/web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations(browser: Any, long: pathlib.Path, scheme: str) -> None:
    shown = Opened(browser, long, color_scheme=scheme, bypass_csp=True)
    shown.page.evaluate(AXE.read_text())
    result = shown.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    problems = [
        f"{each['id']}: {[node['html'][:150] for node in each['nodes'][:3]]}"
        for each in result["violations"]
    ]
    assert problems == []
    shown.context.close()
