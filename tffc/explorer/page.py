"""Plain data as one self-contained HTML page.

The data cannot become markup: it is embedded as JSON without `<`, and the page's script turns it
into text nodes only.  The page's content security policy forbids other scripts and all loading.
"""

from __future__ import annotations

import html
import importlib.resources
import json
from typing import Any, TypeAlias

from tffc.support.printable import printable, printable_lines
from tffc.support.web_page import SHARED, web_page

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"


def page(description: dict[str, Any]) -> str:
    """Return the page for a description made by `tffc.explorer.description`."""
    graphs = description["graphs"]
    rest = {name: value for name, value in description.items() if name != "graphs"}
    body = [
        "<noscript>This page needs its own script, which this browser does not run.</noscript>",
        _data("description", rest),
        *(_data(f"graph-{number}", graph) for number, graph in enumerate(graphs)),
    ]
    title = html.escape(printable(description["title"]))
    style = SHARED + _built("explorer.css")
    return web_page(f"{title} · tffc", style, body, _built("explorer.js"))


def _built(name: str) -> str:
    """Return a file that is built from `web`."""
    file = importlib.resources.files("tffc.explorer") / "built" / name
    return file.read_text(encoding="utf-8")


def _data(name: str, value: Any) -> str:
    """Return data as an element that browsers do not run."""
    text = json.dumps(_seen(value), separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _seen(value: Json) -> Json:
    """Return data with unprintable characters in its texts escaped."""
    match value:
        case str():
            return printable_lines(value)
        case dict():
            return {printable(name): _seen(content) for name, content in value.items()}
        case list():
            return [_seen(item) for item in value]
        case _:
            return value
