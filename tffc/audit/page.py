"""An audit as one self-contained HTML page."""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from tffc.audit.audit import Audit, Channel, Depends
from tffc.audit.policy import Violation
from tffc.audit.text import place, size_text, violation_text
from tffc.errors import Span
from tffc.printable import printable
from tffc.web_page import web_page

STYLE = pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def audit_html(audit: Audit, found: Sequence[Violation], source: str) -> str:
    """Return an audit as one self-contained page without scripts."""
    title = f"Audit of {source}"
    body = [
        f"<h1>{_text(title)}</h1>",
        f"<p>Compiled to {_text(audit.form)}: {_code(audit.type)}</p>",
        *_policy(found),
        "<h2>What leaves the clients</h2>",
        *_table(
            ("channel", "protection", "bytes", "may depend on", "goes to"),
            (_channel_row(channel) for channel in audit.channels),
        ),
        f"<p>In no channel: {', '.join(map(_code, audit.in_no_channel)) or 'nothing'}.</p>",
        "<h2>What is sent to the clients</h2>",
        *_table(
            ("broadcast", "bytes", "may depend on"),
            (
                (_named(b.name, b.type, b.span), size_text(b.size), _depends(b.depends))
                for b in audit.broadcasts
            ),
        ),
        "<h2>What is kept and put out</h2>",
        *_table(
            ("value", "may depend on"),
            (
                (_named(each.name, each.type, None), _depends(each.depends))
                for each in (*audit.state, *audit.output)
            ),
        ),
        "<h2>Effects</h2>",
        *_table(
            ("side", "kind", "operation"),
            ((_text(e.side), _text(e.kind), _code(e.operation)) for e in audit.effects),
        ),
    ]
    return web_page(_text(title), STYLE, ["<main>", *body, "</main>"])


def _policy(found: Sequence[Violation]) -> Iterator[str]:
    if found:
        yield "<h2>Beyond the policy</h2>"
        yield "<ul>"
        for each in found:
            kind = "excepted" if each.excepted is not None else "violation"
            yield f'<li class="{kind}">{_text(violation_text(each))}</li>'
        yield "</ul>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    cells = [
        "".join(
            f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads, row, strict=True)
        )
        for row in rows
    ]
    if not cells:
        yield "<p>Nothing.</p>"
        return
    yield '<div class="wide"><table>'
    yield "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"
    yield from (f"<tr>{row}</tr>" for row in cells)
    yield "</table></div>"


def _channel_row(channel: Channel) -> tuple[str, ...]:
    protection = _text(channel.shown_protection)
    return (
        _named(channel.name, channel.type, channel.span) + f"<br>{_text(channel.operator)}",
        f'<span class="{channel.protection.name.lower()}">{protection}</span>',
        size_text(channel.size),
        _depends(channel.depends),
        "<br>".join(map(_code, channel.goes_to)) or "nothing",
    )


def _named(name: str, type: str, span: Span | None) -> str:
    at = "" if span is None else f"<br>{_text(place(span))}"
    return f"<strong>{_text(name)}</strong>{at}<br>{_code(type)}"


def _depends(depends: Depends) -> str:
    listed = depends.listed().items()
    return "<br>".join(f"{label}: {', '.join(map(_code, v))}" for label, v in listed) or "nothing"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    return html.escape(printable(text))
