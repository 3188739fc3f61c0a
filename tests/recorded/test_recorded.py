"""Programs traced by tffc give what TFF gave, as answers.json keeps it."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

import tffc as tff
from tests.recorded import differences, programs, record

PROGRAMS = record.all_programs()
ANSWERS = json.loads(record.ANSWERS.read_text())


@pytest.fixture(scope="module")
def language() -> Any:
    return programs.Language(tff)


HAS_JAX = importlib.util.find_spec("jax") is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_answer(name: str, language: Any) -> None:
    if name.startswith("jax: ") and not HAS_JAX:
        pytest.skip("JAX is not installed: pip install '.[jax]'")
    found = record.answer(PROGRAMS[name], language)
    if name not in differences.DIFFERENCES:
        assert found == ANSWERS[name]
        return
    expected, _ = differences.DIFFERENCES[name]
    assert {key: found.get(key) for key in expected} == expected
    assert {key: ANSWERS[name].get(key) for key in expected} != expected


def test_every_program_has_an_answer() -> None:
    assert len(PROGRAMS) >= 120
    assert list(PROGRAMS) == list(ANSWERS)
    assert set(differences.DIFFERENCES) <= set(PROGRAMS)
    assert all(reason for _, reason in differences.DIFFERENCES.values())
