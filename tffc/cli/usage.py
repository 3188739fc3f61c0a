"""Arguments of the command line: choices, groups of commands, and what errors about them say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from tffc.near import did_you_mean, did_you_mean_by


def as_sentence(question: str | None) -> str:
    """Return a question as a sentence that goes after a message; empty where there is none."""
    return "" if question is None else f" {question[0].upper()}{question[1:]}"


def all_missing(error: click.UsageError) -> str:
    """Return the message of an error, which names every missing argument, not only the first."""
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
        return message + as_sentence(did_you_mean(str(value), self.choices))


class Commands(click.Group):
    """A group of commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_known = name.startswith("-") or self.get_command(ctx, name) is not None
        if not is_known and not ctx.resilient_parsing:
            known = {meant.split()[-1]: meant for meant in reversed([*_names(self, ctx)])}
            question = as_sentence(did_you_mean_by(known, name.lower()))
            ctx.fail(f"No such command {name!r}.{question}")
        return super().resolve_command(ctx, args)


def _names(group: click.Group, ctx: click.Context) -> Iterator[str]:
    """Return the commands of a group, and after them those of the groups in it, as they are
    called."""
    names = group.list_commands(ctx)
    yield from names
    for name in names:
        inner = group.get_command(ctx, name)
        if isinstance(inner, click.Group):
            yield from (f"{name} {each}" for each in inner.list_commands(ctx))
