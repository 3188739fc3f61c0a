"""`python -m benchmarks.rounds`: measures rounds of all sides in turn and writes them to a page."""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import tempfile
from collections.abc import Mapping

import click
import numpy as np
from rich.console import Console

from benchmarks.environments import ANY, DEVICES, JAX, TORCH, open_sides
from benchmarks.machine import machine
from benchmarks.rounds import device_table
from benchmarks.rounds.rows import RoundRow
from benchmarks.rounds.workloads import ON_THE_PAGE, WORKLOADS
from benchmarks.sides import ROOT, Figure, Side, SideError


def environments(device: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the sides: the variable that names the interpreter of each, and what it needs."""
    return {
        "tffc": ("", ()),
        "jax": ("TFFC_JAX_PYTHON", JAX[device]),
        "numpy": ("TFFC_JAX_PYTHON", JAX[device]),
        "torch": ("TFFC_TORCH_PYTHON", TORCH),
        "fedjax": ("TFFC_FEDJAX_PYTHON", ("fedjax==0.0.17",)),
        "tff": ("TFFC_PEER_PYTHON", ()),
    }


WAYS: Mapping[str, Mapping[str, str]] = {
    "tffc": {
        "memory": "W1 W2 W3 W4",
        "folder": "W1 W2 W3 W4",
        "packed": "W1 W2 W3 W4",
        "one a call": "W1 W2",
        "one worker": "W2 W3",
    },
    "jax": {"scan": "W1 W2 W4", "unrolled": "W3", "vmap": "W1 W2 W4"},
    "numpy": {"loop": "W1 W2 W4", "vectorised": "W4"},
    "torch": {"loop": "W1 W2 W3 W4", "pfl": "W1 W2 W3 W4"},
    "fedjax": {"fedjax": "W1 W2 W3 W4"},
    "tff": {"runtime": "W1 W2 W3"},
}
"""The ways in which each side computes a round, and for which workloads it is measured."""

SETTLING = 4
"""How many times as long as others tffc runs before it is measured, for it measures, too."""

SAME = 1e-3
WRAPPED = 2e-2
"""How far weights may be from those of tffc after three rounds; the second where a side fills up
the last batch of a client with its first examples."""


def prepare(side: Side, way: str, workload: str, seconds: float, expected: list[np.ndarray]) -> str:
    """Has a side compute rounds, and compares its weights with those expected, or has it say what
    these are; gives how far they are from one another.

    Raises:
      SideError: the side fails, or computes something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.npz")
        side.ask("prepare", way, workload, seconds, path)
        with np.load(path) as file:
            weights = [file[name] for name in file.files]
    if not expected:
        expected.extend(weights)
    differences = [np.abs(a - b).max() for a, b in zip(weights, expected, strict=True)]
    worst = float(max(differences))
    if worst > (WRAPPED if (side.name, workload) == ("rounds.fedjax", "W1") else SAME):
        raise SideError(f"weights differ by {worst:.1g}")
    return f"{worst:.0e}"


@click.command()
@click.option("--runs", default=5, show_default=True, help="Runs of each, in turn.")
@click.option("--warm", default=5.0, show_default=True, help="Seconds of rounds before.")
@click.option("--only", multiple=True, type=click.Choice(list(WORKLOADS)))
@click.option("--without", multiple=True, type=click.Choice(list(environments(ANY))))
@click.option(
    "--device",
    type=click.Choice(list(DEVICES)),
    help="Print a table of tffc and JAX on this device instead of writing the page.",
)
@click.option(
    "--make",
    type=click.Path(path_type=pathlib.Path),
    help="Make environments that are not there in this folder.",
)
@click.option(
    "--output", default=ROOT / "docs", type=click.Path(path_type=pathlib.Path), show_default=False
)
def main(
    runs: int,
    warm: float,
    only: tuple[str, ...],
    without: tuple[str, ...],
    device: str | None,
    make: pathlib.Path | None,
    output: pathlib.Path,
) -> None:
    """Measure rounds of tffc and of JAX, NumPy, PyTorch, pfl, FedJAX and TFF.

    An interpreter for each side stands in the environment, as TFFC_JAX_PYTHON and so on; one that
    does not is made if there is a folder for it, or left out.
    """
    if not device:
        # It needs matplotlib, which is missed before anything is measured.
        importlib.import_module("benchmarks.rounds.page")
    ways = device_table.WAYS if device else WAYS
    wanted = {name: each for name, each in environments(device or ANY).items() if name in ways}
    interpreters, missing = open_sides(wanted, make)
    for name, why in missing.items():
        click.echo(f"without {name}: {why}", err=True)
    comparison = RoundComparison(
        {name: each for name, each in interpreters.items() if name not in without},
        ways,
        DEVICES[device or ANY],
    )
    for workload in only or (tuple(WORKLOADS) if device else ON_THE_PAGE):
        comparison.measure(workload, runs, warm)
    if device:
        Console().print(machine())
        Console().print(device_table.table_of(device, comparison.rows))
        Console().print(comparison.versions)
        return
    from benchmarks.rounds.page import write_page

    page = write_page(comparison.rows, comparison.versions, runs, output)
    click.echo(os.path.relpath(page))


class RoundComparison:
    """Rounds of sides: the rows that were measured, and the versions of packages."""

    def __init__(
        self,
        interpreters: Mapping[str, str],
        ways: Mapping[str, Mapping[str, str]],
        variables: Mapping[str, str],
    ) -> None:
        self.rows: list[RoundRow] = []
        self.versions: dict[str, str] = {}
        self._interpreters = interpreters
        self._ways = ways
        self._variables = variables

    def measure(self, workload: str, runs: int, warm: float) -> None:
        """Measure the rounds of a workload, and add a row for each way."""
        with contextlib.ExitStack() as stack:
            sides: dict[tuple[str, str], Side] = {}
            expected: list[np.ndarray] = []
            differences: dict[tuple[str, str], str] = {}
            for name, python in self._interpreters.items():
                ways = [way for way, of in self._ways[name].items() if workload in of.split()]
                if not ways:
                    continue
                side = Side(f"rounds.{name}", python, self._variables)
                stack.callback(side.close)
                for way in ways:
                    try:
                        self.versions |= side.ask("versions")
                        seconds = warm * (SETTLING if name == "tffc" else 1)
                        differences[name, way] = prepare(side, way, workload, seconds, expected)
                    except SideError as error:
                        click.echo(f"{workload} without {name}, {way}: {error}", err=True)
                        continue
                    sides[name, way] = side
            taken = alternate(sides, workload, runs)
        for (name, way), (processor, clock) in taken.items():
            each = RoundRow(workload, name, way, processor, clock, differences[name, way])
            click.echo(f"{each}", err=True)
            self.rows.append(each)


def alternate(
    sides: Mapping[tuple[str, str], Side], workload: str, runs: int
) -> dict[tuple[str, str], tuple[Figure, Figure]]:
    """Return the seconds of a round of each side, of the processor and on the clock, taken in
    turn."""
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {each: [] for each in sides}
    for _ in range(runs):
        for (name, way), side in sides.items():
            taken[name, way].append(tuple(side.ask("round", way, workload)))
    return {
        each: (Figure(tuple(p for p, _ in pairs)), Figure(tuple(c for _, c in pairs)))
        for each, pairs in taken.items()
    }


if __name__ == "__main__":
    main()
