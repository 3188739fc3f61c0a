"""`tffc trace`: serialize a computation of a module."""

from __future__ import annotations

import sys

import click

from tffc.cli.completion import complete_program
from tffc.cli.options import (
    size_option,
    tff_source_option,
)
from tffc.cli.output import write_computation
from tffc.cli.sources import read_program


@click.command("trace")
@click.argument("target", metavar="MODULE[:NAME]", shell_complete=complete_program)
@click.option(
    "-o", "--out", default="-", metavar="FILE.pb", help="Where to write; - is stdout, the default."
)
@size_option
@tff_source_option
def trace_command(target: str, out: str) -> None:
    """Trace a computation and write it as a Computation message, which TFF can read too.

    For an iterative process, writes the round; the first state is a separate computation.

    \b
    Examples:
      tffc trace examples/slides.py:simple -o simple.pb
      tffc trace examples/slides.py:simple | tffc print - --sexpr
    """
    if out == "-" and sys.stdout.isatty():
        raise click.UsageError("a serialized computation is not text: give -o FILE.pb")
    write_computation(out, read_program(target).computation)
