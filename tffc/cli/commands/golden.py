"""`tffc golden`: hold what examples print and compile to against the files in the repository."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import PATH
from tffc.cli.usage import Choice, Commands

_folder = click.option(
    "--folder",
    default="golden",
    show_default=True,
    metavar="DIR",
    type=PATH,
    help="The folder of the golden files.",
)

_names = click.argument("names", nargs=-1, metavar="[NAME...]")


@click.group("golden", cls=Commands)
def golden_command() -> None:
    """Hold what each example prints and compiles to against files in the repository.

    The folder's golden.yaml lists the examples.  A NAME limits the command to one of them.

    \b
      mean:
        target: examples/temperature/temperature.py:mean_temperature
        forms: [mapreduce]

    \b
    Examples:
      tffc golden check
      tffc golden review
      tffc golden update simple combine
    """


@golden_command.command("check", short_help="Show what differs; exit 1 if anything does.")
@_folder
@click.option(
    "--format",
    "style",
    type=Choice(("diff", "github")),
    default="diff",
    show_default=True,
    help="With github, also print annotations, which GitHub shows beside the files.",
)
@_names
def check_command(**options: Any) -> None:
    """Print a unified diff for every file that differs, and exit with 1 if one does.

    Without a NAME, files and folders that belong to no example are found too.

    \b
    Examples:
      tffc golden check
      tffc golden check simple combine
      # In a workflow of GitHub; diffs stand beside the files of a pull request.
      tffc golden check --format github
    """
    from tffc.cli import golden

    golden.check(**options)


@golden_command.command("update", short_help="Make the golden files what is printed now.")
@_folder
@_names
def update_command(**options: Any) -> None:
    """Write what is printed now, and remove what belongs to no example.

    Nothing is written if an example cannot be loaded or compiled.  Refused where the environment
    variable CI is set: a change of golden files is reviewed.

    \b
    Examples:
      tffc golden update
      tffc golden update temperature-mean && git diff golden
    """
    from tffc.cli import golden

    golden.update(**options)


@golden_command.command("review", short_help="Accept or reject what differs, one by one.")
@_folder
@_names
def review_command(**options: Any) -> None:
    """Show each change of a golden file and ask what to do with it.

    An accepted change is written at once, or with it all others of its example.  A rejected one is
    listed at the end, to be mended in the program, and makes the command exit with 1.  A skipped
    one is left for later.

    \b
    Examples:
      tffc golden review
      tffc golden review temperature-mean temperature-share
    """
    from tffc.cli import golden

    golden.review(**options)
