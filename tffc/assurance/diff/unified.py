"""Unified diffs of long texts, in time nearly linear in their length."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from tffc.assurance.diff.alignment import aligned

CONTEXT = 3
"""The number of equal lines around each difference."""


def unified(before: Sequence[str], after: Sequence[str], old: str, new: str) -> Iterator[str]:
    """Yield the lines of a unified diff between two texts of these names; none if they are equal.

    Unlike `difflib.unified_diff` this takes no longer for texts whose lines repeat.
    """
    groups = list(_Matcher(before, after).get_grouped_opcodes(CONTEXT))
    if groups:
        yield f"--- {old}"
        yield f"+++ {new}"
    for group in groups:
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, start, end, begin, stop in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[start:end])
                continue
            yield from (f"-{line}" for line in before[start:end])
            yield from (f"+{line}" for line in after[begin:stop])


class _Matcher(difflib.SequenceMatcher[str]):
    """Matches the lines that are aligned."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__()
        self.a, self.b = before, after

    def get_matching_blocks(self) -> list[difflib.Match]:
        blocks: list[difflib.Match] = []
        for old, new in aligned(self.a, self.b):
            start, begin, size = blocks[-1] if blocks else (0, 0, 0)
            if blocks and (start + size, begin + size) == (old, new):
                blocks[-1] = difflib.Match(start, begin, size + 1)
            else:
                blocks.append(difflib.Match(old, new, 1))
        return [*blocks, difflib.Match(len(self.a), len(self.b), 0)]


def _range(start: int, end: int) -> str:
    """Return the lines of one side of a hunk, as unified diffs write them."""
    count = end - start
    # An empty side is said to be after the line before it.
    return str(start + 1) if count == 1 else f"{start + bool(count)},{count}"
