"""Printing Markdown pages, formatted on terminals."""

from __future__ import annotations

import sys

import click


def show_page(text: str) -> None:
    """Print a Markdown page to stdout."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
