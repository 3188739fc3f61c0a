"""TFF 0.87 reads what tffc writes, and computes the same, where TFF is at hand."""

from __future__ import annotations

import os

import pytest

from tests.recorded.replay import same, verdict, verdicts

PEER = os.environ.get("TFFC_PEER_PYTHON")


@pytest.mark.skipif(not PEER, reason="TFFC_PEER_PYTHON names no Python with TFF 0.87")
def test_programs_run_in_tff() -> None:
    assert PEER is not None
    found = verdicts(PEER)
    assert len(found) >= 180
    wrong = {name: text for name, (_, text) in found.items() if not is_fine(text)}
    assert wrong == {}
    assert sum(text == "same" for _, text in found.values()) >= 140


def is_fine(text: str) -> bool:
    return text == "same" or text.startswith("read, not run")


@pytest.mark.parametrize(
    ("theirs", "fine"),
    [
        ({"text": "a", "type": "int32", "result": [[], [3]]}, True),
        ({"text": "a", "type": "int32", "refused": "ValueError: no"}, True),
        ({"text": "a", "type": "int32", "result": [[], [4]]}, False),
        ({"text": "b", "type": "int32", "result": [[], [3]]}, False),
        ({"text": "a", "type": "bool", "result": [[], [3]]}, False),
        ({"unread": "TypeError: no"}, False),
    ],
)
def test_verdict(theirs: dict[str, object], fine: bool) -> None:
    ours = {"text": "a", "type": "int32", "result": [[], [3]]}
    assert is_fine(verdict(ours, theirs)) is fine


def test_equality_is_up_to_rounding() -> None:
    assert same([[2], [1.0, float("nan")]], [[2], [1.000001, float("nan")]])
    assert not same([[1], [1.0]], [[1], [1.1]])
    assert not same([[1], [1]], [[1], [2]])
    assert not same([[1], [1]], [[2], [1, 1]])
