"""The report of an audit as one self-contained page without scripts, from its document."""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tffc.audit.text import size_text
from tffc.printable import printable
from tffc.web_page import web_page

STYLE = pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8")

Plain = dict[str, Any]
"""Data that JSON can hold."""

EXCEPTION = ("channel", "content", "rule", "reason", "expires", "state")
"""What is shown of an exception."""


def audit_page(document: Plain) -> str:
    """Return the page of a report, given as `report.document` returns it."""
    audit = document["audit"]
    title = f"Audit of {document['source']}"
    body = [
        f"<h1>{_text(title)}</h1>",
        f"<p><strong>{_text(document['verdict']['text'])}</strong></p>",
        *_facts(document),
        *_policy(document),
        "<h2>What leaves the clients</h2>",
        *_table(
            ("channel", "protection", "bytes", "may depend on", "goes to"),
            (_channel_row(channel) for channel in audit["channels"]),
        ),
        f"<p>In no channel: {_listed(audit['in_no_channel'])}.</p>",
        "<p>Seen of each client by whoever carries out the aggregation: "
        f"{_listed(audit['seen_by_aggregator'])}.</p>",
        "<h2>What is sent to the clients</h2>",
        *_table(
            ("broadcast", "bytes", "may depend on"),
            ((_named(b), size_text(b["size"]), _depends(b)) for b in audit["broadcasts"]),
        ),
        "<h2>What is kept and put out</h2>",
        *_table(
            ("value", "may depend on"),
            ((_named(each), _depends(each)) for each in (*audit["state"], *audit["output"])),
        ),
        "<h2>Effects</h2>",
        *_table(
            ("side", "kind", "operation", "may depend on", "content"),
            (
                (
                    *(_text(e[key]) for key in ("side", "kind", "operation")),
                    _depends(e),
                    _text(e["content"]),
                )
                for e in audit["effects"]
            ),
        ),
    ]
    return web_page(_text(title), STYLE, ["<main>", *body, "</main>"])


def _facts(document: Plain) -> Iterator[str]:
    program, tool = document["program"], document["tool"]
    yield f"<p>Read: {_text(document['read']['text'])}.</p>"
    yield f"<p>Compiled to {_text(program['form'])}: {_code(program['type'])}</p>"
    yield f"<p>Program: {_code(program['digest'] or 'none')}</p>"
    yield f"<p>Audited by {tool['name']} {_text(tool['version'])}, {_code(tool['digest'])}.</p>"
    if document["as_of"] is not None:
        yield f"<p>As of {_text(document['as_of'])}.</p>"


def _policy(document: Plain) -> Iterator[str]:
    policy = document["policy"]
    if policy is not None:
        yield "<h2>Policy</h2>"
        yield f"<p>{_text(policy['path'] or '')} {_code(policy['digest'] or '')}</p>"
        yield from _table(
            ("rule", "requires", "verdict"),
            (
                (_text(r["rule"]), _text(r["requires"]), _text(r["verdict"]))
                for r in policy["rules"]
            ),
        )
        if policy["exceptions"]:
            yield from _table(
                EXCEPTION,
                (tuple(_text(e[key]) for key in EXCEPTION) for e in policy["exceptions"]),
            )
    if document["violations"]:
        yield "<h2>Beyond the policy</h2>"
        yield "<ul>"
        for each in document["violations"]:
            kind = "excepted" if each["excepted"] is not None else "violation"
            yield f'<li class="{kind}">{_text(each["text"])}</li>'
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


def _channel_row(channel: Plain) -> tuple[str, ...]:
    protection = _text(channel["shown_protection"])
    return (
        _named(channel) + f"<br>{_text(channel['operator'])}<br>{_code(channel['content'])}",
        f'<span class="{channel["protection"]}">{protection}</span>',
        size_text(channel["size"]),
        _depends(channel),
        "<br>".join(map(_code, channel["goes_to"])) or "nothing",
    )


def _named(value: Plain) -> str:
    span = value.get("span")
    at = "" if span is None else f"<br>{_text(span['file'])}:{span['line']}"
    return f"<strong>{_text(value['name'])}</strong>{at}<br>{_code(value['type'])}"


def _depends(value: Plain) -> str:
    listed = value["depends"]["listed"].items()
    return "<br>".join(f"{label}: {', '.join(map(_code, v))}" for label, v in listed) or "nothing"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names)) or "nothing"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    return html.escape(printable(text))
