"""Interaction with pages in a real browser."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser import chromium, needs_chromium
from tests.explorer.browser import DESK, PHONE, Explored
from tests.explorer.conftest import ROUND, Describe
from tests.explorer.pages import NAMES, ROOT, write_pages
from tests.explorer.test_page import HOSTILE
from tffc.api.pages import explore
from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.policy import Policy, violations
from tffc.assurance.audit.report import Report
from tffc.cli.sources import read_round
from tffc.explorer.description import Older, refusal
from tffc.explorer.page import page
from tffc.support.errors import LanguageTypeError, Span

pytestmark = [
    pytest.mark.slow,
    needs_chromium,
]

AXE = ROOT / "tffc" / "explorer" / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("pages")
    write_pages(made)
    return made


Open = Callable[..., Explored]


@pytest.fixture
def opened(browser: Any, folder: pathlib.Path) -> Iterator[Open]:
    """Opens a page; checks at the end that its console is empty and that it has loaded nothing."""
    pages: list[Explored] = []

    def run(name: str, **options: Any) -> Explored:
        pages.append(Explored(browser, folder / f"{name}.html", **options))
        return pages[-1]

    yield run
    for each in pages:
        assert each.said == []
        assert len(each.requests) == 1
        each.context.close()


def box(title: str) -> str:
    return f'button.box:has(.box-title:text-is("{title}"))'


def test_the_round_is_shown_in_stages(opened: Open) -> None:
    small = opened("small")
    heads = small.page.locator(".band-head strong").all_inner_texts()
    assert heads == ["1 Prepare", "2 Broadcast", "3 Work", "4 Aggregate", "5 Update"]
    lefts = [
        small.page.locator(box(name)).bounding_box()["x"] for name in ("state", "sent", "size")
    ]
    assert lefts == sorted(lefts)
    assert "secure sum" in small.text(box("size"))
    assert "plain, by the system" in small.text(box("score"))
    assert small.text(".summary > div:nth-child(2)").split("\n")[1:] == [
        "● size · data.size · 4 B · secure sum",
        "◐ score · data.score, data.weight · 16 B · plain, by the system",
        "◐ max · state · 4 B · plain, by the system",
    ]


def test_a_box_lights_its_line_and_a_line_lists_what_it_became(opened: Open) -> None:
    small = opened("small")
    small.page.locator(box("score")).hover()
    assert small.page.locator(".line.lit").get_attribute("data-line") == "14"
    small.click('[data-line="13"] .line-number')
    assert "chosen" in (small.page.locator(box("size")).get_attribute("class") or "")
    assert small.text(".details h2").startswith("Line 13")
    assert "secure_sum_bitwidth" in small.text(".details")
    small.page.keyboard.press("Escape")
    assert small.count(".box.chosen") == 0


def test_an_aggregation_is_opened_into_its_steps(opened: Open) -> None:
    small = opened("small")
    small.click(box("score"))
    names = small.page.locator(".steps > li > strong").all_inner_texts()
    assert names == ["zero", "accumulate", "merge", "report"]
    assert "16 bytes" in small.text(".details .callout")
    small.click(".steps li:nth-child(2) .button")
    assert small.text(".crumbs") == "accumulate"
    assert small.count(".graph button.box") > 2


def test_passes_show_what_they_changed(opened: Open) -> None:
    small = opened("small")
    small.tab("Passes")
    assert small.text('.stepper [aria-pressed="true"] strong') == "call-dominant"
    assert small.count("ins.code") > 0
    assert small.count("del.code") > 0
    small.click(".stepper li:nth-child(1) button")
    assert "the same before and after" in small.text(".diff-pane")


def test_text_is_searched_and_filtered(opened: Open) -> None:
    small = opened("small")
    small.tab("Text")
    field = small.page.get_by_role("searchbox", name="Search the text")
    field.fill("federated_max")
    assert small.text(".text output") == "1 line"
    assert "federated_max" in small.text(".text-line.now")
    field.fill("no such thing")
    assert small.text(".text output") == "nothing found"
    field.fill("")
    small.page.get_by_label("Which stage").select_option("broadcast")
    assert small.lines() == ["fc_count_symbol_0=federated_broadcast(count_arg[0]),"]
    small.page.get_by_role("checkbox", name="types").check()
    assert any("int32@" in line for line in small.lines())


def test_a_call_is_found_in_the_text(opened: Open) -> None:
    small = opened("small")
    small.click(box("max"))
    small.click(".details .text-link")
    assert small.page.get_by_role("tab", name="Text").get_attribute("aria-selected") == "true"
    assert "federated_max" in small.text(".text-line.flash")


def test_functions_of_a_graph_are_folded_and_opened(opened: Open) -> None:
    sensors = opened("sensors")
    sensors.tab("Graphs")
    sensors.click('.graph-list button:has-text("work")')
    sensors.click(".graph button.box.calls")
    inside = sensors.page.locator(".node-info .button").first
    assert "node" in inside.inner_text()
    inside.click()
    assert sensors.text(".crumbs").startswith("work ▸ ")
    assert sensors.count(".graph button.box") > 0
    sensors.click(".crumbs .link")
    assert sensors.text(".crumbs") == "work"


def test_a_large_graph_is_opened_by_need(opened: Open) -> None:
    large = opened("large")
    large.tab("Graphs")
    shown = large.count(".graph button.box")
    assert 0 < shown < 70
    assert "of 20,0" in large.text(".panel.graphs .split > div > .hint")
    large.click(".graph .more")
    assert large.count(".graph button.box") > shown
    for _ in range(10):
        large.page.evaluate("document.querySelector('.graph .more').click()")
        assert large.count(".graph button.box") <= 70
    large.page.get_by_role("searchbox").fill("add")
    assert "20,000 nodes" in large.text(".hits")
    large.click(".hits .link")
    assert "AddV2" in large.text(".node-info h3")


VIEWS = {
    "Round": ("button.box.call", "button.box.fold", ".line.linked", ".details .text-link"),
    "Passes": (".stepper li:nth-child(2) button", ".diff-pane .gap"),
    "Graphs": (".graph button.box", ".graph .more", ".graph-list li:nth-child(2) button"),
    "Text": (".text-line.owned",),
    "Audit": (".audit .link",),
}
"""What can be clicked in each view."""


@pytest.mark.parametrize("name", NAMES)
def test_every_view_of_every_round_works(opened: Open, name: str) -> None:
    shown = opened(name)
    clicked: set[str] = set()
    for view, selectors in VIEWS.items():
        for selector in selectors:
            if shown.page.get_by_role("tab", name=view).count():
                shown.tab(view)
                found = shown.page.locator(f"{selector}:visible")
                if found.count():
                    found.first.click()
                    clicked.add(selector)
    # A round that is refused has its error, passes and text.
    assert len(clicked) >= (0 if name == "late" else 8)
    for field in shown.page.locator("input[type=search]").all():
        if field.is_visible():
            field.fill("a")
    shown.page.keyboard.press("Escape")


def test_many_calls_are_folded_and_opened(opened: Open) -> None:
    many = opened("many")
    folds = many.count("button.box.fold")
    assert 0 < many.count("button.box") < 70
    assert folds > 0
    before = many.count("button.box")
    many.click("button.box.fold")
    assert many.count("button.box") > before
    many.page.get_by_role("button", name="Fold again").click()
    assert many.count("button.box.fold") == folds


def test_a_refused_program_shows_its_lines(opened: Open) -> None:
    late = opened("late")
    assert "a broadcast depends on an aggregation" in late.text("[role=alert]")
    assert late.page.locator(".line.wrong").get_attribute("data-line") == "8"
    assert late.page.locator(".line.because").get_attribute("data-line") == "7"
    late.click(".chain .link")
    late.page.locator('.flash[data-line="7"]').wait_for()
    late.tab("Text")
    assert any("federated_broadcast" in line for line in late.lines())


def test_an_error_without_a_program_is_shown(
    browser: Any, described: Describe, tmp_path: pathlib.Path
) -> None:
    described()
    span = Span(str(tmp_path / "round.py"), 12)
    path = tmp_path / "refused.html"
    path.write_text(page(refusal(LanguageTypeError("E401", "no `sum`", span=span), "x").plain))
    shown = Explored(browser, path)
    assert "no sum" in shown.text("[role=alert]")
    assert shown.page.locator(".line.wrong").get_attribute("data-line") == "12"
    for key in "/?":
        shown.page.keyboard.press(key)
    assert shown.said == []
    shown.context.close()


def test_changes_since_an_older_version_are_shown(
    browser: Any, described: Describe, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "older.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    older = read_round(str(tmp_path / "older.py"), None).computation
    path = tmp_path / "since.html"
    path.write_text(page(described(older=Older(older)).plain))
    shown = Explored(browser, path)
    shown.tab("Changes")
    assert shown.text(".changed .rules .state") == "WIRE"
    assert "bound by 10" in shown.text(".changed .rules li")
    assert "bitwidth=12" in shown.text(".changed del")
    assert "bitwidth=10" in shown.text(".changed ins")
    shown.click(".changed .gap")
    shown.page.locator(".changed code", has_text="import collections").wait_for()
    shown.click(".changed .link")
    assert shown.page.get_by_role("tab", name="Round").get_attribute("aria-selected") == "true"
    assert shown.said == []
    shown.context.close()


def test_keys_lead_along_edges_and_through_views(opened: Open) -> None:
    small = opened("small")
    small.page.locator(box("state")).focus()
    small.page.keyboard.press("ArrowRight")
    assert focused(small) == "sent"
    small.page.keyboard.press("ArrowRight")
    assert focused(small) == "max"
    small.page.keyboard.press("Enter")
    assert small.text(".details h2").startswith("max")
    small.page.keyboard.press("ArrowLeft")
    assert focused(small) == "sent"
    small.page.keyboard.press("4")
    assert small.page.get_by_role("tabpanel", name="Text").is_visible()
    small.page.keyboard.press("/")
    assert small.page.evaluate("document.activeElement.type") == "search"
    small.page.keyboard.press("Escape")
    small.page.keyboard.press("?")
    assert small.page.get_by_role("dialog").is_visible()


def focused(opened: Explored) -> str:
    return opened.page.evaluate("document.activeElement.querySelector('.box-title').textContent")


def test_parts_have_roles_and_names(opened: Open) -> None:
    small = opened("small")
    names = [tab.inner_text() for tab in small.page.get_by_role("tab").all()]
    assert names == ["Round", "Passes", "Graphs", "Text", "Audit"]
    name = (
        "size secure_sum_bitwidth data.size ● secure sum , in Aggregate, clients to server, "
        "int32, 4 B, line 13"
    )
    assert small.page.get_by_role("button", name=name, exact=True).count() == 1
    assert small.page.get_by_role("button", name="Line 13: see what it became").count() == 1


def test_the_picture_can_have_the_whole_width(opened: Open) -> None:
    small = opened("small")
    whole = small.page.get_by_role("button", name="Whole width")
    if whole.get_attribute("aria-pressed") == "true":
        whole.click()
    before = small.page.locator(".picture").bounding_box()["width"]
    whole.click()
    assert small.page.locator(".picture").bounding_box()["width"] > 1.3 * before
    assert small.page.locator(".source").is_visible()


def test_the_theme_is_chosen(opened: Open) -> None:
    small = opened("small", color_scheme="dark")
    shade = "getComputedStyle(document.body).backgroundColor"
    dark = small.page.evaluate(shade)
    small.page.get_by_role("button", name="Theme").click()
    assert small.page.evaluate(shade) != dark


WIDTHS = {"desk": DESK, "small desk": {"width": 1280, "height": 900}, "phone": PHONE}

LAYOUT = (ROOT / "tests" / "explorer" / "layout.js").read_text()
"""Finds labels that lie on something, are cut or are small."""


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("name", ["small", "sensors", "long", "steps"])
def test_labels_can_be_read(opened: Open, name: str, size: str) -> None:
    shown = opened(name, viewport=WIDTHS[size])
    shown.page.wait_for_timeout(100)
    result = shown.page.evaluate(LAYOUT)
    assert result["found"] == []
    assert result["labels"] > 0
    # All of it is there without scrolling to the side.
    assert result["room"] <= 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[size]["width"]


def test_boxes_and_edges_name_the_data(opened: Open) -> None:
    small = opened("small")
    assert "data.score, data.weight" in " ".join(small.text(box("score")).split())
    labels = small.page.locator(".edge-label").all_text_contents()
    assert any("data.size" in label for label in labels)
    assert any("data.score" in label for label in labels)


def test_what_leaves_each_client_is_listed_where_nothing_is_chosen(opened: Open) -> None:
    small = opened("small")
    rows = small.page.locator(".details .channels tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["size", "score", "max"]
    assert "data.score, data.weight" in rows[1]
    small.click(".details .channels .link")
    assert small.text(".details h2").startswith("size")


def test_the_verdict_is_on_the_round_and_the_audit(
    browser: Any, described: Describe, tmp_path: pathlib.Path
) -> None:
    def report(audited: Audit) -> Report:
        policy = Policy(largest_bytes=4, path="policy.yaml", digest="ab" * 32)
        found = violations(audited, policy, datetime.date(2030, 1, 1))
        return Report("round.py:count", audited, {}, policy=policy, violations=found)

    path = tmp_path / "judged.html"
    path.write_text(page(described(report=report).plain))
    shown = Explored(browser, path)
    shown.click(".judged button")
    assert shown.page.get_by_role("tab", name="Audit").get_attribute("aria-selected") == "true"
    assert shown.text(".audit .verdict.bad h2") == "Violates the policy"
    assert "ab" * 32 in shown.text(".audit .facts")
    assert shown.text(".audit .broken h3") == "score"
    assert "tff.federated_mean(data.score" in shown.text(".audit .user-line")
    shown.click(".audit .broken .link")
    assert shown.page.get_by_role("tab", name="Round").get_attribute("aria-selected") == "true"
    assert shown.said == []
    shown.context.close()


def test_what_follows_of_privacy_is_on_the_audit(
    browser: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "private.html"
    explore("round.py", privacy={"rounds": 3}).save(path)
    shown = Explored(browser, path)
    shown.tab("Audit")
    text = shown.text("#privacy")
    assert "No differential privacy is claimed" in text
    assert "no noise is added to the sum" in text
    assert "a sum without noise" in text
    assert shown.said == []
    shown.context.close()


def test_components_that_are_not_proved_are_said_before_all_else(
    browser: Any, described: Describe, tmp_path: pathlib.Path
) -> None:
    def report(audited: Audit) -> Report:
        proof = {"answer": "different", "prover": 9, "reason": "the result[1] differs"}
        return Report("bundle", audited, {}, is_read_from_components=True, proof=proof)

    path = tmp_path / "forged.html"
    path.write_text(page(described(report=report).plain))
    shown = Explored(browser, path)
    assert "not proved to compute the program" in shown.text(".panel.round .verdict.doubtful")
    assert "the result[1] differs" in shown.text(".panel.round .verdict.doubtful")
    warned, drawn = (
        shown.page.locator(each).first.bounding_box()["y"]
        for each in (".panel.round .verdict", ".picture")
    )
    assert warned < drawn
    shown.tab("Audit")
    assert "not proved" in shown.text(".audit .verdict.doubtful")
    shown.context.close()


def test_a_phone_shows_stages_from_top_to_bottom(opened: Open) -> None:
    small = opened("small", viewport=PHONE, is_mobile=True, has_touch=True)
    tops = [small.page.locator(box(name)).bounding_box()["y"] for name in ("state", "sent", "size")]
    assert tops == sorted(tops)
    assert small.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_print_has_the_round_the_source_and_the_audit(opened: Open) -> None:
    small = opened("small")
    small.page.emulate_media(media="print")
    assert small.page.locator(".picture").is_visible()
    assert small.page.locator(".source").is_visible()
    assert small.page.locator(".audit h2", has_text="What leaves each client").is_visible()
    assert not small.page.get_by_role("tablist").is_visible()


@pytest.mark.parametrize("name", [each for each in HOSTILE if each.isprintable()])
def test_hostile_names_are_texts(
    browser: Any, described: Describe, tmp_path: pathlib.Path, name: str
) -> None:
    text = ROUND.replace(
        "DATA = collections.OrderedDict(",
        f"DATA = collections.OrderedDict(\n    **{{{name!r}: np.int32}},",
    )
    text = text.replace("bitwidth=10)", f"bitwidth=10)  # {name}")
    path = tmp_path / "hostile.html"
    path.write_text(page(described(text).plain))
    shown = Explored(browser, path)
    plain = Explored(browser, written(tmp_path / "plain.html", described))
    for each in (shown, plain):
        for tab in ("Passes", "Graphs", "Text", "Audit", "Round"):
            each.tab(tab)
        each.click(box("data"))
    assert name in shown.text(".lines")
    assert "".join(name.split()) in "".join(shown.text(".details").split())
    for tag in ("script", "img", "style", "b", "a[href]"):
        assert shown.count(tag) == plain.count(tag)
    assert shown.said == []
    shown.context.close()
    plain.context.close()


def written(path: pathlib.Path, described: Describe) -> pathlib.Path:
    path.write_text(page(described().plain))
    return path


def test_no_script_can_be_added_to_a_page(browser: Any, folder: pathlib.Path) -> None:
    small = Explored(browser, folder / "small.html")
    small.page.evaluate(
        """() => {
          const script = document.createElement("script");
          try { script.textContent = "window.ran = true"; document.body.append(script); } catch {}
          try { document.body.insertAdjacentHTML("beforeend", "<img src=x>"); } catch {}
          try { document.body.setAttribute("onclick", "window.ran = true"); } catch {}
          document.body.click();
        }"""
    )
    assert small.page.evaluate("window.ran") is None
    assert small.count("img") == 0
    small.context.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: npm ci in tffc/explorer/web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["small", "many", "late", "sensors"])
def test_axe_finds_no_violations(opened: Open, name: str, scheme: str) -> None:
    shown = opened(name, color_scheme=scheme, bypass_csp=True)
    shown.page.evaluate(AXE.read_text())
    tabs = [tab.inner_text() for tab in shown.page.get_by_role("tab").all()]
    found: list[str] = []
    for tab in tabs:
        shown.tab(tab)
        if tab == "Round" and name != "late":
            shown.click("button.box.protected, button.box.fold")
        result = shown.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for violation in result["violations"]:
            places = [node["html"][:150] for node in violation["nodes"][:3]]
            found.append(f"{tab}: {violation['id']}: {places}")
    assert found == []
