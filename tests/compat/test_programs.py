"""Programs of TFF's own libraries compute over tffc what TFF 0.87 computed.

`record.py` makes the answers with TFF.  What needs Keras 2 runs in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.compat import record
from tests.compat.wheel import needs_wheel, program, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

ANSWERS: dict[str, Any] = json.loads(record.ANSWERS.read_text())
OF_KERAS = [name for name in ANSWERS if name.startswith("keras: ")]
OTHERS = [name for name in ANSWERS if name not in OF_KERAS]


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
    """The leaves, with the elements of the vectors at these paths sorted together."""
    vectors = [leaves[path] for path in paths if path in leaves]
    rows = sorted(zip(*(values for _, _, values in vectors), strict=True))
    columns = zip(*rows, strict=True) if rows else ([] for _ in vectors)
    changed = {
        path: [dtype, shape, list(column)]
        for path, (dtype, shape, _), column in zip(paths, vectors, columns, strict=False)
    }
    return {**leaves, **changed}


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
    options = known.varying, known.tolerance, known.unordered
    assert differences(found, ANSWERS[name], *options) == []


@pytest.fixture(scope="module")
def of_keras(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if importlib.util.find_spec("tf_keras") is None:
        pytest.skip("Keras 2 is not installed: pip install tf_keras")
    out = tmp_path_factory.mktemp("keras") / "answers.json"
    subprocess.run(
        [sys.executable, "-m", "tests.compat.record", "--tffc", "--out", str(out), *OF_KERAS],
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
        cwd=pathlib.Path(__file__).parents[2],
        check=True,
        capture_output=True,
    )
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", OF_KERAS)
def test_program_of_keras(name: str, of_keras: Any) -> None:
    assert differences(of_keras[name], ANSWERS[name], (), 1e-4) == []


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
