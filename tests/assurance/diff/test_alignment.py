"""Aligned lines are equal and in order, and lines that occur once are found."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from tffc.assurance.diff.alignment import CHUNK, aligned

LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


@given(LINES, LINES)
def test_pairs_are_of_equal_lines_and_in_order(before: list[str], after: list[str]) -> None:
    pairs = aligned(before, after)
    assert all(before[one] == after[other] for one, other in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))


@given(LINES)
def test_a_text_is_itself(lines: list[str]) -> None:
    assert aligned(lines, lines) == [(at, at) for at in range(len(lines))]


def test_what_stands_once_tells_places_apart() -> None:
    assert aligned([*"aab", "once", *"bba"], [*"bbaa", "once", *"a"]) == [
        (0, 2),
        (1, 3),
        (3, 4),
        (6, 5),
    ]


def test_lines_that_have_moved() -> None:
    lines = [str(number) for number in range(1000)]
    after = [*lines[:10], *lines[500:], *lines[10:500]]
    pairs = aligned(lines, after)
    assert [one for one, _ in pairs] == [*range(10), *range(500, 1000)]


def test_two_lines_among_many_that_are_alike() -> None:
    before = ["x"] * 50 * CHUNK
    after = ["new", *before[:1000], "new", *before[1000:]]
    assert len(aligned(before, after)) == len(before)


def test_many_lines_that_are_alike_and_differ() -> None:
    generator = random.Random(1)
    before, after = (generator.choices("ab", k=50 * CHUNK) for _ in range(2))
    assert len(aligned(before, after)) > 20 * CHUNK
