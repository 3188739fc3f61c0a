"""Pages for a browser: one file each, which needs nothing else.

The policy of a page lets nothing be loaded, and no style or script apply but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable


def web_page(title: str, style: str, body: Iterable[str], script: str = "") -> str:
    """Return a page with this title and these lines of its body, which are HTML.

    The script runs after the body; its policy lets it make no markup out of text.
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
    """Return what a policy says of a script or a style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
