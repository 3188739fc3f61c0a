"""`tffc check`: whether a program can be compiled to a form."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import form_option, json_option, size_option, watch_option


@click.command("check")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr")
@form_option("The form to compile to.", required=True)
@click.option("--allow-impure-duplicates", is_flag=True, help="As for tffc compile.")
@json_option
@watch_option
@size_option
def check_command(**options: Any) -> None:
    """Compile a program without writing anything.

    Exits with 0 if the form can express it; otherwise says why it cannot, and exits with 1.

    \b
    Examples:
      tffc check examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc check round.pb --form distribute-aggregate --json
    """
    from tffc.cli import check

    check.check_program(**options)
