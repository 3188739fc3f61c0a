"""`tffc report`: a page about a run that is kept in a folder."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import PATH


@click.command("report")
@click.argument("folder", metavar="RUNFOLDER", type=PATH)
@click.option(
    "-o", "--out", metavar="FILE.html", type=PATH, help="Write to this file instead of to stdout."
)
def report_command(**options: Any) -> None:
    """Write a page about the run in a folder: its metrics as plots, clients a second, where the
    time went, the clients that were left out, and what the run is.

    The page is one file that needs no network and runs no script. It is the same for the same
    folder, and can be made while the run goes on.

    \b
    Examples:
      tffc report build/run-of-digits -o digits.html
      tffc report build/run-of-digits > digits.html
    """
    from tffc.cli import report

    report.write_report(**options)
