"""`tffc data`: describe and pack clients' data."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import json_option, path_option, tff_source_option
from tffc.cli.usage import Commands


@click.group("data", cls=Commands)
def data_command() -> None:
    """Describe or pack clients' data, which commands take as SOURCE.

    \b
      DIR                                  a folder with one .npz file per client
      npz:DIR[?max-bytes=NUMBER]           the same
      DIR, packed:DIR[?cast=TYPE]          a folder that tffc data pack wrote
      tfrecord:PATH[?client=FEATURE&spec=FILE.json&columns=A,B]
      csv:FILE[?client=COLUMN&columns=A,B&delimiter=CHARACTER&times=UNIT]
      parquet:PATH[?client=COLUMN&columns=A,B&times=UNIT&max-bytes=NUMBER]
      python:MODULE:NAME, FILE.py:NAME     a Python function, or a ClientData

    PATH is a file, a folder or a pattern such as 'visits/*.parquet'. With links=follow, links in a
    folder may point outside it.

    \b
    Examples:
      tffc data describe examples/temperature/sensors
      tffc data describe 'csv:readings.csv?client=sensor&columns=degrees'
    """


@data_command.command("describe", short_help="Show clients, sizes, types and whether they fit.")
@click.argument("source", metavar="SOURCE")
@click.option(
    "--for",
    "program",
    metavar="BUNDLE|MODULE[:NAME]|FILE.pb",
    help="Check that every client's data has the type that this bundle or program takes.",
)
@json_option
@tff_source_option
def describe_command(**options: Any) -> None:
    """Show how much data clients have and what is in it: types, gaps, ranges, categories.

    With --for, checks every client instead, and exits with 0 if all fit and with 1 otherwise.

    \b
    Examples:
      tffc data describe examples/temperature/sensors
      tffc data describe 'csv:readings.csv?client=sensor&columns=degrees' \\
          --for build/mean
      tffc data describe examples/temperature/sensors \\
          --for examples/temperature/temperature.py:mean_temperature
    """
    from tffc.cli import data

    data.describe(**options)


@data_command.command("pack", short_help="Pack clients' data for faster reading.")
@click.argument("source", metavar="SOURCE")
@path_option("-o", "--out", required=True, metavar="DIR", help="The folder to write.")
@click.option(
    "--for",
    "program",
    metavar="BUNDLE|MODULE[:NAME]|FILE.pb",
    help="Pack the data that this bundle or program takes; required if SOURCE is not a folder of "
    ".npz files.",
)
@click.option("--force", is_flag=True, help="Replace an existing pack.")
@tff_source_option
def pack_command(**options: Any) -> None:
    """Write all clients' data into one file, of which each client's part is read in place.

    The folder is itself a SOURCE. Requires pyarrow, which the extra parquet installs.

    \b
    Examples:
      tffc data pack examples/digits/train -o build/digits
      tffc data pack 'csv:readings.csv?client=sensor&columns=degrees' \\
          --for build/mean -o build/readings
    """
    from tffc.cli import data

    data.pack(**options)
