"""Takes screenshots of pages: in light and dark mode, on a phone and in print.

python -m tests.explorer.screenshots FOLDER
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

from tests.browser import chromium
from tests.explorer.browser import PHONE, Explored
from tests.explorer.pages import write_pages

WAYS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": PHONE, "is_mobile": True, "has_touch": True, "device_scale_factor": 2},
    "print": {"viewport": {"width": 1050, "height": 740}},
}


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    write_pages(folder)
    with chromium() as browser:
        for path in sorted(folder.glob("*.html")):
            for way, options in WAYS.items():
                take(Explored(browser, path, **options), folder, f"{path.stem}-{way}")


def take(opened: Explored, folder: pathlib.Path, name: str) -> None:
    """Take screenshots of every view, or of the whole page in print."""
    page = opened.page
    if opened.count("button.box.call"):
        opened.click("button.box.call")
    if name.endswith("print"):
        page.emulate_media(media="print")
        page.screenshot(path=folder / f"{name}.png", full_page=True)
    else:
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{name}-{tab.inner_text().lower()}.png")
    opened.context.close()


if __name__ == "__main__":
    main()
