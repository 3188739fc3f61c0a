"""A Pygments lexer for the notation of programs, used on terminals and in notebooks.

`pygmentize -l tffc` finds it by its entry point.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
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
