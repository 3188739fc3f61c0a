"""A Pygments lexer for the notation of programs, used on terminals and in pages.

`pygmentize -l tffc` finds it by its entry point.
"""

from __future__ import annotations

from typing import ClassVar

from pygments import highlight
from pygments.formatters.terminal256 import Terminal256Formatter
from pygments.lexer import RegexLexer, words
from pygments.style import Style
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Token,
    Whitespace,
)

from tffc.language.dtypes import DType

LARGEST = 1_000_000
"""Longer texts are not coloured, because that would take more than a second."""


class NotationLexer(RegexLexer):
    """Lexes programs in all styles that `tffc print` shows."""

    name = "tffc notation"
    aliases: ClassVar = ["tffc"]
    filenames: ClassVar = ["*.sexpr"]

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r";[^\n]*", Comment.Single),
            (r"-+>", Operator),
            (words(("let", "in", "where", "placement"), r"\b", r"\b"), Keyword),
            (words(("True", "False"), r"\b", r"\b"), Keyword.Constant),
            (words(("CLIENTS", "SERVER"), r"\b", r"\b"), Keyword.Namespace),
            (words([str(each) for each in DType], r"\b", r"\b"), Keyword.Type),
            # A string without an end is one to the end of its line.
            (r"(comp|data)#(\w+|\"(\\.|[^\"\\\n])*\"?)", Name.Label),
            (r"sha256:[0-9a-f]+", Comment),
            (r"(federated|sequence|generic)_\w+", Name.Builtin),
            (r"b?'(\\.|[^'\\\n])*'?", String),
            (r'"(\\.|[^"\\\n])*"?', String.Double),
            (r"0x[0-9a-f]+", Number.Hex),
            (r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf\b|nan\b)j?", Number),
            (r"[^\W\d]\w*", Name),
            (r"[@=*&?|]", Operator),
            (r"[(){}<>\[\],.:]", Punctuation),
            (r".", Token.Text),
        ]
    }


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
