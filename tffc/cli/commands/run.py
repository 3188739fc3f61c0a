"""`tffc run`: rounds of a bundle, or of a program, on clients' data."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import PATH, consent_option, form_option
from tffc.cli.usage import Choice
from tffc.engines.table import ENGINES


@click.command("run")
@click.argument("program", metavar="BUNDLE|MODULE[:NAME]|FILE.pb")
@click.option(
    "--data",
    required=True,
    metavar="SOURCE",
    help="Clients' data: a folder of .npz files, or SCHEME:PATH; see tffc data --help.",
)
@click.option(
    "--pack",
    metavar="DIR",
    type=PATH,
    help="Pack the data into this folder unless it is there, as tffc data pack does, and read it "
    "from there.",
)
@form_option(
    "The form to compile a program to; chosen by where its output is if not given. A bundle has "
    "its form."
)
@click.option("--rounds", required=True, type=click.IntRange(1), help="How many rounds to run.")
@click.option(
    "--clients-per-round",
    metavar="K",
    type=click.IntRange(1),
    help="How many clients to sample for each round; all of them if not given.",
)
@click.option("--seed", type=int, help="Decides which clients are sampled; 0 if not given.")
@click.option(
    "--out",
    metavar="DIR",
    type=PATH,
    help="Keep the run in this folder: state, outputs and metrics after every round.",
)
@click.option(
    "--require-proof",
    is_flag=True,
    help="Run nothing whose bundle was not compiled with --prove; see docs/proof.md.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out, up to --rounds in all.")
@click.option(
    "--state-out", metavar="FILE", type=PATH, help="Save the state here after every round."
)
@click.option(
    "--state-in",
    metavar="FILE|RUNFOLDER",
    type=PATH,
    help="Start from the state saved here, or the last one of that run.",
)
@click.option(
    "--engine",
    type=Choice(tuple(ENGINES)),
    default="local",
    show_default=True,
    help=f"What runs the rounds: {', or '.join(kind.summary for kind in ENGINES.values())}.",
)
@click.option(
    "--engine-options",
    metavar="WORDS",
    multiple=True,
    help=" ".join(kind.options for kind in ENGINES.values() if kind.options),
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1),
    help="How many clients work at once; one for each core if not given.",
)
@click.option(
    "--secure-sums",
    type=Choice(("open", "masked")),
    default="open",
    show_default=True,
    help="Add them as other sums, or as a network would, with masks; see docs/secure-sums.md.",
)
@click.option(
    "--batching",
    metavar="auto|off|N",
    default="off",
    show_default=True,
    help="How many clients are computed in a call: as many as pays, one, or so many.",
)
@click.option(
    "--device",
    metavar="NAME",
    default="",
    help="Where TensorFlow computes batches, such as GPU:0; its choice if not given.",
)
@click.option(
    "--explain-speed",
    is_flag=True,
    help="Say at the end where the time went, which clients were computed together, and why.",
)
@click.option(
    "--skip-bad-clients",
    is_flag=True,
    help="Leave out clients whose data cannot be read, instead of failing.",
)
@click.option(
    "--evaluate",
    metavar="PROGRAM",
    help="Measure the state with a round of this bundle or program, after every N rounds and the "
    "last.",
)
@click.option("--evaluate-data", metavar="SOURCE", help="The clients' data for --evaluate.")
@click.option(
    "--every", metavar="N", type=click.IntRange(1), help="How often to evaluate; 1 if not given."
)
@consent_option(
    "What the bundle may do besides computing: files, network, python, unknown, with commas "
    "between them; see docs/security.md."
)
@click.option(
    "--log",
    type=Choice(("table", "jsonl", "csv", "tensorboard")),
    default="table",
    show_default=True,
    help="How to tell what the rounds give; tensorboard needs --out.",
)
@click.option("--plot", metavar="FILE.svg", type=PATH, help="Draw the metrics of the rounds.")
@click.option(
    "--report",
    metavar="FILE.html",
    type=PATH,
    help="Write a page about the run: metrics, times, clients left out; see tffc report.",
)
def run_command(**options: Any) -> None:
    """Run rounds and print the server output of each, as a line of a table.

    A program in a module or a message is compiled first, into a cache, so that it need not be
    compiled again while it stays as it is.

    Rounds that start from a saved state go on where those before it ended: they have the numbers,
    and with the same seed the clients, that the next rounds of that run would have had.

    \b
    Examples:
      tffc run examples/temperature/temperature.py:mean_temperature \\
          --data examples/temperature/sensors --rounds 1
      tffc run build/mean --data examples/temperature/sensors --rounds 1
      tffc run build/training --data examples/digits/train --rounds 3 \\
          --clients-per-round 20 --out build/run
      # Seven more, from the third round's state.
      tffc run build/training --data examples/digits/train --rounds 10 \\
          --clients-per-round 20 --out build/run --resume
      # Measured after every fifth round on images that no client has trained on.
      tffc run examples/digits/federated_averaging.py:training \\
          --data examples/digits/train --rounds 10 --clients-per-round 20 \\
          --evaluate examples/digits/federated_averaging.py:evaluation \\
          --evaluate-data examples/digits/test --every 5
    """
    from tffc.cli import run

    run.run(**options)
