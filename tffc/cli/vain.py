"""Options that would have no effect: nothing that is asked for is ignored."""

from __future__ import annotations

import click
from click.core import ParameterSource


def refuse_vain(reason: str, *names: str) -> None:
    """Refuse those of the command's options that were given, for they would have no effect.

    `names` are those of the parameters; what the environment or a default says does not count.

    Raises:
      click.UsageError: one of them was given.
    """
    context = click.get_current_context()
    given = [
        f"'{_longest(each)}'"
        for each in context.command.params
        if each.name in names
        and context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        verb = "has" if len(given) == 1 else "have"
        raise click.UsageError(f"{' and '.join(given)} {verb} no effect: {reason}", context)


def _longest(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len)
