"""Printing Markdown pages: formatted and through a pager on terminals, plain elsewhere."""

from __future__ import annotations

import re
import shutil
import sys

import click

from tffc.cli.screen import width_of

COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)

FENCED = re.compile(r"(^ *(?P<fence>```+).*?^ *(?P=fence) *$)", re.DOTALL | re.MULTILINE)
"""Matches a block of code, where a comment is part of the code."""


def show_page(text: str) -> None:
    """Print a Markdown page to stdout, without its comments."""
    text = without_comments(text)
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=width_of(sys.stdout))
    with console.capture() as formatted:
        console.print(Markdown(text, hyperlinks=False))
    lines = formatted.get()
    if lines.count("\n") < shutil.get_terminal_size().lines:
        click.echo(lines, nl=False)
    else:
        click.echo_via_pager(lines)


def without_comments(text: str) -> str:
    """Return a Markdown text without its comments, which are for tools."""
    parts: list[str] = []
    end = 0
    for block in FENCED.finditer(text):
        parts += [COMMENT.sub("", text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, COMMENT.sub("", text[end:])])
