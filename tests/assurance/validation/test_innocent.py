"""Verification does not report correct forms, even of rounds that draw everywhere and round.

Each form of a generated round runs in many shards.  `-m long` tries five hundred rounds.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.programs import broadcast_rounds, rounds, values
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.language import Node, StructType
from tffc.language.type_parts import local_type
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError

FORMS = ("mapreduce", "distribute-aggregate", "mergeable")
REFUSED = {"E316", "E532"}
"""What a form cannot express: means of unknown shape, and draws that would be repeated."""

SHARDINGS = 3
"""Trials of one argument run in different shards."""


@st.composite
def with_cases(draw: Any, programs: st.SearchStrategy[Node]) -> tuple[Node, list[ArgumentCase]]:
    """A round and one argument for it, to be tried in each number of shards."""
    program = draw(programs)
    parameter = program.type.children()[0]
    assert isinstance(parameter, StructType)
    state, data = (values(local_type(type_), rounding=True) for type_ in parameter)
    argument = (draw(state), draw(st.lists(data, min_size=1, max_size=5)))
    return program, [ArgumentCase(argument, may_reorder=True)] * SHARDINGS


def try_form(program: Node, cases: list[ArgumentCase], form: str) -> None:
    try:
        report = validate(program, cases, default_pipeline(), form)
    except FormError as error:
        if error.code not in REFUSED:
            raise
        reject()
    assert report.trials == SHARDINGS


NOISY = with_cases(rounds(secure=True, noisy=True))
NOISY_BROADCASTS = with_cases(broadcast_rounds(noisy=True))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10)
@given(case=NOISY)
def test_rounds(case: tuple[Node, list[ArgumentCase]], form: str) -> None:
    try_form(*case, form)


@settings(max_examples=5)
@given(case=NOISY_BROADCASTS)
def test_broadcasts(case: tuple[Node, list[ArgumentCase]]) -> None:
    try_form(*case, "broadcast")


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=200)
@given(case=NOISY)
def test_many_rounds(case: tuple[Node, list[ArgumentCase]], form: str) -> None:
    try_form(*case, form)


@pytest.mark.long
@settings(max_examples=100)
@given(case=NOISY_BROADCASTS)
def test_many_broadcasts(case: tuple[Node, list[ArgumentCase]]) -> None:
    try_form(*case, "broadcast")
