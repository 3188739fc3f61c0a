"""The family of errors: what their text holds."""

from __future__ import annotations

from tffc.support.errors import LanguageTypeError


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
