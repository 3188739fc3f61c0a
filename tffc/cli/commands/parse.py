"""`tffc parse`: serialize a program from its typed text."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.options import path_option, size_option
from tffc.cli.output import write_computation
from tffc.cli.sources import read_typed


@click.command("parse")
@click.argument("source", metavar="FILE.txt")
@path_option(
    "--sections",
    metavar="DIR",
    help="The folder of the program's compiled sections.  [default: sections next to FILE.txt]",
)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="FILE.pb",
    help="Where to write the computation; - is stdout.",
)
@size_option
def parse_command(source: str, sections: pathlib.Path | None, out: str) -> None:
    """Read the output of `tffc print --style typed` and write it as a Computation message.

    Reads FILE.txt or, with -, stdin.

    \b
    Examples:
      tffc print round.pb --style typed --sections build/sections > round.txt
      tffc parse round.txt --sections build/sections -o again.pb
      echo '(x: int32 -> x)' | tffc parse - -o identity.pb
    """
    write_computation(out, read_typed(source, sections))
