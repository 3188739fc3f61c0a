"""The help of all commands, which the site shows at the end of `docs/commands.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tffc.cli.application import application

PAGE = "docs/commands.md"
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
