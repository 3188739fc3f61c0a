"""What commands list, which the site shows at the end of pages about it.

The help of all commands stands in `docs/commands.md`, and all error codes in `docs/errors.md`.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from tffc.cli.application import application
from tffc.support.explanations import SUBJECTS, codes, read_page

WIDTH = 100


def command_reference() -> str:
    """Return the help of tffc and of every command, in Markdown."""
    root = click.Context(
        application,
        info_name="tffc",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **application.context_settings,
    )
    return "\n".join(_sections(root, "##"))


def _sections(context: click.Context, heading: str) -> Iterator[str]:
    command = context.command
    yield f"{heading} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            deeper = "##" if context.parent is None else "###"
            yield from _sections(click.Context(part, info_name=name, parent=context), deeper)


def error_reference() -> str:
    """Return links to the pages of all error codes by subject, in Markdown."""
    parts: list[str] = []
    for prefix, subject in SUBJECTS.items():
        pages = [read_page(code) for code in codes() if code.startswith(prefix)]
        lines = [
            f"- [{page.code}](../tffc/support/explanations/{page.code}.md): {page.title}"
            for page in pages
        ]
        parts.append("\n".join([f"## {subject}", "", *lines]))
    return "\n\n".join(parts) + "\n"


REFERENCES = {"docs/commands.md": command_reference, "docs/errors.md": error_reference}
"""What the site adds to pages, by their paths."""
