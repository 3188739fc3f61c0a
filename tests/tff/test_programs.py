"""Programs of TFF's own libraries compute over tffc what TFF 0.87 computed.

`record.py` makes the answers with TFF.  What needs Keras 2 is in `test_keras.py`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.tff import record
from tests.tff.wheel import needs_wheel, program, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

ANSWERS: dict[str, Any] = json.loads(record.ANSWERS.read_text())
NAMES = [*ANSWERS, *record.UNANSWERED]
OF_KERAS = [name for name in NAMES if name.startswith("keras: ")]
OTHERS = [name for name in NAMES if name not in OF_KERAS]


def differences(
    found: Any,
    expected: Any,
    varying: Sequence[str],
    tolerance: float,
    unordered: Sequence[str] = (),
) -> list[str]:
    """What differs from TFF: the type of the round, or leaves of states and outputs by paths."""
    said = []
    if found["type"] != expected["type"]:
        said.append(f"the type {found['type']} is not {expected['type']}")
    ours = [found["first"] or {}, *found["rounds"]]
    theirs = [expected["first"] or {}, *expected["rounds"]]
    for index, pair in enumerate(zip(ours, theirs, strict=True)):
        one, other = (in_order(leaves, unordered) for leaves in pair)
        said += [f"{index}: {each}" for each in other_leaves(one, other, varying, tolerance)]
    return said


def in_order(leaves: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The leaves, with the rows of the tensors at these paths sorted together."""
    there = [path for path in paths if path in leaves]
    together = sorted(zip(*(rows(leaves[path]) for path in there), strict=True))
    columns = zip(*together, strict=True) if together else ([] for _ in there)
    changed = {
        path: [*leaves[path][:2], list(itertools.chain.from_iterable(column))]
        for path, column in zip(there, columns, strict=True)
    }
    return {**leaves, **changed}


def rows(tensor: Any) -> list[list[Any]]:
    _, (count, *_), values = tensor
    width = len(values) // count if count else 0
    return [values[i * width : (i + 1) * width] for i in range(count)]


def other_leaves(
    found: dict[str, Any], expected: dict[str, Any], varying: Sequence[str], tolerance: float
) -> list[str]:
    """What differs in two values, by paths; what is drawn only has to be of one dtype and rank."""
    said = []
    for path in sorted({*found, *expected}):
        pair = found.get(path), expected.get(path)
        drawn = any(re.fullmatch(pattern, path) for pattern in varying)
        if not (alike(*pair) if drawn else equal(*pair, tolerance)):
            said.append(f"{path}: {pair[0]} is not {pair[1]}")
    return said


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return one[0] == other[0] and len(one[1]) == len(other[1])
    return one == other


def equal(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, list) and isinstance(other, list) and "float" in one[0]:
        if one[:2] != other[:2]:
            return False
        return np.allclose(one[2], other[2], rtol=tolerance, atol=tolerance, equal_nan=True)
    return one == other


@pytest.mark.parametrize("name", OTHERS)
def test_program(name: str) -> None:
    found = record.answer(program(name))
    known = program(name)
    # What TFF gave no answer of runs, at least.
    expected = ANSWERS.get(name, found)
    assert differences(found, expected, known.varying, known.tolerance, known.unordered) == []


def test_there_are_many_programs() -> None:
    assert set(ANSWERS) <= set(programs().all_programs())
    assert len(ANSWERS) >= 60


def test_a_difference_is_found() -> None:
    value = {"": "tuple", "0": ["float32", [1], [1.0]], "1": ["int32", [], [3]]}
    other = {"": "list", "0": ["float32", [1], [1.01]], "1": ["int32", [], [4]]}
    found, expected = (
        {"type": kind, "first": None, "rounds": [each]}
        for kind, each in (("int32", value), ("int64", other))
    )
    assert differences(found, found, (), 1e-4) == []
    assert differences(found, expected, ("1",), 1e-4) == [
        "the type int32 is not int64",
        "1: : tuple is not list",
        "1: 0: ['float32', [1], [1.0]] is not ['float32', [1], [1.01]]",
    ]
