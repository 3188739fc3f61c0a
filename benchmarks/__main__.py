"""`python -m benchmarks`: measures tffc, and the peer if it is installed, and writes the page."""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import sys
import time
from typing import Any

import click

from benchmarks.experiments import EXPERIMENTS, Row, Setting
from benchmarks.peer import make_environment
from benchmarks.sides import ROOT, Schedule, Side, SideError

_path = click.Path(path_type=pathlib.Path)


@click.command()
@click.option("--quick", is_flag=True, help="Few sizes, two runs of each: some three minutes.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(EXPERIMENTS)),
    help="Measure this alone; may be given more than once.",
)
@click.option("--runs", type=click.IntRange(1), help="Runs of each; 5 if not given.")
@click.option(
    "--budget",
    default=30.0,
    show_default=True,
    help="Seconds after which a measurement is not repeated.",
)
@click.option(
    "--peer-python",
    envvar="TFFC_PEER_PYTHON",
    help="An interpreter with TensorFlow Federated 0.87.",
)
@click.option(
    "--make-peer", metavar="DIR", type=_path, help="Make the peer's environment in this folder."
)
@click.option(
    "--corpus",
    envvar="TFFC_CORPUS",
    type=_path,
    help="A folder of recorded computations.",
)
@click.option(
    "--output",
    default=ROOT / "docs",
    type=_path,
    help="The folder of the page; docs if not given.",
)
def main(
    quick: bool,
    only: tuple[str, ...],
    runs: int | None,
    budget: float,
    peer_python: str | None,
    make_peer: pathlib.Path | None,
    corpus: pathlib.Path | None,
    output: pathlib.Path,
) -> None:
    """Measure tffc and write performance.md with its plots.

    The peer is measured too if its interpreter is given, or its environment is made.
    """
    write_report = _report().write_report
    if make_peer is not None:
        peer_python = str(make_environment(make_peer))
    schedule = Schedule(runs or (2 if quick else 5), budget)
    interpreters = {"tffc": sys.executable}
    if peer_python:
        interpreters["peer"] = peer_python
    else:
        click.echo("without the peer; give its interpreter with --peer-python", err=True)
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        sides = tuple(Side(name, python) for name, python in interpreters.items())
        for side in sides:
            stack.callback(side.close)
        setting = Setting(sides, schedule, peer_python, corpus, quick)
        setting.warm_up()
        versions = setting.tffc.ask("versions")
        rows = _measured(setting, only or tuple(EXPERIMENTS))
    page = write_report(
        rows,
        output,
        versions=versions,
        has_peer=peer_python is not None,
        runs=schedule.runs,
        seconds=time.perf_counter() - start,
    )
    click.echo(os.path.relpath(page))


def _report() -> Any:
    """Return the module that writes the page, which needs Matplotlib."""
    try:
        return importlib.import_module("benchmarks.report")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise click.ClickException(
            "Matplotlib is not installed, and the plots need it: pip install '.[benchmarks]'"
        ) from None


def _measured(setting: Setting, names: tuple[str, ...]) -> list[Row]:
    """Return the rows of the experiments, printing each as it comes; one that fails keeps its rows
    so far."""
    rows: list[Row] = []
    for name in names:
        try:
            for row in EXPERIMENTS[name](setting):
                size = f" {row.size}" if row.size else ""
                figure = f"{row.figure.median:.4g} {row.unit}"
                click.echo(f"{row.experiment}: {row.case}{size}, {row.side}: {figure}", err=True)
                rows.append(row)
        except SideError as error:
            click.echo(f"{name} ends here: {error}", err=True)
    return rows


if __name__ == "__main__":
    main()
