"""The report of a run: what it says, that no text in it is markup, and that it stays the same."""

from __future__ import annotations

import dataclasses
import html.parser
import math
import pathlib
import re
from typing import Any

import pytest

from tests.browser import needs_chromium, opened
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.command_record import CommandRecord
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.observed import Observed
from tffc.runtime.runs.report import RunReport
from tffc.runtime.runs.report_page import MOST_PANELS, MOST_POINTS, MOST_ROWS, report_page
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.runs.run_record import StateOrigin

HOSTILE = (
    "<script>alert(1)</script>\"' onload='alert(2)' &lt; javascript:alert(3) </title>\u202e\x1b[m"
)


def a_report(
    rows: list[MetricsRow], observed: list[Observed] | None = None, name: str = "build/run"
) -> RunReport:
    source = SourceIdentity("npz", {"columns": "x"}, ["ada", "eve"], {"ada.npz": "0" * 64})
    identity = RunIdentity("mapreduce", {"computation": "1" * 64}, Sampling(1, 7), True, source)
    return RunReport.in_memory(name, identity, rows, observed or [])


def seen(number: int, skipped: tuple[str, ...] = (), **parts: float) -> Observed:
    named = {name.replace("_", " "): seconds for name, seconds in parts.items()}
    return Observed(number, 0.5, None, 2 if parts else None, named, skipped)


class Text(html.parser.HTMLParser):
    """The text of a page, the tags in it and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"] and data.strip():
            self.said.append(data.strip())


def said(report: RunReport) -> list[str]:
    return Text(report_page(report)).said


def after(words: list[str], word: str, count: int = 1) -> list[str]:
    at = words.index(word) + 1
    return words[at : at + count]


def test_it_says_what_the_rounds_were_as_a_whole() -> None:
    rows = [MetricsRow(n, 10 - n, n, {"loss": 1 / n}) for n in (1, 2)]
    words = said(a_report(rows, [seen(1, ("eve",)), seen(2, ("eve", "bob"))]))
    assert after(words, "rounds") == ["2"]
    assert after(words, "clients a round") == ["8 to 9"]
    assert after(words, "left out") == ["3"]
    assert after(words, "time in all") == ["1 s"]
    assert after(words, "clients a second") == ["17"]
    assert "loss, from 1 in round 1 to 0.5 in round 2" in words


def test_clients_that_were_left_out_are_named_with_their_rounds() -> None:
    rows = [MetricsRow(n, 1, 2, {}) for n in (1, 2)]
    words = said(a_report(rows, [seen(1, ("eve", "bob")), seen(2, ("eve",))]))
    head = after(words, "rounds", 2 * 3 + 3 + 1)
    assert words[words.index("Clients left out") + 1 :][:3] == ["client", "times", "rounds"]
    assert words[words.index("Clients left out") + 4 :][:6] == ["eve", "2", "1, 2", "bob", "1", "1"]
    assert "Of 1 times it was not kept who was left out." in words, head
    assert "None." in said(a_report([MetricsRow(1, 1, 0, {})]))


def test_it_says_where_the_time_went() -> None:
    row = MetricsRow(1, 4, 0, {})
    words = said(a_report([row], [seen(1, computing_in_batches=0.5, reading_data=0.25)]))
    assert "Time of 1 rounds, of 2 workers together:" in words
    assert after(words, "share", 9) == [
        *("reading data", "250.0", "25%"),
        *("computing in batches", "500.0", "50%"),
        *("waiting, and Python between", "250.0", "25%"),
    ]
    assert "The engine did not tell where the time went." in said(a_report([row], [seen(1)]))
    assert "How long the rounds took was not kept." in said(a_report([row]))


def test_it_says_what_the_run_is() -> None:
    words = said(a_report([MetricsRow(1, 1, 0, {})]))
    assert after(words, "What the run is", 12) == [
        *("form", "mapreduce", "clients a round", "1, drawn by the seed 7"),
        *("data that cannot be read", "is left out"),
        *("data", "npz, 2 clients, 1 files; columns=x"),
        *("SHA-256 of clients and files", words[words.index("SHA-256 of computation") - 1]),
        *("SHA-256 of computation", "1" * 64),
    ]


COMMAND = CommandRecord(
    "2026-11-28T09:30:00Z", "0.1.0", "line.py:training", "tffc run line.py:training --out '<b>'"
)


def test_it_says_how_it_was_run() -> None:
    rows = [MetricsRow(1, 1, 0, {}), MetricsRow(2, 1, 0, {})]
    ended = [dataclasses.replace(seen(n), at=f"2026-11-28T10:0{n}:00Z") for n in (1, 2)]
    report = a_report(rows, ended)
    again = dataclasses.replace(COMMAND, at="2026-11-29T00:00:00Z", command="tffc run --resume")
    words = said(dataclasses.replace(report, commands=(COMMAND, again)))
    assert "line.py:training: mapreduce, on data of 2 clients." in words
    assert after(words, "How it was run", 14) == [
        *("program", "line.py:training"),
        *("command", "tffc run line.py:training --out '<b>'"),
        *("begun", "2026-11-28 09:30:00 UTC"),
        *("resumed", "once, last on 2026-11-29 00:00:00 UTC"),
        *("last command", "tffc run --resume"),
        *("round 2 finished", "2026-11-28 10:02:00 UTC"),
        *("tffc", "0.1.0"),
    ]


def test_a_folder_of_an_earlier_version_does_not_say_how_it_was_run() -> None:
    words = said(a_report([MetricsRow(1, 1, 0, {})], [seen(1)]))
    assert after(words, "How it was run", 10) == [
        *("program", "not known", "command", "not known", "begun", "not known"),
        *("round 1 finished", "not known", "tffc", "not known"),
    ]


@pytest.mark.parametrize(
    ("program", "whose"),
    [
        ("1" * 64, "of this program after round 3"),
        ("2" * 64, "of another program after round 3"),
        (None, "from a file"),
    ],
)
def test_it_says_where_the_first_state_is_from(program: str | None, whose: str) -> None:
    report = a_report([MetricsRow(4, 1, 0, {}), MetricsRow(5, 1, 0, {})])
    record = dataclasses.replace(report.record, origin=StateOrigin(program, 3, "3" * 64))
    words = said(dataclasses.replace(report, record=record))
    assert after(words, "first state", 3) == [whose, "SHA-256 of the first state's file", "3" * 64]
    assert after(words, "rounds") == ["4 to 5"]


def test_an_evaluation_shares_the_panel_of_its_name() -> None:
    measured = {"loss": 0.5, "other": 1.0}
    rows = [MetricsRow(n, 1, 0, {"loss": 1.0, "evaluation.odd": 2.0}, measured) for n in (1, 2)]
    page = report_page(a_report(rows))
    assert re.findall(r'aria-label="([^",]+), from', page) == [
        "loss",
        "evaluation.odd",
        "evaluation.other",
    ]
    assert page.count("curve-1") == 2, "in the style, and once drawn"
    assert after(said(a_report(rows)), "round", 20).count("evaluation") == 1


def test_a_run_without_a_round_says_so() -> None:
    words = said(a_report([]))
    assert "mapreduce, on data of 2 clients. No round is finished." in words
    assert "No round has put out a number." in words


@pytest.mark.parametrize("text", [HOSTILE, "</svg><script>x</script>", "]]>", "--><b>", "\ud800"])
def test_no_text_becomes_markup(text: str) -> None:
    usual = Text(report_page(a_report([MetricsRow(1, 1, 1, {"x": 1.0})], [seen(1, ("x",))])))
    rows = [MetricsRow(1, 1, 1, {text: 1.0})]
    page = report_page(a_report(rows, [seen(1, (text,))], name=text))
    found = Text(page)
    assert found.tags == usual.tags
    assert found.attributes.keys() == usual.attributes.keys()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800]", page)


def test_the_page_asks_for_nothing_and_may_run_nothing() -> None:
    found = Text(report_page(a_report([MetricsRow(1, 1, 0, {"x": 1.0})])))
    policy, _, referrer = found.attributes["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert referrer == "no-referrer"
    assert "unsafe" not in policy
    assert not {"script", "link", "img", "iframe"} & {*found.tags}
    assert not {"src", "href", "style", "onclick", "onload"} & found.attributes.keys()


def test_long_runs_have_short_pages() -> None:
    rows = [MetricsRow(n, 1, 0, {"x": math.sin(n / 50), "y": 1.0}) for n in range(1, 50_001)]
    page = report_page(a_report(rows))
    (points, _) = re.findall(r'points="([^"]+)"', page)
    assert len(points.split()) <= MOST_POINTS
    assert page.count("<tr>") < MOST_ROWS + 20
    assert f"The last {MOST_ROWS} rounds" in page
    assert len(page) < 100_000


def test_extremes_of_a_long_curve_are_drawn() -> None:
    values = [0.0] * 10_000
    values[7_777] = 8.0
    rows = [MetricsRow(n, 1, 0, {"x": value}) for n, value in enumerate(values, 1)]
    points = re.findall(r'points="([^"]+)"', report_page(a_report(rows)))[0].split()
    heights = {float(point.split(",")[1]) for point in points}
    assert heights == {30.0, 180.0}


def test_of_many_metrics_some_are_drawn() -> None:
    row = MetricsRow(1, 1, 0, {f"m{number}": 1.0 for number in range(MOST_PANELS + 5)})
    words = said(a_report([row]))
    assert "5 more are in the table of the run." in words


def test_the_same_report_gives_the_same_page() -> None:
    def page() -> str:
        rows = [MetricsRow(n, 3, 1, {"x": n / 3}) for n in range(1, 9)]
        return report_page(a_report(rows, [seen(n, ("eve",), reading_data=0.1) for n in (1, 2)]))

    assert page() == page()


def many_metrics() -> dict[str, Any]:
    return {f"layer {number}/weight norm <b>": number / 7 for number in range(12)}


AXE = pathlib.Path(__file__).parents[3] / "tffc/explorer/web/node_modules/axe-core/axe.min.js"


@pytest.mark.slow
@needs_chromium
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: npm ci in tffc/explorer/web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations(tmp_path: pathlib.Path, scheme: str) -> None:
    rows = [MetricsRow(n, 9, 1, {"loss": 1 / n}, {"loss": 2 / n}) for n in range(1, 60)]
    path = tmp_path / "report.html"
    path.write_text(report_page(a_report(rows, [seen(1, ("eve",), reading_data=0.2)])))
    with opened(path, scheme=scheme, bypass_csp=True) as found:
        found.page.evaluate(AXE.read_text())
        result = found.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [each["id"] for each in result["violations"]] == []


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    ("width", "scheme", "back"),
    [(1280, "light", "rgb(255, 255, 255)"), (1280, "dark", "rgb(13, 17, 23)"), (360, "light", "")],
)
def test_in_a_browser(tmp_path: pathlib.Path, width: int, scheme: str, back: str) -> None:
    rows = [
        MetricsRow(n, 9, 1, {HOSTILE: 1 / n, **many_metrics()}, {HOSTILE: 2 / n})
        for n in range(1, 60)
    ]
    report = a_report(rows, [seen(n, (HOSTILE,), reading_data=0.2) for n in range(1, 60)])
    path = tmp_path / "report.html"
    path.write_text(report_page(report))
    with opened(path, width=width, scheme=scheme) as found:
        page = found.page
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("[...document.querySelectorAll('svg text')].every(t => t.isConnected)")
        assert page.locator("svg[role=img]").count() == 1 + 12 + 2
        # The policy lets the page's own style in.
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back in ("", color)
        smallest = page.evaluate(
            "Math.min(...[...document.querySelectorAll('svg text')]"
            ".map(each => each.getBoundingClientRect().height || 99))"
        )
        assert smallest >= 9
        assert page.evaluate("document.scripts.length") == 0
        assert (found.asked_for, found.complaints) == ([], [])
