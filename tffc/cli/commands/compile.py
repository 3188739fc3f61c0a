"""`tffc compile`: from a program to a bundle."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import (
    consent_option,
    form_option,
    instrumentation_options,
    path_option,
    pipeline_options,
    size_option,
)


@click.command("compile")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr")
@form_option("The form to compile to.", required=True)
@path_option(
    "-o",
    "--out",
    metavar="DIR",
    help="The folder to write the bundle to; required without --stop-after.",
)
@pipeline_options(instead=" instead of the default passes")
@path_option(
    "--initialize",
    metavar="FILE.pb",
    help="The computation of the first state, for a program from a .pb file.",
)
@click.option(
    "--allow-impure-duplicates",
    is_flag=True,
    help="Allow random or effectful work to run in several components where the form requires it.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Before writing, test that the passes and the form keep what the program computes, as "
    "with `tffc verify`.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="Write the bundle only if it is proved to compute what the program does, as with `tffc "
    "prove`, and record the proof in it.",
)
@consent_option("With --verify, as for tffc verify.")
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@instrumentation_options(verify_each=False)
@size_option
def compile_command(**options: Any) -> None:
    """Compile a round, from a module or a serialized computation, and write a bundle.

    With --stop-after, prints the program after that pass to stdout, in the typed notation, instead
    of writing a bundle. Options about bundles are then refused.

    \b
    Examples:
      tffc compile examples/digits/federated_averaging.py:training \\
          --form mapreduce --out build/training
      # The program before it is brought into call-dominant form.
      tffc compile round.pb --form mapreduce --stop-after drop-identity-maps
      # From a message, without TensorFlow; show and check what passes change.
      tffc compile round.pb --form mapreduce --out build/round \\
          --print-after change --verify-each
      # Test on generated data that the bundle computes what the program does.
      tffc compile round.pb --form mapreduce --out build/round --verify --force
    """
    from tffc.cli import compile

    compile.compile_program(**options)
