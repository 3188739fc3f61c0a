"""A short run of the fuzzers; `python -m tests.fuzz` makes a long one."""

from __future__ import annotations

import pytest

from tests.fuzz.targets import TARGETS, run_case

CASES = 300


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_is_refused_or_read(target: str) -> None:
    read = sum(run_case(target, 1, case) for case in range(CASES))
    assert 0 < read <= CASES
