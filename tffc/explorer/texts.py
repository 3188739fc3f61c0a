"""The text of a program before and after each pass, and the lines that each pass changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tffc.assurance.diff.alignment import aligned
from tffc.language.nodes import Block, Lambda, Node
from tffc.language.notation import formatted, typed
from tffc.language.notation.lexer import quoted
from tffc.passes.pipeline import Finished
from tffc.support.errors import NotationError
from tffc.support.printable import printable

LONGEST = 2_000_000
"""The most characters of a text in the page; `tffc print` shows all."""

STYLES: dict[str, Callable[[Node], str]] = {"typed": typed, "formatted": formatted}


class ProgramTexts:
    """The distinct texts of a program, numbered, and the passes between them."""

    def __init__(self, program: Node) -> None:
        self._texts: list[dict[str, Any]] = [_text("as traced", program)]
        self._passes: list[dict[str, Any]] = []

    @property
    def last(self) -> int:
        """The number of the text after all passes so far."""
        return len(self._texts) - 1

    def observe(self, finished: Finished) -> None:
        """Record a pass that has run."""
        step = finished.step
        before = self.last
        if finished.before != finished.after:
            self._texts.append(_text(f"after {step.each.name}", finished.after))
        self._passes.append(
            {
                "name": str(step),
                "summary": step.each.summary,
                "details": step.each.details,
                "before": before,
                "after": self.last,
                "holds": list(finished.holds),
                "diff": {} if before == self.last else self._differences(before, self.last),
            }
        )

    def _differences(self, before: int, after: int) -> dict[str, list[list[int]]]:
        old, new = self._texts[before], self._texts[after]
        return {style: difference(old[style], new[style]) for style in STYLES}

    def plain(self) -> dict[str, Any]:
        return {"texts": self._texts, "passes": self._passes}


def difference(before: Sequence[str], after: Sequence[str]) -> list[list[int]]:
    """Return the line counts of a diff, in order: [removed, added, kept], and so on."""
    blocks: list[list[int]] = []
    first = start = 0
    for one, other in (*aligned(before, after), (len(before), len(after))):
        if one > first or other > start or not blocks:
            blocks.append([one - first, other - start, 0])
        if one < len(before):
            blocks[-1][2] += 1
        first, start = one + 1, other + 1
    return blocks


def _text(title: str, program: Node) -> dict[str, Any]:
    return {"title": title, **{style: lines_of(show, program) for style, show in STYLES.items()}}


def lines_of(show: Callable[[Node], str], program: Node) -> list[str]:
    """Return the lines of a program's text, or an error if it has none."""
    try:
        text = show(program)
    except NotationError as error:
        return [f"; {error.message}"]
    if len(text) <= LONGEST:
        return text.split("\n")
    lines = text[:LONGEST].split("\n")[:-1]
    return [*lines, f"; {len(text) - sum(map(len, lines))} characters more: tffc print shows them"]


def binding_lines(program: Node, style: str, lines: Sequence[str]) -> dict[str, int]:
    """Return the line, from 1, at which each binding of a flat program begins in its text."""
    body = program.result if isinstance(program, Lambda) else program
    names = [binding.name for binding in body.locals] if isinstance(body, Block) else []
    spell = quoted if style == "typed" else printable
    numbers: dict[str, int] = {}
    waiting = iter(names)
    name = next(waiting, None)
    for number, line in enumerate(lines, start=1):
        if name is None:
            break
        rest = line.removeprefix(f"  {spell(name)}")
        if rest != line and rest.startswith((":", "=")):
            numbers[name] = number
            name = next(waiting, None)
    return numbers
