"""`tffc verify`: test that passes and forms keep what a program computes."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.completion import complete_program
from tffc.cli.options import (
    consent_option,
    form_option,
    json_option,
    path_option,
    pipeline_options,
    size_option,
    tff_source_option,
)


@click.command("verify")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr", shell_complete=complete_program
)
@form_option("The form to compile to and test.")
@pipeline_options(instead=" instead of the default passes")
@path_option(
    "--initialize",
    metavar="FILE.pb",
    help="The computation of the first state, for a program from a .pb file.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    show_default="20, or fewer if they or the program are large",
    help="The number of arguments to try.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed for arguments.")
@click.option("--data", metavar="SOURCE", help="Real clients' data, as for tffc run.")
@click.option("--allow-impure-duplicates", is_flag=True, help="As for tffc compile.")
@consent_option("As for tffc run, for programs that do not come from a module.")
@json_option
@size_option
@tff_source_option
def verify_command(**options: Any) -> None:
    """Run a program, the output of each pass, and the form, and compare the results.

    Arguments are generated from the program's type: no client, one and many, empty sequences, small
    numbers, the limits of each type, infinities and NaN, and plainer ones where the program fails.
    Every other one begins with the program's own first state, or with one that rounds reach from
    it, if it has one. With --data, the clients' data is real. Without --form, only the passes are
    tested.

    Exits with 0 if all results agree, and says how many there were. Exits with 1 if results differ,
    and names the first pass that broke the program, with the smallest failing argument found. Exits
    with 3 if no argument had a result on both sides. Warns if few had one, or if the result of an
    aggregation depends on the order of merging partial results.

    \b
    Examples:
      tffc verify examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc verify round.pb --passes call-dominant,desugar-means \\
          --trials 200 --seed 7
      tffc verify round.pb --form distribute-aggregate \\
          --data examples/temperature/sensors --json
    """
    from tffc.cli import verify

    verify.verify(**options)
