"""What was probably meant where a command or a choice is none, as click asks it for options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from tffc.errors import near_names


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence to go after a message about `name`; empty if nothing known is like it."""
    near = near_names(name, known)
    return f" Did you mean {near[0]!r}?" if near else ""


class Choice(click.Choice[str]):
    """One of some words."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        return message + did_you_mean(str(value), self.choices)


class Commands(click.Group):
    """A group of commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_known = name.startswith("-") or self.get_command(ctx, name) is not None
        if not is_known and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}.{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)
