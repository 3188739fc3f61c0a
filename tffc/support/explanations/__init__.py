"""The pages about error codes, one for each, which `tffc explain` shows.

A page is Markdown, and its first line `# CODE: title`.
"""

from __future__ import annotations

import dataclasses
import pathlib

PAGES = pathlib.Path(__file__).parent
"""Where the pages are."""

SUBJECTS = {
    "E1": "Types and nodes",
    "E2": "Files and notation",
    "E3": "Graphs and passes",
    "E4": "Loading and tracing",
    "E5": "Forms",
    "E6": "Bundles and data",
    "E7": "Running",
    "E8": "Goldens, trust and the command line",
    "E9": "Validation, audits, engines and export",
}
"""The subjects of errors, by the beginnings of their codes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """The explanation of one error; `text` is the whole page, title included."""

    code: str
    title: str
    text: str


def codes() -> list[str]:
    """Return the codes that have a page, in order."""
    return sorted(file.stem for file in PAGES.glob("*.md"))


def has_page(code: str) -> bool:
    """Return whether a code is among `codes()`."""
    return (PAGES / f"{code}.md").is_file()


def read_page(code: str) -> Page:
    """Return the page of a code that is among `codes()`."""
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    return Page(code, text.partition("\n")[0].removeprefix(f"# {code}: "), text)
