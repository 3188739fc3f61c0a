"""Plain data as one HTML page that needs nothing else.

What the data says is text wherever it stands: it is JSON in the page, without a `<`, and the page's
script makes nodes of it, never markup.  The policy of the page lets no other script run, and
nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
from typing import Any

from tffc.printable import printable, printable_lines


def page(description: dict[str, Any]) -> str:
    """Return the page of what `tffc.explorer.description` describes."""
    graphs = description["graphs"]
    rest = {name: value for name, value in description.items() if name != "graphs"}
    script, style = _built("explorer.js"), _built("explorer.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    title = html.escape(printable(description["title"]))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title} · tffc</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            "<noscript>This page draws itself with a script of its own, which this browser does "
            "not run.</noscript>",
            _data("description", rest),
            *(_data(f"graph-{number}", graph) for number, graph in enumerate(graphs)),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _built(name: str) -> str:
    """Return a file that is made from `web`."""
    file = importlib.resources.files("tffc.explorer") / "built" / name
    return file.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return what a policy says of a script or a style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(name: str, value: Any) -> str:
    """Return data as an element that no browser runs."""
    text = json.dumps(_seen(value), separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _seen(value: Any) -> Any:
    """Return data with escapes in its texts for all that cannot be seen."""
    if isinstance(value, str):
        return printable_lines(value)
    if isinstance(value, dict):
        return {printable(name): _seen(each) for name, each in value.items()}
    return [_seen(each) for each in value] if isinstance(value, list) else value
