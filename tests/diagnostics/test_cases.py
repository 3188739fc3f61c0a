"""Every case of what tffc refuses, compared whole."""

from __future__ import annotations

import pathlib

import pytest

from tests.diagnostics.cases import FOLDER, Case, case_files, read_cases, write_again
from tffc.language.invariants import INVARIANTS


def cases_in(path: pathlib.Path) -> list[Case]:
    name = path.relative_to(FOLDER).with_suffix("").as_posix()
    return read_cases(path.read_text(encoding="utf-8"), name)


CASES = [case for path in case_files() for case in cases_in(path)]


def name_of(case: Case) -> str:
    return f"{case.place.partition(':')[0]}: {case.title}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_case(case: Case, tmp_path: pathlib.Path) -> None:
    assert case.run(tmp_path) == case.outcome, case.place


def test_no_title_stands_twice_in_a_file() -> None:
    names = [name_of(case) for case in CASES]
    assert len(set(names)) == len(names)


def test_every_invariant_is_refused_somewhere() -> None:
    cases = [case.text for case in CASES if case.place.startswith("language/verify:")]
    for invariant in INVARIANTS:
        assert any(f'["{invariant}"]' in text for text in cases), invariant


EXAMPLES = """\
import tffc as tff

--- notes.txt
=== a module that is not there
$ tffc print notes.json
==> exit 1
error[E434]: there is no module named 'notes'
 = help: did you mean notes.txt?
 = explain: tffc explain E434

=== an element type that there is not
tff.TensorType("vector")
==> UnsupportedError, TypeError, NotImplementedError
'vector' is not an element type [E110]
  help: give a NumPy or TensorFlow dtype, or a Python class such as int
"""

CHANGES = {
    "the code": ("error[E434]", "error[E435]"),
    "the exit code": ("exit 1", "exit 2"),
    "the help": ("notes.txt?", "notes.json?"),
    "a line less": (" = explain: tffc explain E434\n", ""),
    "the class": ("==> UnsupportedError", "==> TffcError"),
    "the class of Python": ("TypeError", "KeyError"),
    "the message": ("'vector' is", "it is"),
}


def test_examples(tmp_path: pathlib.Path) -> None:
    for number, case in enumerate(read_cases(EXAMPLES, "examples")):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert case.run(folder) == case.outcome


@pytest.mark.parametrize("change", CHANGES)
def test_a_case_fails_whose_outcome_differs(change: str, tmp_path: pathlib.Path) -> None:
    old, new = CHANGES[change]
    head, outcome = EXAMPLES.split("=== ", 1)
    text = f"{head}=== {outcome.replace(old, new)}"
    assert text != EXAMPLES
    failures = 0
    for number, case in enumerate(read_cases(text, "examples")):
        (tmp_path / str(number)).mkdir()
        try:
            test_case(case, tmp_path / str(number))
        except AssertionError:
            failures += 1
    assert failures == 1


def test_writing_again_mends_what_comes_out(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "examples.case"
    path.write_text(EXAMPLES.replace("E434", "E435").replace("TypeError", "KeyError"))
    write_again(path)
    assert path.read_text() == EXAMPLES


def test_what_is_accepted_is_told(tmp_path: pathlib.Path) -> None:
    (case,) = read_cases("=== a title\n1 + 1\n==> nothing is refused\n", "example")
    assert case.run(tmp_path) == case.outcome


def test_a_case_without_an_outcome_is_refused() -> None:
    with pytest.raises(ValueError, match="example:2: a case needs a line that begins with ==>"):
        read_cases("\n=== a title\n1\n", "example")
