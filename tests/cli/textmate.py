"""The lexer of the notation as a TextMate grammar, for editors and GitHub's Linguist.

python -m tests.cli.textmate > docs/editors/tffc.tmLanguage.json
"""

from __future__ import annotations

import json
from typing import Any

from pygments.token import Token, is_token_subtype

from tffc.language.notation.pygments_lexer import NotationLexer

SCOPES = {
    Token.Comment: "comment.line",
    Token.Keyword.Type: "storage.type",
    Token.Keyword.Namespace: "constant.language.placement",
    Token.Keyword.Constant: "constant.language",
    Token.Keyword: "keyword.control",
    Token.Name.Builtin: "support.function",
    Token.Name.Label: "entity.name.tag",
    Token.Literal.String: "string.quoted",
    Token.Literal.Number: "constant.numeric",
    Token.Name: "variable",
    Token.Operator: "keyword.operator",
    Token.Punctuation: "punctuation",
}
"""The scope of every kind of token; of two that fit the first."""


def grammar() -> str:
    """Return the grammar as JSON."""
    patterns: list[dict[str, Any]] = []
    for pattern, token in NotationLexer.tokens["root"]:
        scopes = [scope for kind, scope in SCOPES.items() if is_token_subtype(token, kind)]
        match = pattern if isinstance(pattern, str) else pattern.get()
        if scopes:
            patterns.append({"match": match, "name": f"{scopes[0]}.tffc"})
    return json.dumps(
        {
            "name": NotationLexer.name,
            "scopeName": "source.tffc",
            "fileTypes": [name.removeprefix("*.") for name in NotationLexer.filenames],
            "patterns": patterns,
        },
        indent=2,
    )


if __name__ == "__main__":
    print(grammar())
