"""Watching a pipeline: a program that reads back as another one is caught."""

from __future__ import annotations

import pytest

from tffc.language import wire
from tffc.language.notation import parse
from tffc.passes import Pass, Pipeline, instruments
from tffc.passes.pipeline import PassStep
from tffc.support.errors import VerificationError

PROGRAM, OTHER = parse("(x: int32 -> x)"), parse("(x: int32 -> 1)")


def test_a_program_that_survives() -> None:
    instruments.verify_roundtrip(PROGRAM)


def test_a_parser_that_reads_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "parse", lambda text, sections: OTHER)
    with pytest.raises(VerificationError) as caught:
        instruments.verify_roundtrip(PROGRAM)
    assert str(caught.value) == "the program is another one when its text is parsed [E381]"


def test_a_message_that_holds_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "from_bytes", lambda data: OTHER)
    with pytest.raises(VerificationError) as caught:
        instruments.verify_roundtrip(PROGRAM)
    assert str(caught.value) == "the program is another one when its message is read [E381]"


def test_what_passes_make_is_verified_in_tests() -> None:
    wrong = Pass("wrong", lambda program: parse("1"))
    with pytest.raises(VerificationError) as caught:
        Pipeline("mine", (PassStep(wrong),)).run(OTHER)
    assert caught.value.code == "E380"
