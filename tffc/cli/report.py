"""`tffc report`: a page about a run that is kept in a folder."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.options import PATH
from tffc.cli.output import say_briefly, write_output
from tffc.engines.report import read_report
from tffc.engines.report_page import report_page


@click.command("report")
@click.argument("folder", metavar="RUNFOLDER", type=PATH)
@click.option(
    "-o", "--out", metavar="FILE.html", type=PATH, help="Write to this file instead of to stdout."
)
def report_command(folder: pathlib.Path, out: pathlib.Path | None) -> None:
    """Write a page about the run in a folder: its metrics as plots, clients a second, where the
    time went, the clients that were left out, and what the run is.

    The page is one file that needs no network and runs no script. It is the same for the same
    folder, and can be made while the run goes on.

    \b
    Examples:
      tffc report build/run-of-digits -o digits.html
      tffc report build/run-of-digits > digits.html
    """
    text = report_page(read_report(folder))
    if out is None:
        click.echo(text, nl=False)
        return
    write_output(out, text.encode())
    say_briefly(f"wrote {out}")
