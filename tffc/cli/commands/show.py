"""`tffc show`: what states, outputs and the folders of runs hold."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import PATH
from tffc.cli.usage import Choice

FORMATS = ("csv", "json", "npy")


@click.command("show")
@click.argument("source", metavar="FILE.npz|RUNFOLDER[:ROUND]")
@click.option(
    "--part",
    "names",
    metavar="NAME",
    multiple=True,
    help="Show this tensor whole, or all below the name, or a slice: 'weights[0:3]'.",
)
@click.option("--all", "is_whole", is_flag=True, help="Show every tensor whole.")
@click.option(
    "--to", "format", type=Choice(FORMATS), help="Write the parts so; by -o's suffix if not given."
)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=PATH,
    help="Write to this file instead of to stdout.",
)
def show_command(**options: Any) -> None:
    """Show the names, types, shapes and values in a file that tffc or NumPy has saved.

    Of a run's folder it shows a round, the last one unless told: the output, and the state if the
    round is the last. Of long tensors it shows the first elements, and with --part or --all the
    whole. The bundle is not needed.

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
