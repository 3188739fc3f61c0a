"""The anchors of headings as GitHub makes them, so that links work there and on the site."""

from __future__ import annotations

import re

FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
LINK = re.compile(r"!?\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]\(([^()\s]+)\)")
INLINE_CODE = re.compile(r"(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)


def slug(text: str, separator: str = "-") -> str:
    """Return the anchor of a heading whose text is `text`."""
    kept = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return kept.replace(" ", separator)


def anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a page in Markdown."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(FENCED.sub("", page)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found[slug(shown)] = found.get(slug(shown), -1) + 1
    return {f"{name}-{n}" if n else name for name, last in found.items() for n in range(last + 1)}


def links(page: str) -> list[str]:
    """Return where the links and the pictures of a page in Markdown lead, code left out."""
    return LINK.findall(INLINE_CODE.sub("", FENCED.sub("", page)))
