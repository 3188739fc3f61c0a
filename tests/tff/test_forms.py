"""Rounds of TFF's own libraries, compiled to forms, compute as bundles what TFF 0.87 computed.

Of programs of which TFF gave no answer, bundles compute what the interpreter computes.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.tff import record
from tests.tff.rounds import as_bundles, tensors
from tests.tff.test_programs import ANSWERS, OTHERS, in_order, other_leaves
from tests.tff.wheel import needs_wheel, program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("name", OTHERS)
def test_bundles(name: str) -> None:
    found = as_bundles(program(name))
    if found is None:
        pytest.skip("nothing in it is at clients")
    expected = (ANSWERS.get(name) or record.answer(program(name)))["rounds"]
    for rounds in found.values():
        assert bundle_differences(rounds, expected, program(name)) == []


def bundle_differences(found: list[Any], expected: list[Any], known: Any) -> list[str]:
    """What differs in the tensors of each round."""
    said = []
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        given = in_order(one, known.unordered)
        wanted = in_order(tensors(other), known.unordered)
        different = other_leaves(given, wanted, known.varying, known.tolerance)
        said += [f"{index}: {each}" for each in different]
    return said
