"""Audits in the cells of notebooks: the verdict, what leaves the clients, and the whole page."""

from __future__ import annotations

import pathlib
from typing import Any

from tffc.assurance.audit.text import size_text
from tffc.support.cell import cell, framed

TEMPLATE = pathlib.Path(__file__).with_suffix(".html")

VERDICTS = {"passes": "good", "violates": "bad"}

PROTECTIONS = {"secure": "good", "system": "doubtful", "program": "doubtful", "none": "bad"}

MOST_NAMES = 40
"""The most names of what a channel depends on that are shown of each kind."""


def audit_cell(document: dict[str, Any], page: str) -> str:
    """Return a report as HTML, given as `report.document` returns it; `page` is its whole page."""
    from markupsafe import Markup

    return cell(
        TEMPLATE,
        document=document,
        kind=VERDICTS.get(document["verdict"]["word"], "none"),
        channels=[_channel(channel) for channel in document["audit"]["channels"]],
        page=Markup(framed(page)),
    )


def _channel(channel: dict[str, Any]) -> dict[str, str]:
    depends = (
        f"{word} {', '.join(names[:MOST_NAMES])}" + (" and more" if names[MOST_NAMES:] else "")
        for word, names in channel["depends"]["listed"].items()
    )
    span = channel["span"]
    return {
        "name": channel["name"],
        "kind": PROTECTIONS[channel["protection"]],
        "protection": channel["shown_protection"],
        "size": size_text(channel["size"]),
        "depends": "; ".join(depends) or "nothing",
        "place": "" if span is None else f"{span['file']}:{span['line']}",
    }
