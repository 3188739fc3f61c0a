"""Errors as JSON values, and the options that the help of errors names.

The library's own messages name no options, because callers from Python read them too.
"""

from __future__ import annotations

from tffc.support.errors import Span, TffcError

OPTIONS = {
    "another run": "--continue-from names this one there, to go on from its state and its rounds",
    "first state": "--state-in FILE gives a state, and tffc compile --initialize FILE.pb the "
    "computation",
    "generated arguments": "leave --data out",
    "golden file": "`tffc golden --help` shows one, and --folder names its folder",
    "impure duplicates": "--allow-impure-duplicates allows them",
    "partial": "--partial does so",
    "plain state": "--state-in takes this one, and counts rounds from 1",
    "program of data": "--for names it",
    "replace": "--force replaces it",
    "resume": "--resume continues it",
    "resume later": "then --resume continues the run",
    "run folder": "tffc run --out writes one",
    "sample size": "--clients-per-round sets the number",
}
"""For each remedy of an error, the options that stand for it, which are added to its help."""


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
    parts = [error.help, OPTIONS.get(error.remedy)]
    return "; ".join(part for part in parts if part) or None
