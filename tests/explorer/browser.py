"""Pages in a real browser: Chromium without a window, by playwright."""

from __future__ import annotations

import contextlib
import importlib.util
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MISSING = (
    "playwright is not installed: pip install 'tffc[test]'"
    if importlib.util.find_spec("playwright") is None
    else "there is no Chromium: apt install chromium"
    if CHROMIUM is None
    else None
)
"""Why no page can be tried here; None where one can."""

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser; it is closed in the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page from disk, and what its console said."""

    def __init__(self, browser: Any, path: pathlib.Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": DESK, **options})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("[role=tablist]")

    def text(self, selector: str) -> str:
        """What can be read in the first element of a selector."""
        return self.page.locator(selector).first.inner_text()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def lines(self) -> list[str]:
        """The lines of the text that are shown, without their numbers."""
        self.page.locator(".text-line").first.wait_for()
        return [line.strip() for line in self.page.locator(".text-line code").all_inner_texts()]

    def click(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
