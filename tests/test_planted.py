"""The list of planted faults fits the code; `python -m tests.mutation --planted` runs it."""

from __future__ import annotations

import ast
import collections

import pytest

from tests.planted import PLANTED, QUICK_TESTS, Planted


@pytest.mark.parametrize("fault", PLANTED, ids=str)
def test_a_fault_changes_one_place_to_python(fault: Planted) -> None:
    text = fault.path.read_text(encoding="utf-8")
    assert text.count(fault.before) == 1
    changed = text.replace(fault.before, fault.after)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


def test_there_are_forty_and_some_in_each_room() -> None:
    packages = collections.Counter(fault.package for fault in PLANTED)
    assert set(packages) == set(QUICK_TESTS)
    assert min(packages.values()) >= 10
    assert len(set(PLANTED)) >= 40
