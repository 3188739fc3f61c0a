"""HTML of objects in notebooks: complete, self-contained, and safe against hostile names."""

from __future__ import annotations

import html.parser
import re
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.api.counting import PROCESS, one_round
from tffc.api.runs import FinishedRound
from tffc.language.notation.cell import MOST_LINES, notation_cell
from tffc.support.cell import framed

HOSTILE = "</code></style><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2J"


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """The HTML of each kind of object."""
    bundle = tff.compile(PROCESS)
    run = bundle.run([1.0, 2.0], 3, evaluate=one_round, evaluate_data=[1.0]).finish()
    objects = {
        "type": one_round.type_signature,
        "computation": one_round,
        "node": one_round.node,
        "process": PROCESS,
        "bundle": bundle,
        "proof": bundle.prove(),
        "verification": bundle.verify(trials=1),
        "audit": bundle.audit(),
        "page": bundle.explore(),
        "run": run,
        "round": run.last,
        "run to come": bundle.run([1.0], 2),
    }
    return {name: value._repr_html_() for name, value in objects.items()}


class Reader(html.parser.HTMLParser):
    """The tags of a cell, which must be closed in order, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.tensorflow
def test_cells_are_well_formed_and_load_nothing(shown: dict[str, str]) -> None:
    for name, text in shown.items():
        reader = Reader(text)
        assert not reader.tags & {"script", "link", "img", "object", "embed", "base"}, name
        assert not reader.attributes & {"src", "href", "onerror", "onload"}, name
        assert "@import" not in text, name
        assert "url(" not in re.sub(r'srcdoc="[^"]*"', "", text), name


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("type", "Type ( < state = < rounds = int32"),
        ("computation", "federated_mean"),
        ("process", "initialize ( -> <rounds=int32,mean=float32>@SERVER)"),
        ("bundle", "accumulate where clients' updates come together"),
        ("proof", "proved proved: the bundle computes what the program does"),
        ("verification", "same results 1 of 1 compared"),
        ("audit", "no policy was applied"),
        ("run", "3 of 3 rounds finished"),
        ("run", "round clients skipped loss rounds evaluation.loss"),
        ("run", "The state after round 3"),
        ("round", "Round 3 2 clients"),
        ("run to come", "0 of 2 rounds finished"),
    ],
)
def test_cells_show(shown: dict[str, str], name: str, words: str) -> None:
    assert without_spaces(words) in without_spaces(Reader(shown[name]).text)


def without_spaces(text: str) -> str:
    return re.sub(r"[\s…]+", "", text)


def test_hostile_names_are_text() -> None:
    type = tff.StructType([(HOSTILE, np.int32)])
    outcome = FinishedRound(1, (HOSTILE,), {HOSTILE: np.float32(1)}, {HOSTILE: 2})
    for value in (type, outcome):
        reader = Reader(value._repr_html_())
        assert not reader.tags & {"script", "img"}
        assert "<script>alert(1)" in reader.text
        assert "\u202e" not in reader.text
        assert "\x1b" not in reader.text
    reader = Reader(framed(HOSTILE))
    assert reader.tags == {"iframe"}


def test_long_texts_are_cut_and_deep_ones_shown() -> None:
    long = notation_cell("Type", "\n".join(["x"] * (MOST_LINES + 7)))
    assert "7 more lines" in Reader(long).text
    deep = notation_cell("Type", "\n".join(" " * depth + "x" for depth in range(500)))
    assert Reader(deep).text.count("x") >= 500
