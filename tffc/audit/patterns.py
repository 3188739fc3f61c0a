"""Patterns: paths of parts of a client's data, as reports print them.

A path covers everything below it.  `*` stands for any text in a step, a whole step `*` for any one
step, `[*]` for any index, and a whole step `**` for any number of steps.  Everything else stands
for itself.  `how many PATH` means the number of elements, and `shape of PATH` the shape.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
from collections.abc import Iterable

from tffc.errors import Span
from tffc.printable import printable


class Aspect(enum.Enum):
    """What a pattern says of a part of the data, and the words that it begins with."""

    DATA = ""
    COUNT = "how many "
    SHAPE = "shape of "


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, and its place in a file; one that `is_optional` may match nothing of a program."""

    text: str
    is_optional: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def aspect(self) -> Aspect:
        """What the pattern says of the data that it covers."""
        special = (Aspect.COUNT, Aspect.SHAPE)
        return next((each for each in special if self.text.startswith(each.value)), Aspect.DATA)

    @property
    def path(self) -> str:
        """The pattern without the words that it begins with."""
        return self.text.removeprefix(self.aspect.value).strip()

    @property
    def shown(self) -> str:
        """The pattern as reports have it."""
        return f"{self.text} (optional)" if self.is_optional else self.text

    def covered(self, paths: Iterable[str]) -> list[str]:
        """Return those of the paths that the pattern covers."""
        return [path for path in paths if self._covers(path) or self._covers(printable(path))]

    def _covers(self, path: str) -> bool:
        # A path covers itself, whatever characters its names consist of.
        is_below = path.startswith((f"{self.path}.", f"{self.path}["))
        return path == self.path or is_below or _expression(self.path).match(path) is not None


TOKEN = re.compile(
    r"(?P<first_steps>^\*\*\.)|(?P<steps>\.\*\*(?=[.\[]|\Z))|(?P<first>^\*(?=[.\[]|\Z))"
    r"|(?P<step>\.\*(?=[.\[]|\Z))|(?P<index>\[\*\])|(?P<any>\*+)|(?P<text>[^*.\[]+|.)",
    re.DOTALL,
)

EXPRESSIONS = {
    "first_steps": r"(?:.*\.)?",
    "steps": r"(?:[.\[].*)?",
    "first": r"[^.\[\]]+",
    "step": r"(?:\.[^.\[\]]+|\[[0-9]+\])",
    "index": r"\[[0-9]+\]",
    "any": r"[^.\[\]]*",
}
"""What the tokens of a pattern match in a path; the others match themselves."""


@functools.lru_cache(maxsize=256)
def _expression(path: str) -> re.Pattern[str]:
    tokens = TOKEN.finditer(path)
    parts = (EXPRESSIONS.get(each.lastgroup or "") or re.escape(each[0]) for each in tokens)
    return re.compile("".join(parts) + r"(?=[.\[]|\Z)", re.DOTALL)
