"""`tffc print`: show a program as text."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    path_option,
    show_repeatedly,
    size_option,
    tff_source_option,
    watch_option,
)
from tffc.cli.output import show_program
from tffc.cli.usage import Choice

if TYPE_CHECKING:
    from tffc.api.texts import Style

STYLES = ("compact", "formatted", "structural", "typed")


@click.command("print")
@click.argument("source", metavar="FILE.pb|BUNDLE|MODULE[:NAME]", shell_complete=complete_program)
@click.option(
    "--sexpr", is_flag=True, help="Accepted for clarity: S-expressions are the only notation."
)
@click.option(
    "--style",
    type=Choice(STYLES),
    default="formatted",
    show_default=True,
    help="One line; several lines; a drawing of the tree; or text with types, for tffc parse.",
)
@path_option(
    "--sections",
    metavar="DIR",
    help="Also write every compiled section to this folder, for tffc parse.",
)
@watch_option
@size_option
@tff_source_option
def print_command(
    source: str, sexpr: bool, style: Style, sections: pathlib.Path | None, watch: bool
) -> None:
    """Print a program. If it has several parts, print each below a line with its name and type.

    A compiled section is printed as comp# and a fingerprint of what it computes.

    \b
    Examples:
      tffc print examples/slides.py:simple --sexpr
      tffc print build/training --sexpr --style compact
      tffc print round.pb --style typed --sections build/sections > round.txt
    """
    show_repeatedly(source, watch, lambda: _print(source, style, sections))


@collector_paused()
def _print(source: str, style: Style, sections: pathlib.Path | None) -> None:
    from tffc.api.texts import text_of
    from tffc.cli.consent import tell_effects
    from tffc.cli.sources import read_parts

    parts = read_parts(source)
    tell_effects(parts)
    if sections is not None:
        from tffc.cli.output import write_section_folder

        write_section_folder(parts.values(), sections)
    show_program(text_of(parts, style))
