"""Candidates of proofs that an attacker would try: none of them is proved."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest

from tests.assurance.proof.candidates import EDITS, ROUNDS, edited, round_of, with_unknown_field
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.language import Node


@functools.cache
def compiled(name: str) -> tuple[Node, dict[str, Any]]:
    """A round, and the components of its MapReduceForm."""
    program = round_of(ROUNDS[name])
    return program, dict(compile_form(program, "mapreduce").components())


def answer(name: str, work: Node) -> Answer:
    program, parts = compiled(name)
    return prove(program, "mapreduce", {**parts, "work": work}).answer


@pytest.mark.parametrize("name", ROUNDS)
def test_proved_without_an_edit(name: str) -> None:
    assert answer(name, compiled(name)[1]["work"]) is Answer.PROVED


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", ROUNDS)
def test_an_edit_is_not_proved(name: str, edit: str) -> None:
    work = compiled(name)[1]["work"]
    changed = edited(work, EDITS[edit], random.Random(0))
    if changed is None:
        pytest.skip("the edit does not apply")
    assert changed != work
    assert answer(name, changed) is not Answer.PROVED


@pytest.mark.parametrize("name", ROUNDS)
def test_an_unknown_field_is_not_proved(name: str) -> None:
    assert answer(name, with_unknown_field(compiled(name)[1]["work"])) is not Answer.PROVED


def test_there_are_enough() -> None:
    applied = (
        edited(compiled(name)[1]["work"], edit, random.Random(0))
        for name in ROUNDS
        for edit in EDITS.values()
    )
    assert sum(each is not None for each in applied) >= 200
