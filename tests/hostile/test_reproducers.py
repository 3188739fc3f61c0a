"""Reproducers that somebody changed are refused, or replay what they say."""

from __future__ import annotations

import contextlib
import pathlib
import random

import pytest

from tests.fuzz.mutations import damaged_text
from tests.fuzz.targets import seed_programs
from tests.refusals import refusal
from tffc.cli.commands.opt import _read_reproducer
from tffc.cli.reproducer import Reproducer, decode_reproducer
from tffc.language import Node
from tffc.language.notation import parse, sections
from tffc.support.errors import PipelineError, TffcError, VerificationError

PASSES = "unique-names,call-dominant"
TWICE = "(x: int32 -> (let y=x in (let y=y in y)))"


def encoded(program: Node) -> str:
    return Reproducer(program, PASSES, ("closed",), "E142: a failure", {"tffc": "0.1"}).encode()


DAMAGED = {
    "deep versions": ('versions: {"tffc": "0.1"}', "versions: " + "[" * 10**5),
    "versions of numbers": ('versions: {"tffc": "0.1"}', 'versions: {"tffc": 1}'),
    "a number of very many digits": ('versions: {"tffc": "0.1"}', "versions: " + "9" * 5000),
    "no truth": ("verify-each: true", "verify-each: 5"),
    "neither": ("verify-each: true", "verify-each: null"),
    "no such invariant": ("given: closed", "given: closed,nope"),
    "a field twice": ("given: closed", "given: closed\n; given: "),
    "a field of another version": ("given: closed", "given: closed\n; later: 1"),
    "a section of no digits": ("given: closed", "given: closed\n; section: x y"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_headers(what: str) -> None:
    before, after = DAMAGED[what]
    text = encoded(parse(TWICE, {}))
    assert before in text
    assert "[E383]" in refusal(PipelineError, decode_reproducer, text.replace(before, after), "r")


def test_invariants_that_the_program_does_not_have(tmp_path: pathlib.Path) -> None:
    """Passes rely on them, so they are checked before the first one runs."""
    path = tmp_path / "r.txt"
    text = encoded(parse(TWICE, {}))
    path.write_text(text.replace("given: closed", "given: closed,unique-names"))
    refusal(VerificationError, _read_reproducer, path, {})


def test_a_section_with_other_content() -> None:
    program = next(each for each in seed_programs() if sections(each))
    text = encoded(program)
    at = text.index("; section: ") + len("; section: ") + 100
    changed = f"{text[:at]}{'B' if text[at] == 'A' else 'A'}{text[at + 1 :]}"
    with pytest.raises(TffcError):
        decode_reproducer(changed, "r")


def test_changed_texts() -> None:
    seeds = [encoded(each) for each in seed_programs()[:40]]
    for case in range(60):
        text = damaged_text(random.Random(f"reproducers {case}"), seeds)
        with contextlib.suppress(TffcError):
            assert isinstance(decode_reproducer(text, "r"), Reproducer)
