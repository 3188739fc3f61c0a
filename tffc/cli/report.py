"""The work of `tffc report`."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.output import say_briefly, write_output
from tffc.engines.report import read_report
from tffc.engines.report_page import report_page


def write_report(folder: pathlib.Path, out: pathlib.Path | None) -> None:
    """Write the page of the run in a folder."""
    text = report_page(read_report(folder))
    if out is None:
        click.echo(text, nl=False)
        return
    write_output(out, text.encode())
    say_briefly(f"wrote {out}")
