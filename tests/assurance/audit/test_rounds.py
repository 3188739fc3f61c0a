"""No channel of a generated round changes with data that its audit leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assurance.audit.generated_rounds import Pick, round_of
from tests.assurance.audit.rounds_trial import outcome_of, try_one


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=12)
@given(st.data())
def test_what_changes_a_channel_is_named(data: Any) -> None:
    def pick(limit: int) -> int:
        return data.draw(st.integers(0, limit - 1))

    check(pick)


def check(pick: Pick) -> None:
    drawn = round_of(pick)
    assert outcome_of(drawn, pick, clients=1).misses == []


@pytest.mark.long
def test_two_hundred_rounds() -> None:
    outcomes = [try_one(seed).outcome for seed in range(200)]
    assert [miss for each in outcomes for miss in each.misses] == []
    assert sum(each.pairs > 0 for each in outcomes) > 170
