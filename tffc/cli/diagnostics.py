"""Errors as people read them: what is wrong, where it stands, and what to do.

error[E404]: federated_sum needs a value placed at the clients, found one of type `int32@SERVER`
  --> round.py:12:11
   |
12 |     total = tff.federated_sum(state)
   |             ^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = note: ...
   = help: ...
   = explain: tffc explain E404
"""

from __future__ import annotations

import os
import traceback
import unicodedata

import click

from tffc.errors import LONGEST_LINE, LoadError, Span, TffcError, abridge, excerpt
from tffc.printable import printable, printable_lines

COLORS = {"error": "red", "warning": "yellow"}


def render(error: TffcError, severity: str = "error", *, explain: bool = True) -> str:
    """The error, or warning, in lines, with the colours of a terminal.

    The last one is the command that explains it; `explain` is false where it was told before.
    """
    from tffc.explanations import has_page  # which nothing needs that goes well

    first, *rest = abridge(error.seen(error.message)).split("\n")
    gutter = " " * (0 if error.span is None else len(str(error.span.line)))
    lines = [
        click.style(f"{severity}[{error.code}]", fg=COLORS[severity], bold=True) + f": {first}",
        *rest,
    ]
    if error.span is not None:
        lines += _frame(error.span, gutter)
        if error.notes or error.help:
            lines.append(_blue(f"{gutter} |"))
    for label, text in [("note", note) for note in error.notes] + [("help", error.help)]:
        if text is not None:
            lines += _remark(gutter, label, error.seen(text))
    if explain and has_page(error.code):
        lines += _remark(gutter, "explain", f"tffc explain {error.code}")
    return "\n".join(lines)


def report(error: TffcError, *, debug: bool) -> None:
    """Shows an error on stderr, with the traceback of what the user's own code raised."""
    if debug:
        _say_traceback(error)
    elif isinstance(error, LoadError) and error.__cause__ is not None:
        # What the user's own code raised; the front end has taken our frames out of it.
        _say_traceback(error.__cause__)
    click.echo(render(error), err=True, color=colors())


def _say_traceback(error: BaseException) -> None:
    click.echo(printable_lines("".join(traceback.format_exception(error))), err=True)


def colors() -> bool | None:
    """What `click.echo` takes: no colours if NO_COLOR is set, otherwise those of a terminal."""
    return False if "NO_COLOR" in os.environ else None


def _remark(gutter: str, label: str, text: str) -> list[str]:
    indent = " " * (len(gutter) + len(f" = {label}: "))
    first, *rest = abridge(text).split("\n")
    head = _blue(f"{gutter} =") + " " + click.style(label, bold=True)
    return [f"{head}: {first}", *(indent + line for line in rest)]


def _frame(span: Span, gutter: str) -> list[str]:
    """Where the span is, and its first line with carets below it, if the line can be read."""
    source = span.source_line()
    start, end = _columns(span, source)
    column = "" if start is None else f":{start + 1}"
    place = printable(f"{span.shown()}{column}")
    lines = [_blue(f"{gutter}-->") + f" {place}"]
    if not source:
        return lines
    bar = _blue(f"{gutter} |")
    length = min(end - (start or 0), LONGEST_LINE)
    shown, first = excerpt(source, start or 0, length)
    parts = shown[:first], shown[first : first + length], shown[first + length :]
    before, marked, after = map(printable_lines, parts)
    lines += [bar, _blue(f"{span.line} |") + f" {before}{marked}{after}"]
    if start is not None:
        carets = click.style("^" * max(1, _width(marked)), fg="red", bold=True)
        lines.append(f"{bar} {_blank(before)}{carets}")
    return lines


def _columns(span: Span, source: str) -> tuple[int | None, int]:
    """The marked part of the first line, counted in characters where spans count in bytes."""
    if span.column is None:
        return None, len(source)
    encoded = source.encode()
    start = len(encoded[: span.column].decode(errors="ignore"))
    if span.end_column is None:
        return start, start + 1
    if span.end_line not in (None, span.line):
        return start, len(source)
    return start, len(encoded[: span.end_column].decode(errors="ignore"))


def _blank(text: str) -> str:
    """Space as wide as the text; tabs stay, for their width is the terminal's business."""
    return "".join("\t" if letter == "\t" else " " * _width(letter) for letter in text)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _blue(text: str) -> str:
    return click.style(text, fg="blue", bold=True)
