"""`tffc show`: show states, outputs and run folders."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import path_option
from tffc.cli.usage import Choice

FORMATS = ("csv", "json", "npy")


@click.command("show")
@click.argument("source", metavar="FILE.npz|RUNFOLDER[:ROUND]")
@click.option(
    "--part",
    "names",
    metavar="NAME",
    multiple=True,
    help="Show all of this tensor, all tensors below this name, or a slice: 'weights[0:3]'.",
)
@click.option("--all", "is_whole", is_flag=True, help="Show all elements of every tensor.")
@click.option(
    "--to", "format", type=Choice(FORMATS), help="The output format; by default, from -o's suffix."
)
@path_option("-o", "--out", metavar="FILE", help="Write to this file instead of to stdout.")
@path_option(
    "--privacy",
    "bundle",
    metavar="BUNDLE",
    help="Show the ε of all rounds that the run of this bundle has done, or why it is not known; a "
    "run with a budget shows it anyway.",
)
@click.option(
    "--delta",
    metavar="D",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    help="With --privacy: at this δ.",
)
def show_command(**options: Any) -> None:
    """Show the names, types, shapes and values in a file that tffc or NumPy saved.

    For a run folder, shows a round, by default the last: its output and, for the last round, the
    state. Shows the first elements of long tensors, and all elements with --part or --all. Does not
    need the bundle, except for --privacy.

    \b
    Examples:
      tffc run build/training --data examples/digits/train --rounds 2 \\
          --clients-per-round 20 --out build/run
      tffc show build/run
      tffc show build/run:1 --to json
      tffc show build/run --part 'state/model/hidden_weights[0:3]'
      tffc show build/run --part state/model/output_weights -o build/weights.npy
    """
    from tffc.cli import show

    show.show(**options)
