"""HTML of objects in the cells of notebooks.

Colours are readable on white and on black, and everything else takes the colour of the notebook's
text, so that no cell needs to know its theme.  Nothing loads anything, and there are no scripts
outside of `framed` pages.
"""

from __future__ import annotations

import functools
import html
import pathlib
from typing import TYPE_CHECKING, Any, cast

from tffc.support.printable import printable, printable_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

STYLE = pathlib.Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
"""The style of cells, below the class `tffc`."""

HEIGHT = 640
"""The height of a framed page, in pixels."""


def cell(template: pathlib.Path, **values: Any) -> str:
    """Return the HTML of a template, in which every value is escaped that is not `Markup`."""
    body = _environment().from_string(template.read_text(encoding="utf-8")).render(values)
    return f'<div class="tffc"><style>{STYLE}</style>{body}</div>'


def verdict_cell(title: str, verdict: str, kind: str, text: str) -> str:
    """Return a verdict as HTML, with a text of several lines; its kind is `good`, `doubtful`, `bad`
    or `none`."""
    template = pathlib.Path(__file__).with_name("verdict.html")
    return cell(template, title=title, verdict=verdict, kind=kind, text=text)


def framed(page: str, height: int = HEIGHT) -> str:
    """Return a whole HTML page as a frame in a cell, which cannot reach the notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" loading="lazy" '
        f'style="width:100%;height:{height}px;border:1px solid #76767680;border-radius:6px">'
        "</iframe>"
    )


@functools.cache
def _environment() -> Environment:
    # Imported late: only notebooks show cells.
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast(Any, environment).filters["lines"] = _lines
    return environment


def _lines(text: str) -> Markup:
    """Return a text whose line breaks stay."""
    import markupsafe

    return markupsafe.Markup(markupsafe.escape(printable_lines(text)))


def _visible(value: object) -> object:
    """Return a value with its invisible characters escaped, if it is a plain text."""
    return printable(value) if type(value) is str else value
