"""Texts of the notation in colours, on terminals."""

from __future__ import annotations

from typing import ClassVar

from pygments import highlight
from pygments.formatters.terminal256 import Terminal256Formatter
from pygments.style import Style
from pygments.token import Comment, Keyword, Name, String

from tffc.language.notation.pygments_lexer import NotationLexer

LARGEST = 1_000_000
"""Longer texts are not coloured, because that would take more than a second."""


class _OnTerminals(Style):
    """A few colours of the 256-colour palette that are readable on white and on black."""

    styles: ClassVar = {
        Comment: "#767676",
        Keyword: "#0087d7",
        Keyword.Namespace: "#d70000",
        Name.Builtin: "#008700",
        Name.Label: "#af5f00",
        String: "#af5f00",
    }


def colored(text: str) -> str:
    """Return a text of the notation, coloured for a terminal."""
    if len(text) > LARGEST:
        return text
    lexer = NotationLexer(stripnl=False, ensurenl=False)
    return highlight(text, lexer, Terminal256Formatter(style=_OnTerminals))
