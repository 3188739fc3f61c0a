"""Drawings of text, put together from smaller ones.

A drawing is a rectangle of characters.  It is kept as the segments of its rows, so that putting two
drawings side by side takes as many steps as the flatter one has rows, and moving a drawing takes
one.  The operations are those that the structural form needs.
"""

from __future__ import annotations

import dataclasses

from tffc.language.notation.pieces import check_length, max_text

NEAR = 0
"""The least distance between a drawing and a bracket, comma or name next to it."""

APART = 4
"""The least distance between two drawings in the rows below their first."""


@dataclasses.dataclass(slots=True)
class CanvasRow:
    """One row: where its text starts and ends, and the segments in between, in any order.

    A row of nothing but spaces has no segments.
    """

    start: int
    end: int
    segments: list[tuple[int, str]]


class Canvas:
    """A drawing of at least one row, `width` characters wide.

    Joining two drawings changes both; afterwards only the result may be used.
    """

    __slots__ = ("_origin", "_rows", "width")

    def __init__(self, text: str) -> None:
        inner = text.strip(" ")
        start = len(text) - len(text.lstrip(" "))
        segments = [(start, inner)] if inner else []
        self._rows = [
            CanvasRow(start, start + len(inner), segments)
        ]  # from the last row to the first
        self._origin = 0  # added to the columns in all rows
        self.width = len(text)

    def lead(self, depth: int = 0) -> int:
        """Return the number of spaces at the start of row `depth`."""
        row = self._rows[-1 - depth]
        return row.start + self._origin if row.segments else self.width

    def trail(self, depth: int = 0) -> int:
        """Return the number of spaces at the end of row `depth`."""
        row = self._rows[-1 - depth]
        return self.width - row.end - self._origin if row.segments else self.width

    def put_above(self, column: int, text: str) -> None:
        """Add a row on top, with `text` at `column`; -1 moves all other rows right."""
        if column < 0:
            self._move(-column)
            column = 0
        start = column - self._origin
        self._rows.append(CanvasRow(start, start + len(text), [(start, text)]))
        self.width = max(self.width, column + len(text))

    def _move(self, columns: int) -> None:
        self._origin += columns
        self.width += columns

    def join(self, right: Canvas, distance: int, least: int = APART) -> Canvas:
        """Return this drawing with `right` beside it, their first rows `distance` apart.

        They are moved towards each other until their first rows reach that distance, or another row
        that both have reaches the distance `least`.
        """
        # How far `right` may be pushed into the rectangle of this drawing: as far as their first
        # rows allow, but no further than any two rows below do.  An empty row consists of spaces
        # only, so the other drawing may be pushed through it.
        inset = self.trail() + right.lead() - distance
        both = min(len(self._rows), len(right._rows))
        for depth in range(1, both):
            inset = min(inset, self.trail(depth) + right.lead(depth) - least)
        offset = self.width - inset  # negative if `right` begins further left
        # The flatter drawing is drawn into the taller one, so that a tall one is not copied for
        # each flat one placed beside it.
        if len(self._rows) >= len(right._rows):
            self._absorb(right, offset)
            # If it has no rows below those of `right`, its own trailing spaces do not count.
            self.width = max(self.width if len(self._rows) > both else 0, offset + right.width)
            return self
        width = max(right.width, offset + right.width)
        right._absorb(self, -offset)
        right._origin += max(offset, 0)
        right.width = width
        return right

    def _absorb(self, other: Canvas, offset: int) -> None:
        """Draw `other`, which is not taller, into the first rows, `offset` columns to the right."""
        offset += other._origin - self._origin
        taller, flatter = self._rows, other._rows
        for depth in range(-1, -1 - len(flatter), -1):
            added, row = flatter[depth], taller[depth]
            if not added.segments:
                continue
            start, end = added.start + offset, added.end + offset
            row.start = min(row.start, start) if row.segments else start
            row.end = max(row.end, end) if row.segments else end
            row.segments.extend((column + offset, text) for column, text in added.segments)

    def text(self) -> str:
        """Return the rows as lines without trailing spaces.

        Raises:
          NotationError: the text is longer than MAX_TEXT characters.
        """
        ends = (row.end + self._origin if row.segments else 0 for row in self._rows)
        check_length(sum(1 + end for end in ends), max_text())
        return "\n".join(map(self._line, reversed(self._rows)))

    def _line(self, row: CanvasRow) -> str:
        pieces: list[str] = []
        at = -self._origin
        for column, text in sorted(row.segments):
            pieces.append(" " * (column - at))
            pieces.append(text)
            at = column + len(text)
        return "".join(pieces).rstrip()
