"""`tffc opt`: passes over a program, text in and text out."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import instrumentation_options, path_option, pipeline_options, size_option


@click.command("opt")
@click.argument("source", metavar="FILE.sexpr|FILE.pb|MODULE[:NAME]", required=False)
@pipeline_options(instead="")
@path_option(
    "--sections",
    metavar="DIR",
    help="The folder of the compiled sections of a typed text; new ones are written there.  "
    "[default: sections next to the text]",
)
@path_option("-o", "--out", metavar="FILE", help="Write here; a message if it ends in .pb.")
@path_option("--reproduce", metavar="FILE", help="Replay a failed pass from this file.")
@instrumentation_options(verify_each=True)
@size_option
def opt_command(**options: Any) -> None:
    """Run passes over a program and print the result in the typed notation.

    Reads text from FILE.sexpr, FILE.txt or, with -, from stdin; traces other sources or reads them
    as messages. Invariants that the program already satisfies, such as call-dominant form, count
    for what passes require.

    \b
    Examples:
      tffc opt round.pb --passes 'call-dominant,unique-names{stem=v}'
      tffc opt round.sexpr --sections build/sections \\
          --pipeline mine.yaml --print-after change
      tffc opt examples/slides.py:simple --passes call-dominant --time-passes
      # Replay a failed pass on the program that it failed on.
      tffc opt --reproduce tffc-reproducer-0123abcd.txt
    """
    from tffc.cli import opt

    opt.run_passes(**options)
