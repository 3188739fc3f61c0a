"""What every error code means, at length: one page a code, shown by `tffc explain`.

A page is Markdown, and its first line `# CODE: title`.
"""

from __future__ import annotations

import dataclasses
import importlib.resources

ROOMS = {
    "E1": "Types and nodes",
    "E2": "Files and notation",
    "E3": "Graphs and passes",
    "E4": "Loading and tracing",
    "E5": "Forms",
    "E6": "Bundles and data",
    "E7": "Running",
    "E8": "Goldens and the command line",
}
"""What the errors are about whose codes begin like this."""


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """The explanation of one error; `text` is the whole page, title included."""

    code: str
    title: str
    text: str


def codes() -> list[str]:
    """The codes that have a page, in order."""
    files = importlib.resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".md") for file in files if file.name.endswith(".md"))


def read_page(code: str) -> Page:
    """The page of a code that is among `codes()`."""
    file = importlib.resources.files(__name__) / f"{code}.md"
    text = file.read_text(encoding="utf-8")
    return Page(code, text.partition("\n")[0].removeprefix(f"# {code}: "), text)
