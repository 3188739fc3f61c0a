"""The option `--max-size`: how large what a command makes of a program may become."""

from __future__ import annotations

from typing import Any

import click


def size_option(command: Any) -> Any:
    """Add the option to a command; its value holds until the command ends."""
    return click.option(
        "--max-size",
        metavar="N",
        type=click.IntRange(min=1),
        expose_value=False,
        callback=_allow,
        help="Refuse what takes more than N parts when all that is shared in the program is "
        "written out or inlined.  [default: 4194304]",
    )(command)


def _allow(context: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is not None:
        from tffc.ir.size import size_limit

        context.with_resource(size_limit(value))
