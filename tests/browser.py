"""Pages in Chromium without a network: what they show, ask for and complain of.

`TFFC_CHROMIUM` names a Chromium, unless one is on the path or Playwright has its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
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


@functools.cache
def chromium() -> str | None:
    """The path of a Chromium that Playwright can start, if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return None
    named = os.environ.get("TFFC_CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    if named is None:
        api = importlib.import_module("playwright.sync_api")
        with api.sync_playwright() as playwright:
            named = playwright.chromium.executable_path
    return named if os.access(named, os.X_OK) else None


needs_chromium = pytest.mark.skipif(
    "not __import__('tests.browser', fromlist=['']).chromium()",
    reason="needs playwright and Chromium: pip install playwright && playwright install chromium",
)


@dataclasses.dataclass
class Opened:
    """A page of a browser, as Playwright has it, and what happened in it that should not have."""

    page: Any
    asked_for: list[str] = dataclasses.field(default_factory=list)
    """Addresses outside of the file that was opened and its neighbours."""
    complaints: list[str] = dataclasses.field(default_factory=list)
    """Errors and warnings on the console, and exceptions that nobody caught."""


@contextlib.contextmanager
def opened(
    path: pathlib.Path, *, width: int = 1280, scheme: str = "light", **options: Any
) -> Iterator[Opened]:
    """Open a file in Chromium; `options` are those of Playwright's contexts."""
    api = importlib.import_module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(OPTIONS))
        view = {"width": width, "height": 900}
        context = browser.new_context(color_scheme=scheme, viewport=view, offline=True, **options)
        found = Opened(context.new_page())
        found.page.on("request", lambda request: _note_request(found, request.url))
        found.page.on("console", lambda message: _note_message(found, message))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.goto(path.as_uri())
        yield found
        browser.close()


def _note_request(found: Opened, url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        found.asked_for.append(url)


def _note_message(found: Opened, message: Any) -> None:
    if message.type in ("error", "warning"):
        found.complaints.append(message.text)
