"""Notebooks as pages: their text, the code of cells, and what the cells have shown.

What is HTML in a notebook is put into the page after its Markdown has become HTML, unchanged.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

STYLE = """\
table.dataframe { border-collapse: collapse; font: 13px/1.5 system-ui, sans-serif; }
table.dataframe :is(th, td) { border: 0; padding: 0.2em 0.8em; text-align: right; }
"""
"""The style of tables that are not tffc's own."""

OUTPUT = re.compile(r"<!-- output (?P<number>\d+) -->")


def markdown(path: pathlib.Path) -> str:
    """Return a notebook as Markdown, with marks where outputs are HTML."""
    parts = list(_parts(json.loads(path.read_text(encoding="utf-8"))))
    link = f'<a href="{path.name}" download>This page as a notebook</a>\n'
    return "\n\n".join([*parts[:1], link, *parts[1:]]) + "\n"


def with_outputs(page: str, path: pathlib.Path) -> str:
    """Return the HTML of a page with the outputs of a notebook in place of their marks."""
    outputs = list(_outputs(json.loads(path.read_text(encoding="utf-8"))))
    return OUTPUT.sub(lambda mark: _box(outputs[int(mark["number"])]), page)


def _parts(book: Any) -> Iterator[str]:
    number = 0
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            if _html(output) is not None:
                yield f"<!-- output {number} -->"
                number += 1
            else:
                yield f"```text\n{_text(output).rstrip()}\n```"


def _outputs(book: Any) -> Iterator[str]:
    for cell in book["cells"]:
        for output in cell.get("outputs", ()):
            html = _html(output)
            if html is not None:
                yield html


def _html(output: Any) -> str | None:
    content = output.get("data", {}).get("text/html")
    return None if content is None else "".join(content)


def _text(output: Any) -> str:
    return "".join(output["text"] if "text" in output else output["data"]["text/plain"])


def _box(output: str) -> str:
    """Return an output in a box that the style of the site does not reach, but its colours do."""
    page = f"<style>{STYLE}</style>{output}"
    return f'<div class="output"><template shadowrootmode="open">{page}</template></div>'
