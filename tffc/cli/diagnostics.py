"""Rendering of errors: the message, the place in the source, notes and help.

error[E401]: federated_sum needs a value placed at the clients, found one of type `int32@SERVER`
  --> round.py:12:11
   |
12 |     total = tff.federated_sum(state)
   |             ^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = note: ...
   = help: ...
   = explain: tffc explain E401
"""

from __future__ import annotations

import sys
import traceback

import click

from tffc.cli.flags import help_of
from tffc.cli.screen import AMBER, BLUE, RED, cells, colors, width_of, wrapped
from tffc.runtime.user_code.source import class_name
from tffc.support.errors import LONGEST_LINE, LoadError, Span, TffcError, abridge, excerpt
from tffc.support.printable import printable, printable_lines

COLORS = {"error": RED, "warning": AMBER}

LONGEST_PART = 20_000
"""The most characters of one part of a traceback, such as a message."""

LEAST = 40
"""The least characters of the user's line that are shown, even on a narrower terminal."""


def render(
    error: TffcError, severity: str = "error", *, explain: bool = True, width: int | None = None
) -> str:
    """Return an error or warning as lines of at most this width, styled for terminals.

    With `explain`, the last line names the command that explains it.
    """
    # Imported late: only failures need it.
    from tffc.support.explanations import has_page

    help = help_of(error)
    gutter = " " * (0 if error.span is None else len(str(error.span.line)))
    title = f"{severity}[{error.code}]"
    whole = f"{title}: {abridge(error.seen(error.message))}".split("\n")
    first, *rest = (part for line in whole for part in wrapped(line, width, "    "))
    head = click.style(title, fg=COLORS[severity], bold=True)
    lines = [head + first[len(title) :], *rest]
    if error.span is not None:
        lines += _frame(error.span, gutter, width)
        if error.notes or help:
            lines.append(_blue(f"{gutter} |"))
    for label, text in [("note", note) for note in error.notes] + [("help", help)]:
        if text is not None:
            lines += _remark(gutter, label, error.seen(text), width)
    if explain and has_page(error.code):
        lines += _remark(gutter, "explain", f"tffc explain {error.code}", width)
    return "\n".join(lines)


def report(error: TffcError, *, debug: bool) -> None:
    """Print an error on stderr, with the traceback of an exception in the user's code."""
    if debug:
        _say_traceback(error)
    elif isinstance(error, LoadError) and error.__cause__ is not None:
        # An exception of the user's code; the front end has removed our frames from its traceback.
        _say_traceback(error.__cause__)
    show_error(error)


def show_error(error: TffcError, severity: str = "error", *, explain: bool = True) -> None:
    """Print an error or warning on stderr."""
    text = render(error, severity, explain=explain, width=width_of(sys.stderr))
    click.echo(text, err=True, color=colors())


def _say_traceback(error: BaseException) -> None:
    click.echo(printable_lines(traceback_text(error)), err=True)


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an exception, abridged where its message is very long.

    Only its class if Python cannot read the exception, whose class may be the user's, or a line of
    a file.
    """
    try:
        lines = traceback.format_exception(error)
    except Exception:  # noqa: BLE001  (Python's own reading fails at hostile exceptions)
        return f"{class_name(error)}\n"
    return "".join(each if len(each) <= LONGEST_PART else _shortened(each) for each in lines)


def _shortened(text: str) -> str:
    half = LONGEST_PART // 2
    return f"{text[:half]}...\n... {text[-half:]}"


def _remark(gutter: str, label: str, text: str, width: int | None) -> list[str]:
    indent = " " * (len(gutter) + len(f" = {label}: "))
    lines = abridge(text).split("\n")
    first, *rest = (part for line in lines for part in wrapped(indent + line, width, indent))
    head = _blue(f"{gutter} =") + " " + click.style(label, bold=True)
    return [f"{head}: {first[len(indent) :]}", *rest]


def _frame(span: Span, gutter: str, width: int | None) -> list[str]:
    """Return the location of a span and, if it can be read, its first line with carets below."""
    source = span.source_line()
    start, end = _columns(span, source)
    column = "" if start is None else f":{start + 1}"
    place = printable(f"{span.shown()}{column}")
    lines = [_blue(f"{gutter}-->") + f" {place}"]
    if not source:
        return lines
    bar = _blue(f"{gutter} |")
    longest = LONGEST_LINE
    if width is not None:
        longest = max(LEAST, min(longest, width - len(f"{gutter} | " + 2 * "...")))
    length = min(end - (start or 0), longest)
    shown, first = excerpt(source, start or 0, length, longest)
    parts = shown[:first], shown[first : first + length], shown[first + length :]
    before, marked, after = map(printable_lines, parts)
    lines += [bar, _blue(f"{span.line} |") + f" {before}{marked}{after}"]
    if start is not None:
        carets = click.style("^" * max(1, cells(marked)), fg=RED, bold=True)
        lines.append(f"{bar} {_blank(before)}{carets}")
    return lines


def _columns(span: Span, source: str) -> tuple[int | None, int]:
    """Return the marked part of the first line in characters; spans count bytes."""
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
    """Return space as wide as the text; tabs are kept, since the terminal decides their width."""
    return "".join("\t" if letter == "\t" else " " * cells(letter) for letter in text)


def _blue(text: str) -> str:
    return click.style(text, fg=BLUE, bold=True)
