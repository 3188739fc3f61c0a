"""`tffc prove`: whether a bundle computes what a program does, for all arguments."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import json_option, size_option


@click.command("prove")
@click.argument("sources", metavar="[PROGRAM] BUNDLE", nargs=-1, required=True)
@json_option
@size_option
def prove_command(**options: Any) -> None:
    """Prove that a bundle computes what a program does, for all arguments.

    PROGRAM is a module, a .pb file or a typed text; by default, it is the program in the bundle.
    Runs nothing, and does not load TensorFlow.

    Exits with 0 if it is proved, with 1 if the two differ, and with 3 if it is undecided, because
    no rule of the prover covers something in the program.

    \b
    Examples:
      tffc prove build/mean
      tffc prove examples/temperature/temperature.py:mean_temperature build/mean
      tffc prove round.pb build/mean --json
    """
    from tffc.cli import prove

    prove.prove_bundle(**options)
