"""The command line of the running command, as the user would type it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import click

KEY = "tffc.command_line"
"""The key of the command line in the context of a command."""


def remember_command_line(context: click.Context, words: Iterable[str]) -> None:
    """Keep the words after `tffc` in the context of the command and of those in it."""
    context.meta[KEY] = shlex.join(["tffc", *words])


def command_line() -> str:
    """Return the line of the running command, quoted as for a shell."""
    return click.get_current_context().meta[KEY]
