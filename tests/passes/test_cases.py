"""Every case of every pass: the examples that ship, and those beside this file."""

from __future__ import annotations

import pathlib

import pytest

from tests.refusals import refusal
from tffc.assurance.golden.cases import PassCase, read_cases
from tffc.language.notation import SectionFolder
from tffc.passes.table import all_passes
from tffc.support.errors import PipelineError

PASSES = all_passes()
FOLDER = pathlib.Path(__file__).parent


def cases_in(folder: pathlib.Path) -> list[PassCase]:
    return [
        case
        for path in sorted(folder.glob("*.case"))
        for case in read_cases(path.read_text(encoding="utf-8"), path.name, path.stem)
    ]


def examples() -> list[PassCase]:
    return [
        case
        for each in PASSES.values()
        for case in read_cases(each.example or "", f"{each.name}.case", each.name)
    ]


def name_of(case: PassCase) -> str:
    return f"{case.step}: {case.title}"


@pytest.mark.parametrize("case", [*examples(), *cases_in(FOLDER)], ids=name_of)
def test_case(case: PassCase) -> None:
    sections = SectionFolder(FOLDER / "sections")
    difference = case.difference(case.run(PASSES, sections))
    assert difference is None, difference


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_has_one_example_and_at_least_five_cases(name: str) -> None:
    assert len([case for case in examples() if case.step == name]) == 1
    own = [case for case in cases_in(FOLDER) if case.step.partition("{")[0] == name]
    assert len(own) >= 5
    assert any(case.program == case.expected for case in own), "one where nothing happens"


def test_a_case_that_fails_shows_a_difference() -> None:
    (case,) = read_cases("=== a title\n(x: int32 -> x)\n---\n(x: bool -> x)", "f", "unique-names")
    assert case.difference(case.run(PASSES, {})) == (
        "--- expected\n+++ found\n@@ -1 +1 @@\n-(x: bool -> x)\n+(x: int32 -> x)"
    )


def test_spaces_make_no_difference() -> None:
    text = "=== a title\n(x: int32 -> <x>)\n---\n( x:int32 ->\n  < x >)"
    (case,) = read_cases(text, "f", "unique-names")
    assert case.difference(case.run(PASSES, {})) is None


def test_a_case_without_an_expectation_is_refused() -> None:
    assert refusal(PipelineError, read_cases, "\n=== a title\n1\n", "f.case", "unique-names") == (
        "f.case:2: a case is a title, a program, a line --- and the expected result [E379]"
    )
