"""Usage errors: what was probably meant by a command or a choice, and all that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from tffc.errors import near_names


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence to go after a message about `name`; empty if nothing known is like it."""
    near = near_names(name, known)
    return f" Did you mean {near[0]!r}?" if near else ""


def all_missing(error: click.UsageError) -> str:
    """Return what an error says; of missing arguments and options, each and not only the first."""
    context = error.ctx
    if not isinstance(error, click.MissingParameter) or context is None:
        return error.format_message()
    # All that was given has been read before anything is missed.
    missing = [p for p in context.command.params if p.required and p.name not in context.params]
    return "\n".join(
        click.MissingParameter(ctx=context, param=each).format_message() for each in missing
    )


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
            known = {meant.split()[-1]: meant for meant in reversed([*_names(self, ctx)])}
            near = near_names(name.lower(), known)
            question = f" Did you mean {known[near[0]]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{question}")
        return super().resolve_command(ctx, args)


def _names(group: click.Group, ctx: click.Context) -> Iterator[str]:
    """The commands of a group, and after them those of the groups in it, as they are called."""
    names = group.list_commands(ctx)
    yield from names
    for name in names:
        inner = group.get_command(ctx, name)
        if isinstance(inner, click.Group):
            yield from (f"{name} {each}" for each in inner.list_commands(ctx))
