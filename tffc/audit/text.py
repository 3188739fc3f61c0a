"""An audit as text, for a terminal, a golden file or a review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tffc.audit.audit import Audit, Channel, Depends, Protection
from tffc.audit.policy import Violation
from tffc.errors import Span, shown_path
from tffc.printable import printable


def place(span: Span) -> str:
    """Return a span as file and line, relative to the working directory if possible."""
    return f"{shown_path(span.file)}:{span.line}"


def without_line(span: Span) -> str:
    """Return the file of a span, for texts that do not change when lines move."""
    return shown_path(span.file)


def audit_text(audit: Audit, show_place: Callable[[Span], str] = place) -> str:
    """Return an audit as lines, with unprintable characters escaped."""
    return "\n".join(map(printable, _lines(audit, show_place))) + "\n"


def _lines(audit: Audit, show_place: Callable[[Span], str]) -> Iterator[str]:
    yield f"form: {audit.form}"
    yield f"type: {audit.type}"
    yield f"clients' data: {_listed(audit.data)}"
    yield f"in no channel: {_listed(audit.in_no_channel)}"
    open_to_system = (Protection.SYSTEM, Protection.PROGRAM)
    seen = _listed(each.name for each in audit.channels if each.protection in open_to_system)
    yield f"seen of each client by whoever carries out the aggregation: {seen}"
    for channel in audit.channels:
        yield ""
        yield from _channel(channel, show_place)
    for sent in audit.broadcasts:
        yield ""
        yield f"broadcast {sent.name}"
        yield from _at(sent.span, show_place)
        yield f"  type: {sent.type}"
        yield f"  bytes to each client: {size_text(sent.size)}"
        yield from _depends(sent.depends)
    for title, results in (("new state", audit.state), ("output", audit.output)):
        if results:
            yield ""
            yield title
        for result in results:
            yield f"  {result.name}: {result.type}"
            yield from (f"  {line}" for line in _depends(result.depends))
    yield ""
    yield "effects: " + ("none" if not audit.effects else "")
    for effect in audit.effects:
        where = "" if effect.span is None else f" ({show_place(effect.span)})"
        yield f"  at the {effect.side}: {effect.operation}, {effect.kind}{where}"


def _channel(channel: Channel, show_place: Callable[[Span], str]) -> Iterator[str]:
    yield f"channel {channel.name}"
    yield from _at(channel.span, show_place)
    yield f"  operator: {channel.operator}"
    yield f"  protection: {channel.shown_protection}"
    yield f"  type: {channel.type}"
    yield f"  bytes from each client: {size_text(channel.size)}"
    yield from _depends(channel.depends)
    yield f"  goes to: {_listed(channel.goes_to)}"


def _depends(depends: Depends) -> Iterator[str]:
    """Yield the dependencies of a value, as lines below its name."""
    listed = depends.listed()
    yield from (f"  {label}: {', '.join(values)}" for label, values in listed.items())
    if not listed:
        yield "  depends on nothing: it is a constant"


def _at(span: Span | None, show_place: Callable[[Span], str]) -> Iterator[str]:
    if span is not None:
        yield f"  at: {show_place(span)}"


def size_text(size: int | None) -> str:
    """Return a number of bytes as text."""
    return "not fixed" if size is None else f"{size:,}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def violation_text(found: Violation) -> str:
    """Return a violation as one line, with its file and line if known."""
    at = "" if found.span is None else f"{place(found.span)}: "
    end = f" (excepted: {found.excepted})" if found.excepted is not None else ""
    if found.expired is not None:
        end = f" (the exception ended on {found.expired})"
    return printable(f"{at}{found.rule}: {found.subject}: {found.message}{end}")
