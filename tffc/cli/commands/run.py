"""`tffc run`: run rounds of a bundle or a program on clients' data."""

from __future__ import annotations

from typing import Any

import click

from tffc.assurance.privacy.question import NEIGHBOURS
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    consent_option,
    form_option,
    path_option,
    tff_source_option,
)
from tffc.cli.usage import Choice, Member
from tffc.deploy.engines import ENGINES
from tffc.runtime.batching.choices import COMPILERS, PRECISIONS
from tffc.runtime.tracking.table import TRACKERS


@click.command("run")
@click.argument("program", metavar="BUNDLE|MODULE[:NAME]|FILE.pb", shell_complete=complete_program)
@click.option(
    "--data",
    required=True,
    metavar="SOURCE",
    help="The clients' data: a folder of .npz files, or SCHEME:PATH; see tffc data --help.",
)
@path_option(
    "--pack",
    metavar="DIR",
    help="Pack the data into this folder, as with tffc data pack, unless it is already there, and "
    "read it from there.",
)
@form_option(
    "The form to compile a program to; by default, chosen by the placement of its output. A "
    "bundle has its own form."
)
@click.option("--rounds", required=True, type=click.IntRange(1), help="The number of rounds.")
@click.option(
    "--clients-per-round",
    metavar="K",
    type=click.IntRange(1),
    help="The number of clients to sample for each round; all by default.",
)
@click.option(
    "--sampling-rate",
    metavar="Q",
    type=click.FloatRange(0, 1, min_open=True),
    help="The probability with which each client takes part in a round, independently of the "
    "others.",
)
@click.option(
    "--seed",
    type=int,
    help="The seed for sampling clients; by default 0, and with --sampling-rate a secret one.",
)
@path_option(
    "--out",
    metavar="DIR",
    help="Keep the run in this folder: state, outputs and metrics after every round.",
)
@click.option(
    "--require-proof",
    is_flag=True,
    help="Refuse bundles that were not compiled with --prove; see docs/proof.md.",
)
@path_option(
    "--demands",
    metavar="FILE.yaml",
    help="Run only bundles that `tffc admit` admits by these demands.",
)
@click.option("--resume", is_flag=True, help="Resume the run in --out, up to --rounds in total.")
@path_option("--state-out", metavar="FILE", help="Save the state to this file after every round.")
@path_option(
    "--state-in",
    metavar="FILE|RUNFOLDER",
    help="Start from the state in this file, or from the last state of that run. Of another "
    "program, rounds count from 1.",
)
@path_option(
    "--continue-from",
    metavar="RUNFOLDER|FILE",
    help="As --state-in, but count on from the rounds of that run, whose program, data or options "
    "may have been others.",
)
@click.option(
    "--engine",
    type=Member(ENGINES),
    default="local",
    show_default=True,
    help=f"What runs the rounds: {', '.join(kind.summary for kind in ENGINES.own.values())}.",
)
@click.option(
    "--engine-options",
    metavar="WORDS",
    multiple=True,
    help=" ".join(kind.options for kind in ENGINES.own.values() if kind.options),
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1),
    help="The number of clients that work at the same time; one per core by default.",
)
@click.option(
    "--secure-sums",
    type=Choice(("open", "masked")),
    default="open",
    show_default=True,
    help="Add secure sums openly, or with masks as on a network; see docs/secure-sums.md.",
)
@click.option(
    "--batching",
    metavar="auto|off|N",
    default="off",
    show_default=True,
    help="How many clients to compute in one call: the fastest number as measured, one, or N.",
)
@click.option(
    "--device",
    metavar="NAME",
    default="",
    help="The device that computes batches, such as gpu or GPU:1; by default, the fastest.",
)
@click.option(
    "--compiler",
    type=Choice(COMPILERS),
    default="auto",
    show_default=True,
    help="What compiles batches: PJRT, which needs tffc[xla], or TensorFlow's XLA.",
)
@click.option(
    "--precision",
    type=Choice(PRECISIONS),
    default="full",
    show_default=True,
    help="The precision of products in batches: full, or as a device is fastest, such as TF32.",
)
@click.option(
    "--explain-speed",
    is_flag=True,
    help="Report at the end where the time went, which clients were computed together, and why.",
)
@click.option(
    "--skip-bad-clients",
    is_flag=True,
    help="Leave out clients whose data cannot be read, instead of failing.",
)
@click.option(
    "--groups",
    metavar="N",
    type=click.IntRange(1),
    help="Run each round in so many groups of clients, and merge their results; for the form "
    "mergeable.",
)
@click.option(
    "--skip-bad-groups",
    is_flag=True,
    help="Leave out groups that fail, instead of failing their round.",
)
@click.option(
    "--buffer",
    metavar="K",
    type=click.IntRange(1),
    help="Run buffered rounds, each of the K contributions that arrive next; see docs/buffered.md.",
)
@click.option(
    "--in-flight",
    metavar="M",
    type=click.IntRange(1),
    help="The number of clients that work at the same time in buffered rounds.",
)
@click.option(
    "--max-age",
    metavar="A",
    type=click.IntRange(0),
    help="Drop contributions to buffered rounds on states that are older by more than A steps.",
)
@click.option(
    "--delays",
    metavar="MODEL",
    help="How long clients take in the simulated time of the local engine: constant:SECONDS or "
    "lognormal:MEDIAN,SIGMA, with +stragglers:SHARE,FACTOR.",
)
@click.option(
    "--least-clients",
    metavar="N",
    default=0,
    type=click.IntRange(0),
    help="Refuse rounds, groups and evaluations that would aggregate fewer clients.",
)
@click.option(
    "--privacy-budget",
    metavar="EPSILON",
    type=click.FloatRange(0, min_open=True),
    help="Show the differential privacy of a round first, and end before the round after which all "
    "rounds together would have a larger ε; see docs/running.md.",
)
@click.option(
    "--privacy-delta",
    metavar="D",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    help="With --privacy-budget: the δ of the budget.",
)
@click.option(
    "--neighbours",
    type=Choice(tuple(NEIGHBOURS)),
    default="add-or-remove",
    show_default=True,
    help="With --privacy-budget: what is hidden of one client.",
)
@click.option(
    "--not-released",
    metavar="PATH",
    multiple=True,
    help="With --privacy-budget: this output is seen by nobody but who runs the rounds.",
)
@click.option(
    "--show-clients",
    is_flag=True,
    help="Show what clients' code prints and the whole texts of its errors, which may hold "
    "clients' values; for debugging on your own machine.",
)
@click.option(
    "--evaluate",
    metavar="PROGRAM",
    shell_complete=complete_program,
    help="Evaluate the state with a round of this bundle or program, after every N rounds and "
    "after the last one.",
)
@click.option("--evaluate-data", metavar="SOURCE", help="The clients' data for --evaluate.")
@click.option(
    "--every", metavar="N", type=click.IntRange(1), help="Evaluate every N rounds; 1 by default."
)
@consent_option(
    "Allow these effects, separated by commas: files, network, python, unknown; see "
    "docs/security.md."
)
@click.option(
    "--log",
    type=Choice(("table", "jsonl", "csv", "tensorboard")),
    default="table",
    show_default=True,
    help="The format of the output of rounds; tensorboard needs --out.",
)
@click.option(
    "--track",
    type=Member(TRACKERS),
    multiple=True,
    help="Send metrics, parameters and the report of the run there too; tensorboard needs --out.",
)
@path_option("--plot", metavar="FILE.svg", help="Plot the metrics of the rounds.")
@path_option(
    "--report",
    metavar="FILE.html",
    help="Write an HTML page about the run: metrics, times, omitted clients; see tffc report.",
)
@tff_source_option
def run_command(**options: Any) -> None:
    """Run rounds and print the server output of each as a line of a table.

    A program in a module or a message is compiled first, and cached until it changes.

    Rounds that start from a saved state of the program continue its run: they have the same numbers
    and, with the same seed, the same clients as the next rounds of that run. With --continue-from,
    they do so for a state of another program too, for example with another learning rate.

    \b
    Examples:
      tffc run examples/temperature/temperature.py:mean_temperature \\
          --data examples/temperature/sensors --rounds 1
      tffc run build/mean --data examples/temperature/sensors --rounds 1
      tffc run build/training --data examples/digits/train --rounds 3 \\
          --clients-per-round 20 --out build/run
      # Run seven more rounds, from the state of the third round.
      tffc run build/training --data examples/digits/train --rounds 10 \\
          --clients-per-round 20 --out build/run --resume
      # Let each client take part with probability 0.3, drawn by a secret seed.
      tffc run build/training --data examples/digits/train --rounds 3 \\
          --sampling-rate 0.3 --out build/sampled
      # Go on from there with another learning rate, data or seed.
      tffc run examples/digits/federated_averaging.py:training \\
          --data examples/digits/train --rounds 2 --clients-per-round 30 \\
          --continue-from build/run --out build/second
      # Evaluate every five rounds on images that no client has trained on.
      tffc run examples/digits/federated_averaging.py:training \\
          --data examples/digits/train --rounds 10 --clients-per-round 20 \\
          --evaluate examples/digits/federated_averaging.py:evaluation \\
          --evaluate-data examples/digits/test --every 5
    """
    from tffc.cli import run

    run.run(**options)
