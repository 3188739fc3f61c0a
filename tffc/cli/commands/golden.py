"""`tffc golden`: compare what examples print and compile to with files in the repository."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import path_option, tff_source_option
from tffc.cli.usage import Choice, Commands

_folder = path_option(
    "--folder",
    default="golden",
    show_default=True,
    metavar="DIR",
    help="The folder of the golden files.",
)

_names = click.argument("names", nargs=-1, metavar="[NAME...]")


@click.group("golden", cls=Commands)
def golden_command() -> None:
    """Compare what each example prints and compiles to with files in the repository.

    The folder's golden.yaml lists the examples. NAMEs limit the command to these examples.

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


@golden_command.command("check", short_help="Show differences; exit with 1 if there are any.")
@_folder
@click.option(
    "--format",
    "style",
    type=Choice(("diff", "github")),
    default="diff",
    show_default=True,
    help="With github, also print annotations, which GitHub shows at the files.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Check again whenever an example or a module in its folder is saved, until Ctrl-C.",
)
@_names
@tff_source_option
def check_command(watch: bool, **options: Any) -> None:
    """Print a unified diff for every file that differs, and exit with 1 if any does.

    Without a NAME, also finds files and folders that belong to no example. With --watch, TensorFlow
    stays loaded between checks.

    \b
    Examples:
      tffc golden check
      tffc golden check simple combine
      # In a GitHub workflow; shows diffs at the files of a pull request.
      tffc golden check --format github
    """
    from tffc.cli import golden

    if watch:
        golden.watch_check(**options)
    golden.check(**options)


@golden_command.command("update", short_help="Update the golden files to the current output.")
@_folder
@_names
@tff_source_option
def update_command(**options: Any) -> None:
    """Write the current output to the golden files, and remove files that belong to no example.

    Writes nothing if an example cannot be loaded or compiled. Refused if the environment variable
    CI is set, because changes of golden files need review.

    \b
    Examples:
      tffc golden update
      tffc golden update temperature-mean && git diff golden
    """
    from tffc.cli import golden

    golden.update(**options)


@golden_command.command("review", short_help="Accept or reject differences one by one.")
@_folder
@_names
@tff_source_option
def review_command(**options: Any) -> None:
    """Show each change of a golden file and ask what to do with it.

    An accepted change is written immediately, alone or with all others of its example. A rejected
    change is listed at the end, for you to fix in the program, and makes the command exit with 1. A
    skipped change is left for later.

    \b
    Examples:
      tffc golden review
      tffc golden review temperature-mean temperature-share
    """
    from tffc.cli import golden

    golden.review(**options)
