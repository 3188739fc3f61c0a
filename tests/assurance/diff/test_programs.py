"""Aligning the bindings of large programs, and equality of programs."""

from __future__ import annotations

import pytest

from tffc.assurance.diff.programs import differences, is_same
from tffc.language.notation import parse


def chain(length: int, extra: int | None = None) -> str:
    """Return a program of equal bindings, with another one inserted at a position."""
    rows = [f"x{i}=<x{i - 1}[0]>" for i in range(1, length)]
    if extra is not None:
        rows.insert(extra, "y=7")
    return f"(x0: <int32> -> (let {','.join(rows)} in x{length - 1}))"


def test_names_do_not_matter() -> None:
    assert is_same(parse("(x: int32 -> (let y=x in y))"), parse("(a: int32 -> (let b=a in b))"))
    assert not is_same(parse("(x: int32 -> <x,1>)"), parse("(x: int32 -> <1,x>)"))


@pytest.mark.slow
def test_one_binding_among_many() -> None:
    first, second = parse(chain(2000)), parse(chain(2000, extra=1000))
    (found,) = differences({"c": first}, {"c": second})
    changed = [line for line in found.lines if line[0] in "+-"]
    assert changed == ["+y: int32 = 7"]


def test_another_operand() -> None:
    first = parse("(x: <int32,int32> -> (let a=x[0],b=<a> in b))")
    second = parse("(x: <int32,int32> -> (let c=x[1],d=<c> in d))")
    (found,) = differences({"c": first}, {"c": second})
    assert [line for line in found.lines if line[0] in "+-"] == [
        "-a: int32 = x[0]",
        "-b: <int32> = <a>",
        "+c: int32 = x[1]",
        "+b: <int32> = <c>",
    ]
