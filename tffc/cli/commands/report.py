"""`tffc report`: write an HTML page about the run in a folder."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.options import PATH
from tffc.cli.output import write_text


@click.command("report")
@click.argument("folder", metavar="RUNFOLDER", type=PATH)
@click.option("-o", "--out", metavar="FILE.html", help="Write to this file instead of to stdout.")
def report_command(folder: pathlib.Path, out: str | None) -> None:
    """Write an HTML page about the run in a folder.

    The page shows plots of the metrics, clients per second, where the time went, omitted clients,
    and the settings of the run. It is a single file that needs no network and runs no script. The
    same folder gives the same page. You can write it while the run continues.

    \b
    Examples:
      tffc report build/run-of-digits -o digits.html
      tffc report build/run-of-digits > digits.html
    """
    from tffc.assurance.privacy.ledger import with_spending
    from tffc.runtime.runs.report import read_report
    from tffc.runtime.runs.report_page import report_page

    write_text(report_page(with_spending(read_report(folder))), out)
