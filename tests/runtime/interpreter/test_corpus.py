"""Recorded computations give the recorded results in the reference interpreter."""

from __future__ import annotations

import pytest

from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.runtime.interpreter.rounds import run_case
from tffc.runtime.interpreter import interpreter
from tffc.support.errors import TffcError

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)

UNLOADED = ("negproto_garbage_graph", "negproto_missing_result_tensor", "neg_data_block")
"""Programs that are well formed apart from what only running them brings to light."""


@each_case([c for c in cases() if c.has("io.json")])
def test_recorded_rounds(case: Case) -> None:
    assert run_case(case) == []


@pytest.mark.parametrize("case", [c for c in cases() if str(c) in UNLOADED], ids=str)
def test_broken_programs(case: Case) -> None:
    with pytest.raises(TffcError):
        interpreter.run(case.program(), (1, [1, 2]))
