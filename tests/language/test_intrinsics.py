"""Intrinsics: cases of all signatures, and what signatures say of their variables."""

from __future__ import annotations

import pytest

from tests.diagnostics.cases import read_cases
from tests.processes import ROOT
from tffc.language import AbstractType, FunctionType, Type
from tffc.language.intrinsics import INTRINSICS

PATH = ROOT / "tests" / "diagnostics" / "language" / "intrinsics.case"
INSTANCES, *REFUSED = read_cases(PATH.read_text(encoding="utf-8"), PATH.name)


@pytest.mark.parametrize("uri", INTRINSICS)
def test_a_case_has_an_instance_and_another_what_is_none(uri: str) -> None:
    assert f'parse("{uri}:' in INSTANCES.text
    assert any(case.title.startswith(f"{uri}: ") for case in REFUSED)


@pytest.mark.parametrize("uri", INTRINSICS)
def test_every_variable_that_stands_twice_is_defined(uri: str) -> None:
    defined: set[str] = set()
    used: list[str] = []
    stack: list[tuple[Type, bool]] = [(INTRINSICS[uri].signature, False)]
    while stack:
        type_, defining = stack.pop()
        match type_:
            case AbstractType() if defining:
                defined.add(type_.name)
            case AbstractType():
                used.append(type_.name)
            case FunctionType(parameter=Type() as parameter):
                stack += [(parameter, not defining), (type_.result, defining)]
            case _:
                stack += [(child, defining) for child in type_.children()]
    assert [name for name in used if name not in defined and used.count(name) > 1] == []
