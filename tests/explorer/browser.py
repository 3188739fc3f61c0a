"""Pages of rounds in Chromium."""

from __future__ import annotations

import pathlib
from typing import Any

from tests.browser import Opened

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Explored(Opened):
    """The page of a round, once it is drawn."""

    def __init__(self, browser: Any, path: pathlib.Path, **options: Any) -> None:
        super().__init__(browser, path, **{"viewport": DESK, **options})
        self.page.wait_for_selector("[role=tablist]")

    def text(self, selector: str) -> str:
        """Return the visible text of the first element of a selector."""
        return self.page.locator(selector).first.inner_text()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def lines(self) -> list[str]:
        """Return the visible lines of the text, without their numbers."""
        self.page.locator(".text-line").first.wait_for()
        return [line.strip() for line in self.page.locator(".text-line code").all_inner_texts()]

    def click(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
