"""Pages in Chromium without a network: what they show, ask for and say.

`TFFC_CHROMIUM` names a Chromium, unless one is on the path or Playwright has its own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

NAMES = ("chromium", "chromium-browser", "chrome", "google-chrome")


@functools.cache
def executable() -> str | None:
    """The path of a Chromium that Playwright can start, if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return None
    named = os.environ.get("TFFC_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if named is None:
        api = importlib.import_module("playwright.sync_api")
        with api.sync_playwright() as playwright:
            named = playwright.chromium.executable_path
    return named if os.access(named, os.X_OK) else None


needs_chromium = pytest.mark.skipif(
    "not __import__('tests.browser', fromlist=['']).executable()",
    reason="needs playwright and Chromium: pip install playwright && playwright install chromium",
)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser, as Playwright has it; it is closed in the end."""
    api = importlib.import_module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=[*OPTIONS])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page from disk, as Playwright has it, and what happened in it."""

    def __init__(self, browser: Any, path: pathlib.Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.said: list[str] = []
        """Everything on the console, and exceptions that nobody caught."""
        self.complaints: list[str] = []
        """What of that is not mere information."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.goto(path.as_uri())

    @property
    def asked_for(self) -> list[str]:
        """Addresses outside of the file that was opened and its neighbours."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]

    def _note(self, kind: str, text: str) -> None:
        self.said.append(text)
        if kind in ("error", "warning"):
            self.complaints.append(text)


@contextlib.contextmanager
def opened(
    path: pathlib.Path, *, width: int = 1280, scheme: str = "light", **options: Any
) -> Iterator[Opened]:
    """Open a file in a browser of its own; `options` are those of Playwright's contexts."""
    view = {"width": width, "height": 900}
    with chromium() as browser:
        yield Opened(browser, path, color_scheme=scheme, viewport=view, **options)
