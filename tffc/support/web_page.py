"""Self-contained HTML pages.

The content security policy of a page allows only its own style and script, and no loading.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
from collections.abc import Iterable

SHARED = pathlib.Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
"""The style that pages share: colours, fonts, verdicts, rules and entries."""


def web_page(title: str, style: str, body: Iterable[str], script: str = "") -> str:
    """Return a page with a title and the lines of its body, all HTML.

    The script runs after the body; the policy keeps it from turning text into markup.
    """
    policy = ["default-src 'none'"]
    if script:
        policy.append(f"script-src '{_digest(script)}'")
    policy += [f"style-src '{_digest(style)}'", "base-uri 'none'", "form-action 'none'"]
    if script:
        policy += ["require-trusted-types-for 'script'", "trusted-types 'none'"]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *body,
            *([f"<script>{script}</script>"] if script else []),
            "</body>",
            "</html>",
            "",
        ]
    )


def _digest(text: str) -> str:
    """Return the source expression by which a policy allows a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
