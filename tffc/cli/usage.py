"""Arguments of the command line: choices, command groups, and messages about wrong usage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from tffc.support.errors import TffcError
from tffc.support.near import did_you_mean, did_you_mean_by
from tffc.support.plugins import PluginTable


def as_sentence(question: str | None) -> str:
    """Return a question as a sentence to append to a message; empty for None."""
    return "" if question is None else f" {question[0].upper()}{question[1:]}"


def all_missing(error: click.UsageError) -> str:
    """Return the message of an error, naming every missing argument instead of only the first."""
    context = error.ctx
    if not isinstance(error, click.MissingParameter) or context is None:
        return error.format_message()
    # All given arguments have been parsed before click notices a missing one.
    missing = [p for p in context.command.params if p.required and p.name not in context.params]
    return "\n".join(
        click.MissingParameter(ctx=context, param=each).format_message() for each in missing
    )


class Choice(click.Choice[str]):
    """A choice of words whose errors suggest near ones."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        return message + as_sentence(did_you_mean(str(value), self.choices))


class Member(Choice):
    """A choice among the names of a table.  Installed packages are looked for only if the name is
    not one of tffc's own, and for help."""

    def __init__(self, table: PluginTable[Any]) -> None:
        super().__init__(tuple(table.own))
        self._table = table

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            self._look_for_packages()
        return super().convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        with contextlib.suppress(TffcError):
            self._look_for_packages()
        return super().shell_complete(ctx, param, incomplete)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        with contextlib.suppress(TffcError):  # help is help, whatever a package offers
            self._look_for_packages()
        return super().get_metavar(param, ctx)

    def _look_for_packages(self) -> None:
        self.choices = tuple(self._table)


class Commands(click.Group):
    """A command group whose errors suggest near commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_known = name.startswith("-") or self.get_command(ctx, name) is not None
        if not is_known and not ctx.resilient_parsing:
            known = {meant.split()[-1]: meant for meant in reversed([*_names(self, ctx)])}
            question = as_sentence(did_you_mean_by(known, name.lower()))
            if name.endswith(".py"):
                question = f" To run a script, write `tffc python {name}`."
            ctx.fail(f"No such command {name!r}.{question}")
        return super().resolve_command(ctx, args)


def _names(group: click.Group, ctx: click.Context) -> Iterator[str]:
    """Yield the commands of a group, then those of groups in it with the group's name."""
    names = group.list_commands(ctx)
    yield from names
    for name in names:
        inner = group.get_command(ctx, name)
        if isinstance(inner, click.Group):
            yield from (f"{name} {each}" for each in inner.list_commands(ctx))
