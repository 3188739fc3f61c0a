"""`python -m benchmarks.field`: trains as two published benchmarks do, in tffc, JAX and pfl."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console

from benchmarks.environments import DEVICES, JAX, TORCH, open_sides
from benchmarks.field.comparison import Comparison
from benchmarks.field.settings import SETTINGS
from benchmarks.field.table import table_of
from benchmarks.machine import machine
from benchmarks.sides import ROOT, SideError

WAYS: Mapping[str, tuple[str, str]] = {
    "tffc": ("tffc", "tensorflow"),
    "tffc-jax": ("tffc", "jax"),
    "jax-vmap": ("jax", "vmap"),
    "jax-scan": ("jax", "scan"),
    "jax-calls": ("jax", "calls"),
    "pfl": ("pfl", "pfl"),
}
"""The sides of the table: the module of each, and its way to train."""

QUICK_ON_A_CPU = ("tffc", "tffc-jax", "jax-calls", "pfl")
"""The sides of small trainings.  In a loop, XLA computes convolutions on one core and slowly, and
many kernels at once more slowly still."""


def options_of(pairs: Sequence[str], batching: str) -> dict[str, Any]:
    """Return the options of `tffc.run` that were written as `NAME=VALUE`, in JSON or as text."""
    options: dict[str, Any] = {"batching": batching}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            options[name] = json.loads(text)
        except json.JSONDecodeError:
            options[name] = text
    return options


@click.command()
@click.option("--workload", "workloads", multiple=True, type=click.Choice(list(SETTINGS)))
@click.option(
    "--side",
    "sides",
    multiple=True,
    type=click.Choice(list(WAYS)),
    help="Sides; by default all, but only quick ones for a small training.",
)
@click.option("--rounds", type=click.IntRange(2), help="Rounds of a training; 4 by default.")
@click.option("--cohort", type=click.IntRange(1), help="Clients of a round; 4 by default.")
@click.option("--clients", type=click.IntRange(1), help="All clients; 40 by default.")
@click.option("--full", is_flag=True, help="The published numbers of rounds and clients instead.")
@click.option("--dropout/--no-dropout", default=True, help="Without, weights are compared, too.")
@click.option("--batching", multiple=True, default=("auto",), show_default=True)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="For tffc.run.")
@click.option("--device", default="any", type=click.Choice(list(DEVICES)), show_default=True)
@click.option(
    "--make",
    type=click.Path(path_type=pathlib.Path),
    default=ROOT / "build" / "peers",
    help="Make environments that are not there in this folder.  [default: build/peers]",
)
def main(
    workloads: tuple[str, ...],
    sides: tuple[str, ...],
    rounds: int | None,
    cohort: int | None,
    clients: int | None,
    full: bool,
    dropout: bool,
    batching: tuple[str, ...],
    options: tuple[str, ...],
    device: str,
    make: pathlib.Path,
) -> None:
    """Train the networks of pfl-research's CIFAR10 and FLUTE's CNN_FEMNIST benchmarks.

    tffc, with each --batching, JAX by hand and pfl train on the same data, one after another, each
    in a process of its own.  TFFC_JAX_PYTHON and TFFC_TORCH_PYTHON name interpreters with JAX and
    with PyTorch and pfl; one that is not named is made.
    """
    environments = {
        "tffc": ("", ()),
        "jax": ("TFFC_JAX_PYTHON", JAX[device]),
        "pfl": ("TFFC_TORCH_PYTHON", TORCH),
    }
    wanted = sides or (tuple(WAYS) if full or device == "gpu" else QUICK_ON_A_CPU)
    modules = {WAYS[side][0] for side in wanted}
    interpreters, missing = open_sides(
        {name: each for name, each in environments.items() if name in modules}, make
    )
    console = Console()
    console.print(machine())
    for name in workloads or tuple(SETTINGS):
        published = SETTINGS[name]
        setting = published.changed(
            rounds=rounds or (published.rounds if full else 4),
            cohort=cohort or (published.cohort if full else 4),
            clients=clients or (published.workload.clients if full else 40),
            dropout=dropout,
        )
        comparison = Comparison(setting, interpreters, device)
        left_out = {side: missing[WAYS[side][0]] for side in wanted if WAYS[side][0] in missing}
        for side in wanted:
            if side in left_out:
                continue
            for each in batching if WAYS[side][0] == "tffc" else ("",):
                title = f"{side}, batching {each}" if each else side
                tuned = options_of(options, each) if each else {}
                try:
                    comparison.add(title, *WAYS[side], tuned)
                except SideError as error:
                    left_out[title] = str(error)
        console.print(table_of(name, setting, comparison.rows, left_out))
        console.print(comparison.agreement())
        console.print(", ".join(f"{k} {v}" for k, v in sorted(comparison.versions.items())))


if __name__ == "__main__":
    main()
