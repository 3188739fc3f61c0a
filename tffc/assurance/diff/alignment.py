"""Aligning equal lines of two texts, in time nearly linear in their length.

This is patience diff: lines that occur once in each text are anchors.  The longest sequence of
anchors that is increasing in both texts is kept, and the lines between two anchors are aligned in
the same way.
"""

from __future__ import annotations

import bisect
import collections
import difflib
from collections.abc import Iterator, Sequence

CHUNK = 100
"""The most lines that are compared at once where there are no anchors."""

DEEPEST = 20
"""The depth up to which the text between anchors is searched for anchors again."""

Pair = tuple[int, int]


def aligned(before: Sequence[str], after: Sequence[str]) -> list[Pair]:
    """Return pairs of positions of equal lines, in order in both texts.

    Lines that occur once in each text are found anywhere; other lines only near their position.
    """
    pairs: list[Pair] = []
    parts = [(0, len(before), 0, len(after), DEEPEST)]
    while parts:
        first, last, start, end, deep = parts.pop()
        while first < last and start < end and before[first] == after[start]:
            pairs.append((first, start))
            first, start = first + 1, start + 1
        while first < last and start < end and before[last - 1] == after[end - 1]:
            last, end = last - 1, end - 1
            pairs.append((last, end))
        if first == last or start == end:
            continue
        anchors = _anchors(before, after, range(first, last), range(start, end)) if deep else []
        if not anchors:
            pairs += _nearby(before, after, range(first, last), range(start, end))
            continue
        pairs += anchors
        for one, other in zip(
            [(first - 1, start - 1), *anchors], [*anchors, (last, end)], strict=True
        ):
            parts.append((one[0] + 1, other[0], one[1] + 1, other[1], deep - 1))
    return sorted(pairs)


def _anchors(before: Sequence[str], after: Sequence[str], old: range, new: range) -> list[Pair]:
    """Return the longest increasing sequence of pairs of lines that occur once in each part."""
    counts = collections.Counter(before[i] for i in old)
    others = collections.Counter(after[j] for j in new)
    places = {after[j]: j for j in new if others[after[j]] == 1}
    pairs = [(i, places[before[i]]) for i in old if counts[before[i]] == 1 and before[i] in places]
    return _increasing(pairs)


def _increasing(pairs: list[Pair]) -> list[Pair]:
    """Return a longest subsequence of pairs whose second positions increase.

    The pairs are ordered by their first positions.  Patience sorting, in O(n log n).
    """
    # For each length, the lowest second position that such a subsequence can end at.
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect.bisect_left(ends, place)
        previous.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(index)
        else:
            ends[length], last[length] = place, index
    subsequence: list[Pair] = []
    at = last[-1] if last else -1
    while at >= 0:
        subsequence.append(pairs[at])
        at = previous[at]
    return subsequence[::-1]


def _nearby(before: Sequence[str], after: Sequence[str], old: range, new: range) -> Iterator[Pair]:
    """Yield pairs of equal lines in two parts, comparing a window of `CHUNK` lines at a time."""
    first, start = old.start, new.start
    while first < old.stop and start < new.stop:
        one = before[first : min(first + CHUNK, old.stop)]
        other = after[start : min(start + CHUNK, new.stop)]
        blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
        pairs = [
            (first + block.a + index, start + block.b + index)
            for block in blocks
            for index in range(block.size)
        ]
        yield from pairs
        ended, stopped = pairs[-1] if pairs else (first + len(one) - 1, start + len(other) - 1)
        first, start = ended + 1, stopped + 1
