"""An audit as text, for a terminal, a golden file or a review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tffc.assurance.audit.audit import Audit, Channel, Depends
from tffc.assurance.audit.places import place
from tffc.assurance.audit.policy import Violation
from tffc.support.errors import Span
from tffc.support.printable import printable

ONCE = "sent to each node once, and in no broadcast"
"""How resources get to where they are read."""


def audit_text(audit: Audit, show_place: Callable[[Span], str]) -> str:
    """Return an audit as lines that change only with what leaves the clients, with unprintable
    characters escaped."""
    return "\n".join(map(printable, _lines(audit, show_place, has_contents=False))) + "\n"


def report_text(
    document: Mapping[str, Any],
    audit: Audit,
    show_place: Callable[[Span], str],
    privacy: Iterable[str] = (),
) -> str:
    """Return a report, which is also given as a document, as lines, with those about privacy."""
    end = list(privacy)
    lines = [*_head(document), *_lines(audit, show_place, has_contents=True)]
    if end:
        lines += ["", *end]
    return "\n".join(map(printable, lines)) + "\n"


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    policy, program, tool = document["policy"], document["program"], document["tool"]
    yield f"verdict: {document['verdict']['text']}"
    if document["as_of"] is not None:
        yield f"as of: {document['as_of']}"
    if policy is not None:
        in_file = f"{policy['path']}, SHA-256 {policy['digest']}"
        yield f"policy: {'in Python' if policy['path'] is None else in_file}"
        for rule in policy["rules"]:
            yield f"  {rule['rule']}: {rule['requires']}: {rule['verdict']}"
        for waiver in policy["exceptions"]:
            until = f"until {waiver['expires']}, {waiver['state']}"
            subject = f"{waiver['rule']} for {waiver['channel']}"
            yield f"  exception to {subject}, {until}: {waiver['reason']}"
    yield f"source: {document['source']}"
    yield f"read: {document['read']['text']}"
    yield f"{document['read']['what']}: SHA-256 {program['digest']}"
    yield f"tool: {tool['name']} {tool['version']}, SHA-256 {tool['digest']}"
    yield ""


def _lines(audit: Audit, show_place: Callable[[Span], str], *, has_contents: bool) -> Iterator[str]:
    yield f"form: {audit.form}"
    yield f"type: {audit.type}"
    if audit.in_groups is not None:
        yield f"clients in groups: {audit.in_groups}"
    if audit.buffered is not None:
        yield f"buffered rounds: {audit.buffered}"
    yield f"clients' data: {_listed(audit.data)}"
    yield f"in no channel: {_listed(audit.in_no_channel)}"
    if audit.only_in_effects:
        yield f"  of these, in effects at the clients: {_listed(audit.only_in_effects)}"
    seen = _listed(audit.seen_by_aggregator)
    yield f"seen of each client by whoever carries out the aggregation: {seen}"
    parts = _listed(audit.in_texts_of_errors)
    yield f"may be in the texts of a client's errors, besides shapes: {parts}"
    for channel in audit.channels:
        yield ""
        yield from _channel(channel, show_place)
        if has_contents:
            yield f"  content: {channel.content}"
    for sent in audit.broadcasts:
        yield ""
        yield f"broadcast {sent.name}"
        yield from _at(sent.span, show_place)
        yield f"  type: {sent.type}"
        yield f"  bytes to each client: {size_text(sent.size)}"
        yield from _depends(sent.depends)
    if audit.resources:
        yield ""
        yield f"resources, {ONCE}"
    for read in audit.resources:
        yield f"  in {read.component}, at the {read.side}: {read.type}"
        yield f"    bytes: {size_text(read.size)}"
        yield f"    SHA-256: {read.digest}"
    for title, results in (
        ("new state", audit.state),
        ("output", audit.output),
        ("kept by each client for its next round", audit.client_state),
    ):
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
        yield from (f"  {line}" for line in _depends(effect.depends, empty=None))
        if has_contents:
            yield f"    content: {effect.content}"


def _channel(channel: Channel, show_place: Callable[[Span], str]) -> Iterator[str]:
    yield f"channel {channel.name}"
    yield from _at(channel.span, show_place)
    yield f"  operator: {channel.operator}"
    yield f"  protection: {channel.shown_protection}"
    yield f"  type: {channel.type}"
    yield f"  bytes from each client: {size_text(channel.size)}"
    yield from _depends(channel.depends)
    if channel.single is not None:
        yield f"  may release one client's value: {channel.single}"
    yield f"  goes to: {_listed(channel.goes_to)}"


def _depends(
    depends: Depends, empty: str | None = "  depends on no data, state, channel or draw"
) -> Iterator[str]:
    """Yield the dependencies of a value, as lines below its name."""
    listed = depends.listed()
    yield from (f"  {label}: {', '.join(values)}" for label, values in listed.items())
    if not listed and empty is not None:
        yield empty


def _at(span: Span | None, show_place: Callable[[Span], str]) -> Iterator[str]:
    if span is not None:
        yield f"  at: {show_place(span)}"


def size_text(size: int | None) -> str:
    """Return a number of bytes as text."""
    return "not fixed" if size is None else f"{size:,}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def violation_text(violation: Violation, show_place: Callable[[Span], str] = place) -> str:
    """Return a violation as one line, with its file and line if known."""
    at = "" if violation.span is None else f"{show_place(violation.span)}: "
    end = f" (excepted: {violation.excepted})" if violation.excepted is not None else ""
    if violation.expired is not None:
        end = f" (the exception ended on {violation.expired})"
    return printable(f"{at}{violation.rule}: {violation.subject}: {violation.message}{end}")
