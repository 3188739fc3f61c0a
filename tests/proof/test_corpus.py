"""Recorded computations in every form that compiles: proved, or not decided for a reason."""

from __future__ import annotations

import pytest

from tests.corpus.cases import MISSING, ROOT, Case, cases
from tffc.backends import compile_form
from tffc.backends.forms.kinds import FORMS
from tffc.errors import TffcError
from tffc.proof.prove import Answer, prove

pytestmark = pytest.mark.skipif(ROOT is None, reason=MISSING)

UNDECIDED = {
    ("negproto_garbage_graph", "distribute-aggregate"): "a malformed graph",
    ("negproto_missing_result_tensor", "distribute-aggregate"): "a malformed graph",
}
"""The cases that are not decided, and what is met in them."""


@pytest.mark.parametrize("case", cases(), ids=str)
def test_proved(case: Case) -> None:
    for form in FORMS:
        try:
            program = case.program()
            compiled = compile_form(program, form)
        except TffcError:
            continue
        proof = prove(program, form, compiled.components())
        reason = UNDECIDED.get((str(case), form), "")
        assert proof.construct == reason, proof
        assert proof.answer is (Answer.UNDECIDED if reason else Answer.PROVED), proof
