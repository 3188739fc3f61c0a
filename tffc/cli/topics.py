"""The pages of the documentation, by the names that `tffc help` takes."""

from __future__ import annotations

import pathlib

PACKAGE = pathlib.Path(__file__).parents[1]

PLACES = (PACKAGE / "docs", PACKAGE.parent / "docs")
"""The folders of the pages, in an installed package and in a checkout."""

GROUPS = {"": "Topics", "tutorials": "Tutorials", "examples": "Examples"}
"""The title for the pages in each folder."""


def topics() -> dict[str, pathlib.Path]:
    """Return the pages of the documentation by name, in the order of `GROUPS`; none if they are not
    installed."""
    folder = next((place for place in PLACES if place.is_dir()), None)
    if folder is None:
        return {}
    pages = (path for group in GROUPS for path in _pages(folder / group))
    return {path.stem: path for path in pages}


def _pages(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("*.md"), key=lambda path: path.stem)


def title(page: pathlib.Path) -> str:
    """Return the heading of a page."""
    with page.open(encoding="utf-8") as lines:
        return next(lines, "").removeprefix("# ").strip()


def group(page: pathlib.Path) -> str:
    """Return the title of the group that a page belongs to."""
    return GROUPS.get(page.parent.name, GROUPS[""])
