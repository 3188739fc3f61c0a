"""Types and programs in the cells of notebooks: coloured, and folded by their indentation."""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterator

from tffc.support.cell import cell
from tffc.support.printable import printable_lines

TEMPLATE = pathlib.Path(__file__).with_suffix(".html")

MOST_LINES = 1000
"""The most lines that are shown."""

MOST_LETTERS = 200_000
"""The most characters that are shown."""

UNFOLDED = 40
"""A text of no more lines is shown unfolded."""

DEEPEST = 30
"""Lines that are indented more often are not folded."""

COLOURED = frozenset({"c", "c1", "k", "kn", "kt", "nb", "nl", "s", "s2"})
"""The short names of kinds of tokens that have a colour in the style of cells."""


def notation_cell(heading: str, text: str, name: str = "") -> str:
    """Return a text of the notation as HTML, below a heading."""
    from markupsafe import Markup

    all_lines = text[:MOST_LETTERS].split("\n")
    shown = all_lines[:MOST_LINES]
    left = text.count("\n") + 1 - len(shown)
    code = Markup("".join(_folded(shown, is_open=len(shown) <= UNFOLDED)))
    return cell(TEMPLATE, heading=heading, name=name, code=code, left=left)


def _folded(lines: list[str], *, is_open: bool) -> Iterator[str]:
    """Yield HTML in which each line can hide the lines below it that are indented more."""
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    open_at: list[int] = []
    for number, line in enumerate(_coloured(lines)):
        place = indents[number]
        while open_at and place <= open_at[-1]:
            open_at.pop()
            yield "</details>"
        following = indents[number + 1] if number + 1 < len(lines) else 0
        if following > place and len(open_at) < DEEPEST:
            opened = " open" if is_open or not open_at else ""
            yield f'<details{opened}><summary>{line}<span class="more"> …</span></summary>'
            open_at.append(place)
        else:
            yield f"{line}\n"
    yield "</details>" * len(open_at)


def _coloured(lines: list[str]) -> Iterator[str]:
    """Yield each line as HTML with a span around each token that has a colour."""
    from pygments.token import STANDARD_TYPES

    from tffc.language.notation.pygments_lexer import NotationLexer

    lexer = NotationLexer(stripnl=False, ensurenl=False)
    for line in lines:
        parts: list[str] = []
        for kind, text in lexer.get_tokens(printable_lines(line)):
            name = STANDARD_TYPES.get(kind, "")
            escaped = html.escape(text)
            parts.append(f'<span class="{name}">{escaped}</span>' if name in COLOURED else escaped)
        yield "".join(parts)
