"""Recorded computations with random results: forms give the distribution that programs give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.corpus.cases import MISSING, Case, cases
from tests.corpus.table import result_of_round
from tests.distribution import FAR, distance
from tests.runtime.interpreter.rounds import as_recorded, by_position
from tffc.backends import compile_form
from tffc.runtime.interpreter.interpreter import run

CLOCKS = {"hist_distinct_arity3", "hist_no_noise_secure"}
"""Cases whose results tell the time."""

RANDOM = [
    case
    for case in cases()
    if case.has("io.json") and case.rounds().unstable and str(case) not in CLOCKS
]
RUNS = 60

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)


@pytest.mark.parametrize("case", RANDOM, ids=str)
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_distribution(case: Case, form: str) -> None:
    program, recorded = case.program(), case.rounds()
    made, one = compile_form(program, form), recorded.rounds[0]
    argument = by_position(one.arg, recorded.param_type)
    traced = [unstable(recorded, run(program, argument)) for _ in range(RUNS)]
    compiled = [unstable(recorded, result_of_round(made, one)) for _ in range(RUNS)]
    assert np.std(traced, axis=0).any()
    for expected, found in zip(np.transpose(traced), np.transpose(compiled), strict=True):
        assert distance(found, expected) < FAR


def unstable(recorded: Any, result: Any) -> np.ndarray:
    """The numbers of a result that differ from run to run."""
    value = as_recorded(result, recorded.result_type)
    found = []
    for path in recorded.unstable:
        inner = value
        for step in path.split("/"):
            if step.isdigit():
                inner = (
                    list(inner.values())[int(step)] if isinstance(inner, dict) else inner[int(step)]
                )
            else:
                inner = inner[step]
        found.append(np.ravel(inner))
    return np.concatenate(found)
