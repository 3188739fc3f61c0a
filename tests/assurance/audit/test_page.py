"""The page of an audit: what it says, and that it says all that the report says."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import html.parser
import pathlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tests.assurance.audit.rounds import round_of
from tffc.assurance.audit.audit import Audit, Depends, Effect, audit
from tffc.assurance.audit.documents import audit_html
from tffc.assurance.audit.leaves import below, gathered
from tffc.assurance.audit.page import audit_page
from tffc.assurance.audit.policy import Policy, Waiver, violations
from tffc.assurance.audit.report import Report, document
from tffc.support.errors import Span
from tffc.support.printable import printable

PERSON = collections.OrderedDict(age=np.int32, zip=np.int32, user=np.int32)
STATE = collections.OrderedDict(a=np.int32, b=np.int32)
TODAY = datetime.date(2030, 1, 1)
DIGEST = "0123456789abcdef" * 4


def sums(data: Any) -> Any:
    ages = tff.federated_secure_sum_bitwidth(data.age, bitwidth=8)
    zips = tff.federated_sum(data.zip)
    return ages, zips, tff.federated_max(data.zip)


def small(data: Any = PERSON) -> Audit:
    return audit(round_of(sums, data, STATE).node, "distribute-aggregate")


def report(policy: Policy | None = None, audited: Audit | None = None, **more: Any) -> Report:
    audited = audited or small()
    broken = () if policy is None else violations(audited, policy, TODAY)
    digests = {"computation": DIGEST}
    return Report("module.py:training", audited, digests, policy=policy, violations=broken, **more)


def strict() -> Policy:
    """Return a policy that one channel violates under an exception, and two without."""
    zips = next(each for each in small().channels if each.name == "zips")
    held, ended = (
        Waiver(zips.name, zips.content, rule, reason, day)
        for rule, reason, day in (
            ("protection", "reviewed in May", datetime.date(2031, 1, 1)),
            ("operators", "only for the pilot", datetime.date(2029, 1, 1)),
        )
    )
    return Policy(
        operators=("federated_secure_sum_bitwidth",),
        protection=tff_protection("SECURE"),
        exceptions=(held, ended),
        path="policies/strict.yaml",
        digest="fedcba9876543210" * 4,
    )


def tff_protection(name: str) -> Any:
    from tffc.assurance.audit.audit import Protection

    return Protection[name]


class Read(html.parser.HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: list[str] = []
        self.feed(page.partition("</style>")[2] if "</style>" in page else page)
        self.text = "".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))
        self.texts.append("" if tag == "wbr" else " ")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def classes(self) -> list[str]:
        return [
            value or "" for _, attrs in self.elements for name, value in attrs if name == "class"
        ]


def page_of(judged: Report) -> Read:
    return Read(audit_html(judged))


@pytest.mark.parametrize(
    ("policy", "title", "kind"),
    [
        (None, "No policy was applied", "open"),
        (Policy(path="p.yaml"), "Passes the policy", "good"),
        (strict(), "Violates the policy", "bad"),
    ],
)
def test_the_verdict_is_first(policy: Policy | None, title: str, kind: str) -> None:
    page = page_of(report(policy))
    assert next(each for each in page.classes() if "verdict" in each) == f"verdict {kind}"
    assert page.text.index(title) < page.text.index("What leaves each client")


def test_digests_of_program_policy_and_tool_are_there() -> None:
    judged = report(strict())
    text = page_of(judged).text
    tool = document(judged)["tool"]
    for expected in (DIGEST, "fedcba9876543210" * 4, tool["digest"], f"tffc {tool['version']}"):
        assert expected in text
    assert "strict.yaml" in text
    assert "/strict.yaml" in text  # the folder is below the working directory


def test_violations_are_grouped_by_channel_with_the_line() -> None:
    page = audit_html(report(strict()))
    (group,) = re.findall(
        r'<article class="entry broken"><div><h3>zips.*?</article>', page, re.DOTALL
    )
    shown = Read(group).text
    assert "zips = tff.federated_sum(data.zip)" in shown
    assert "test_page.py:" in shown
    assert "allowed: reviewed in May" in shown
    assert "the exception ended on 2029-01-01" in shown
    assert group.count("state bad") == group.count("state good") == 1
    assert '<span class="ended">' in group


def test_exceptions_have_reason_end_and_state() -> None:
    page = audit_html(report(strict()))
    assert '<span class="state good">in use, until 2031-01-01</span>' in page
    assert '<span class="state bad">ended on 2029-01-01</span>' in page
    assert "only for the pilot" in page


def test_what_whoever_aggregates_sees_and_what_stays() -> None:
    text = " ".join(page_of(report()).text.split())
    seen = ", ".join(small().seen_by_aggregator)
    assert f"Seen of each client by whoever aggregates {seen}" in text.replace(" ,", ",")
    assert "In no channel data.user" in text


def test_what_clients_show_is_an_effect_with_its_sources() -> None:
    shown = Effect(
        "clients", "shown", "PrintV2", None, Depends(elements=("data.user",)), "0123456789"
    )
    quiet = dataclasses.replace(shown, side="server")
    page = audit_html(report(audited=dataclasses.replace(small(), effects=(shown, quiet))))
    entries = re.findall(r'<article class="entry (\w*)"><div><h3>PrintV2.*?</article>', page)
    assert entries == ["none", ""]
    (entry,) = re.findall(r'<article class="entry none"><div><h3>PrintV2.*?</article>', page)
    text = " ".join(Read(page).text.split())
    assert "In no channel data.user Of these, in effects at the clients data.user" in text
    assert "in effects at the clients" not in page_of(report()).text
    assert "outside any channel" in entry
    assert "data.user" in Read(entry).text


def test_a_bundle_that_is_not_proved_is_said_to_be_read_from_components() -> None:
    proof = {"answer": "different", "prover": 9, "reason": "the result[1] differs"}
    page = page_of(report(is_read_from_components=True, proof=proof))
    assert "verdict doubtful" in page.classes()
    assert "not proved to compute the program" in page.text
    assert "the result[1] differs" in page.text
    assert "approve the components" in page.text
    proved = page_of(report(proof={"answer": "proved", "prover": 9, "reason": None}))
    assert "verdict doubtful" not in proved.classes()
    assert "approve the program" in proved.text


def test_no_folder_of_the_author_is_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "secret_folder" / "module.py"
    span = Span(str(file), 7)
    audited = small()
    channels = tuple(dataclasses.replace(each, span=span) for each in audited.channels)
    judged = report(audited=dataclasses.replace(audited, channels=channels))
    page = audit_html(dataclasses.replace(judged, source=f"{file}:training"))
    assert "secret_folder" not in page
    assert "<title>training · audit</title>" in page
    assert "module.py:7" in Read(page).text


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a document, but not its keys."""
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from texts(each)
        case list() | tuple():
            for each in value:
                yield from texts(each)


SAID_OTHERWISE = {
    "secure": "secure sum",
    "system": "aggregated by the system",
    "none": "released by itself",
    "program": "the program",
    "violated": "violation",
}
"""Words of the document that the page says in more words."""


@pytest.mark.parametrize("policy", [None, strict(), Policy(path="p.yaml", digest="ab" * 32)])
def test_the_page_says_all_that_the_document_says(policy: Policy | None) -> None:
    content = document(report(policy, as_of=TODAY if policy else None))
    said = " ".join(Read(audit_page(content)).text.split())
    file, name = content.pop("source").split(":")
    assert f"{name} {file}" in said
    # The page has each part of these.
    verdict = content.pop("verdict")
    assert verdict["until"] is None or verdict["until"] in said
    for each in content["violations"]:
        del each["text"]
    for text in texts(content):
        expected = " ".join(SAID_OTHERWISE.get(text, text).split())
        assert expected in said, expected


HOSTILE = (
    "</code><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt;&amp;&#60;",
    "</style><style>*{display:none}",
    "\u202e\u2028\x1b[2J",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_never_markup(name: str) -> None:
    def renamed(value: Any, other: str) -> Any:
        match value:
            case str():
                return value.replace("zip", other)
            case dict():
                return {key: renamed(each, other) for key, each in value.items()}
            case list() | tuple():
                return [renamed(each, other) for each in value]
            case _:
                return value

    content = document(report(strict(), as_of=TODAY))
    count = len(content["violations"])
    hostile, plain = (
        audit_page(renamed(content, each), [each] * count) for each in (name, "plain")
    )
    tags = [[tag for tag, _ in Read(page).elements if tag != "wbr"] for page in (hostile, plain)]
    attributes = [[attrs for _, attrs in Read(page).elements if attrs] for page in (hostile, plain)]
    assert tags[0] == tags[1]
    assert [a for a in attributes[0] if a[0][0] == "class"] == [
        a for a in attributes[1] if a[0][0] == "class"
    ]
    assert printable(name) in Read(hostile).text


def test_the_page_is_the_same_every_time_and_loads_nothing() -> None:
    first, second = (audit_html(report(strict())) for _ in range(2))
    assert first == second
    assert "<script" not in first
    assert "default-src 'none'" in first
    assert re.findall(r"https?://|url\(", first) == []


def test_a_part_is_named_for_all_its_leaves_only() -> None:
    leaves = below(["state.a.x", "state.a.y", "state.b", "output"])
    assert gathered(["state.a.x", "state.a.y"], leaves) == [("state.a", 2)]
    assert gathered(["state.a.x", "state.b"], leaves) == [("state.a.x", 1), ("state.b", 1)]
    assert gathered(["state.a.y", "state.b", "state.a.x"], leaves) == [("state", 3)]
    # The same name of something else, such as a parameter called `output`.
    assert gathered(["output.c", "output.d"], leaves) == [("output.c", 1), ("output.d", 1)]


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(".".join)


@given(st.sets(PATHS, min_size=1), st.data())
def test_gathered_names_stand_for_exactly_the_same_leaves(
    paths: set[str], data: st.DataObject
) -> None:
    leaves = sorted(p for p in paths if not any(o.startswith(f"{p}.") for o in paths))
    chosen = data.draw(st.lists(st.sampled_from(leaves), unique=True))
    shown = gathered(chosen, below(leaves))
    covered = Counter(
        leaf for name, _ in shown for leaf in leaves if leaf == name or leaf.startswith(f"{name}.")
    )
    assert set(covered) == set(chosen)
    assert set(covered.values()) <= {1}
    assert sum(count for _, count in shown) == len(chosen)
