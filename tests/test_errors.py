"""The family of errors: what their text holds."""

from __future__ import annotations

import copy
import pickle

import pytest

from tffc.support.errors import LanguageTypeError, Span, TffcError


def test_text() -> None:
    error = LanguageTypeError("E980", "found `x`", notes=("one", "two"), help="write y")
    assert str(error) == "found `x` [E980]\n  note: one\n  note: two\n  help: write y"


def test_long_quotations_are_abridged() -> None:
    start, middle, end = "a" * 200, "b" * 201, "c" * 100
    error = LanguageTypeError("E980", f"found `{start}{middle}{end}` and `short`")
    assert str(error) == f"found `{start} ...201 characters... {end}` and `short` [E980]"
    assert middle in error.message


def test_quotations_of_moderate_length_are_whole() -> None:
    text = "x" * 499
    assert str(LanguageTypeError("E980", f"found `{text}`")) == f"found `{text}` [E980]"


def classes(base: type[TffcError] = TffcError) -> list[type[TffcError]]:
    """The class and all that derive from it."""
    return [base, *(each for derived in base.__subclasses__() for each in classes(derived))]


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_go_to_other_processes(kind: type[TffcError], protocol: int) -> None:
    error = kind.__new__(kind)
    # Some have other arguments.
    TffcError.__init__(error, "E100", "odd", notes=("a note",), help="help", span=Span("a.py", 3))
    error.whole = TffcError("E101", "all of it")
    for other in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(other) is kind
        assert (str(other), other.args) == (str(error), error.args)
        assert str(other.whole) == str(error.whole)
