"""Errors as JSON values, and the options that the help of errors names.

The library's own messages name no options, because callers from Python read them too.
"""

from __future__ import annotations

from tffc.support.errors import Span, TffcError

OPTIONS = {
    "E532": "--allow-impure-duplicates allows them",
    "E603": "--force replaces it",
    "E616": "--for names it",
    "E661": "--state-in FILE gives a state, and tffc compile --initialize FILE.pb the computation",
    "E662": "--clients-per-round sets the number",
    "E699": "--force replaces it",
    "E800": "`tffc golden --help` shows one, and --folder names its folder",
    "E903": "leave --data out",
    "E920": "--resume continues it",
    "E922": "then --resume continues the run",
    "E934": "--engine-options takes them",
    "E936": "leave --engine-options out",
    "E956": "--force replaces it",
    "E996": "tffc run --out writes one",
}
"""For each error code, the text to append to the help of its errors."""


def facts_of(error: TffcError) -> dict[str, object]:
    """Return the code, message, notes and help of an error as JSON values."""
    return {
        "code": error.code,
        "message": error.message,
        "notes": list(error.notes),
        "help": help_of(error),
    }


def place_of(span: Span | None) -> dict[str, object]:
    """Return the file and line of a span as JSON values."""
    return {"file": span and span.file, "line": span and span.line}


def help_of(error: TffcError) -> str | None:
    """Return the help of an error, with the option to use."""
    parts = [error.help, OPTIONS.get(error.code)]
    return "; ".join(part for part in parts if part) or None
