"""Times of `tffc explore` pages in a browser: until the first paint, and of each step.

python -m benchmarks.explorer [PAGE.html ...]

Without pages, those of five rounds that the tests try are made and measured.  A step is timed in
the browser from the click to the frame after it, the median of five runs; needs Chromium and
playwright.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile
from typing import Any

from tests.browser import chromium, executable
from tests.explorer.browser import Explored
from tests.explorer.pages import write_pages

RUNS = 5

STEPS: tuple[tuple[str, str, str], ...] = (
    ("hover a box", "button.box", "hover"),
    ("choose a call", "button.box.call", "click"),
    ("open a fold", "button.box.fold", "click"),
    ("click a line", ".line.linked", "click"),
    ("open Passes", "#tab-passes", "click"),
    ("show a pass", ".stepper li:nth-child(2) button", "click"),
    ("open Graphs", "#tab-graphs", "click"),
    ("open what is next to a node", ".graph .more", "click"),
    ("choose a node", ".graph button.box", "click"),
    ("find a node", ".panel.graphs input[type=search]", "a"),
    ("go to a found node", ".hits .link", "click"),
    ("show a component", ".graph-list li:nth-child(2) button", "click"),
    ("open Text", "#tab-text", "click"),
    ("search the text", ".panel.text input[type=search]", "federated"),
    ("show types", ".panel.text input[type=checkbox]", "click"),
    ("open Audit", "#tab-audit", "click"),
    ("open Round", "#tab-round", "click"),
)
"""What is measured: its name, the element, and what is done to it: else than `click` and `hover`
it is typed."""

TIMED = """async ([selector, act]) => {
  const element = [...document.querySelectorAll(selector)].find((each) => each.offsetParent);
  if (!element) return null;
  const start = performance.now();
  if (act === "click") element.click();
  else if (act === "hover") element.dispatchEvent(new MouseEvent("mouseenter"));
  else {
    element.value = act;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - start;
}"""

PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    if executable() is None:
        sys.exit("needs playwright and Chromium")
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        pages = [pathlib.Path(path).absolute() for path in sys.argv[1:]]
        if not pages:
            write_pages(pathlib.Path(scratch))
            pages = sorted(pathlib.Path(scratch).glob("*.html"))
        columns = [measured(browser, path) for path in pages]
    names = [path.stem for path in pages]
    rows = [f"| step, in ms | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for name in ("page, in kB", "first paint", *(name for name, _, _ in STEPS)):
        rows.append(f"| {name} | {' | '.join(column.get(name, '') for column in columns)} |")
    sys.stdout.write("\n".join(rows) + "\n")


def measured(browser: Any, path: pathlib.Path) -> dict[str, str]:
    """Return the medians of a page's times, by step."""
    times: dict[str, list[float]] = {}
    for _ in range(RUNS):
        opened = Explored(browser, path)
        opened.page.wait_for_timeout(500)
        times.setdefault("first paint", []).append(opened.page.evaluate(PAINT))
        for name, selector, act in STEPS:
            taken = opened.page.evaluate(TIMED, [selector, act])
            if taken is not None:
                times.setdefault(name, []).append(taken)
        opened.context.close()
    found = {name: f"{statistics.median(taken):.0f}" for name, taken in times.items()}
    return {"page, in kB": f"{path.stat().st_size / 1000:.0f}", **found}


if __name__ == "__main__":
    main()
