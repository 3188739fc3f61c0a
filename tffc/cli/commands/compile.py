"""`tffc compile`: from a program to a bundle."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import (
    PATH,
    consent_option,
    form_option,
    instrumentation_options,
    pipeline_options,
    size_option,
)


@click.command("compile")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr")
@form_option("The form to compile to.", required=True)
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=PATH,
    help="The folder to write the bundle to; required unless --stop-after is given.",
)
@pipeline_options(instead=" in place of the default")
@click.option(
    "--initialize",
    metavar="FILE.pb",
    type=PATH,
    help="The computation of the first state, for a program from a .pb file.",
)
@click.option(
    "--allow-impure-duplicates",
    is_flag=True,
    help="Run what is random or has effects in several parts where the form has no other way.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Before anything is written, try whether passes and form keep what the program computes, "
    "as `tffc verify` does.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="Write a bundle only if it is proved to compute what the program does, as by `tffc "
    "prove`, and record that in it.",
)
@consent_option("With --verify, as for tffc verify.")
@click.option("--force", is_flag=True, help="Replace a bundle that is there already.")
@instrumentation_options(verify_each=False)
@size_option
def compile_command(**options: Any) -> None:
    """Compile one round, from a module or from a serialized computation, and write a bundle.

    With --stop-after, writes no bundle, but prints the program after that pass to stdout, in the
    typed notation; options about a bundle are refused with it.

    \b
    Examples:
      tffc compile examples/digits/federated_averaging.py:training \\
          --form mapreduce --out build/training
      # What the program is before it is brought to call-dominant form.
      tffc compile round.pb --form mapreduce --stop-after drop-identity-maps
      # From a message, without TensorFlow; see what passes change, and check it.
      tffc compile round.pb --form mapreduce --out build/round \\
          --print-after change --verify-each
      # Try on made-up data that the bundle computes what the program does.
      tffc compile round.pb --form mapreduce --out build/round --verify --force
    """
    from tffc.cli import compile

    compile.compile_program(**options)
