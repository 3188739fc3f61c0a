"""`tffc verify`: whether what is made of a program computes what the program computes."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import (
    consent_option,
    form_option,
    json_option,
    pipeline_options,
    size_option,
)


@click.command("verify")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr")
@form_option("The form to compile to and to try.")
@pipeline_options(instead=" in place of the default")
@click.option(
    "--trials",
    type=click.IntRange(1),
    show_default="20, or fewer where they or the program are large",
    help="How many arguments to try.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides which arguments.")
@click.option("--data", metavar="SOURCE", help="Real clients' data, as for tffc run.")
@click.option("--allow-impure-duplicates", is_flag=True, help="As for tffc compile.")
@consent_option("As for tffc run, for a program that is not from a module.")
@json_option
@size_option
def verify_command(**options: Any) -> None:
    """Run a program, what each pass makes of it, and its form, and compare the results.

    The arguments are made from the program's type: no client, one and many, empty sequences, small
    numbers, the ends of each range, infinities and what is not a number.  With --data, the clients'
    data is real.  Without --form, only the passes are tried.

    Exits with 0 if all agree, and with 1 otherwise; then it names the first pass that broke the
    program, with the smallest argument found.  A warning tells of an aggregation whose result
    depends on the order in which partial results are merged.

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
